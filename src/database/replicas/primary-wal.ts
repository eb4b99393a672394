import { Injectable } from '@nestjs/common';
import type { Client } from 'pg';
import { Config } from '../../config/config.js';
import { NoticeChannel } from '../postgres/notice-channel.js';

const HEARTBEAT_MS = 50;
/** Time in ms without a heartbeat after which an instance stops using replicas; also a writer's maximum wait for replicas. */
export const TRUST_MS = 250;
export const MAX_LAG_SECONDS = 5;
const MAX_LAG_MS = MAX_LAG_SECONDS * 1_000;
/** Maximum lag in ms for lists that promise all changes since a time: less than the margin of two seconds in schema/changes.sql. */
const MAX_RECENT_LAG_MS = 1_500;
/** Lifetime of a proof in ms: the database keeps every change mark for an hour (schema/changes.sql), so replicas still have the proof. */
const PROOF_MS = 600_000;
/** Maximum marked members; above this number, all members count as marked. */
const MAX_MARKS = 10_000;

const NOTICES = 'member_writes';
const NOTICE = /^(all|\d+):(\d+)$/;

export type Written = number | 'all';

/** Log position in bytes after every acknowledged commit; without `synchronous_commit`, PostgreSQL acknowledges before the flush. */
const POSITION = `(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0')::float8`;

/** Announces writes to data of the members $1 (ids separated by commas, or `all`). */
export const ANNOUNCE = {
  name: 'announce-member-writes',
  text: `SELECT here.position, pg_notify('${NOTICES}', whom || ':' || here.position::bigint)
FROM (SELECT ${POSITION} AS position OFFSET 0) here CROSS JOIN unnest(string_to_array($1, ',')) AS whom`,
};

/** Identifies a server by its start time, which changes with every restart. */
export const SERVER = 'pg_postmaster_start_time()::text';

const READ_POSITION = {
  name: 'read-position',
  text: `SELECT ${POSITION} AS position, ${SERVER} AS server`,
};

/** Writes a change mark with a unique time: a server that has this mark follows this primary. Does not wait for a standby. */
const PROVE = `BEGIN; SET LOCAL synchronous_commit = local;
INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text RETURNING taken_at::text AS proof; COMMIT`;

interface WalPosition {
  readonly position: number;
  /** Time by `performance.now()`. */
  readonly at: number;
}

export interface ReadConsistency {
  /** Position in the primary's log, in bytes. */
  readonly position: number;
  /** Number of the current connection to the primary. */
  readonly epoch: number;
  /** `taken_at` of a row of `change_marks` that this primary wrote. */
  readonly proof: string;
  readonly server: string;
}

/**
 * Computes the log position that a read requires: the later of the primary's position a few seconds ago and that of the member's
 * latest write, which instances announce by NOTIFY. Without a recent heartbeat, the position is unknown, and the primary serves reads.
 */
@Injectable()
export class PrimaryWal extends NoticeChannel {
  /** Positions of the last {@link MAX_LAG_MS}, oldest first. */
  #places: WalPosition[] = [];
  #recent = 0;
  #marks = new Map<number, WalPosition>();
  #all: WalPosition = { position: 0, at: 0 };
  #epoch = 0;
  #proof: { readonly text: string; readonly at: number } | undefined;
  #server = '';

  constructor({ databaseReadUrls, databaseDirectUrl }: Config) {
    super(databaseReadUrls.length > 0 ? databaseDirectUrl : undefined, {
      applicationName: 'public-user-api writes',
      channel: NOTICES,
      heartbeatMs: HEARTBEAT_MS,
      trustMs: TRUST_MS,
    });
  }

  /** @param recent whether the read promises all changes since a time @returns undefined if only the primary may serve the read */
  needOf(member: number, recent: boolean): ReadConsistency | undefined {
    if (!this.trusted) return undefined;
    const lag = recent ? this.#recent : this.#places[0]!.position;
    return this.#need(Math.max(lag, this.#all.position, this.#marks.get(member)?.position ?? 0));
  }

  /** Returns the requirement that a replica has everything up to a position; undefined without a recent heartbeat. */
  needFor(position: number): ReadConsistency | undefined {
    return this.trusted ? this.#need(position) : undefined;
  }

  /** The last known position of the primary's log, in bytes; undefined without a recent heartbeat. */
  get position(): number | undefined {
    return this.trusted ? this.#places.at(-1)!.position : undefined;
  }

  mark(whom: Written, position: number): void {
    const at = performance.now();
    if (whom === 'all' || this.#marks.size >= MAX_MARKS) {
      this.#all = { position: Math.max(position, this.#all.position), at };
      return;
    }
    const before = this.#marks.get(whom)?.position ?? 0;
    this.#marks.delete(whom); // moves the entry to the end: entries are ordered by time
    this.#marks.set(whom, { position: Math.max(position, before), at });
  }

  protected begin(): void {
    this.#epoch++;
    this.#places = [];
    this.#proof = undefined;
  }

  protected hear(payload: string | undefined): void {
    const [, whom, position] = NOTICE.exec(payload ?? '') ?? [];
    if (position === undefined) return;
    this.mark(whom === 'all' ? 'all' : Number(whom), Number(position));
  }

  protected override async beat(client: Client): Promise<void> {
    const at = performance.now();
    if (this.#proof === undefined || at - this.#proof.at > PROOF_MS) {
      const results = (await client.query(PROVE)) as unknown as { rows: { proof: string }[] }[];
      this.#proof = { text: results.flatMap(({ rows }) => rows)[0]!.proof, at };
    }
    const { rows } = await client.query<{ position: number; server: string }>(READ_POSITION);
    const { position, server } = rows[0]!;
    this.#server = server;
    this.#places.push({ position, at });
    this.#forget(at);
  }

  /** Drops positions and marks older than the permitted lag, minus a heartbeat's validity. */
  #forget(now: number): void {
    const places = this.#places;
    while (places.length > 1 && now - places[0]!.at > MAX_LAG_MS - TRUST_MS) places.shift();
    this.#recent = places.find(({ at }) => now - at <= MAX_RECENT_LAG_MS - TRUST_MS)!.position;
    const oldest = places[0]!.at;
    for (const [member, { at }] of this.#marks) {
      if (at >= oldest) break;
      this.#marks.delete(member);
    }
    if (this.#all.at < oldest) this.#all = { position: 0, at: 0 };
  }

  #need(position: number): ReadConsistency {
    return { position, epoch: this.#epoch, proof: this.#proof!.text, server: this.#server };
  }
}
