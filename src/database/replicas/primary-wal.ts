import { Injectable } from '@nestjs/common';
import type { Client } from 'pg';
import { Config } from '../../config/config.js';
import { NoticeChannel } from '../postgres/notice-channel.js';

/** How often the primary is asked for the position of its log. */
const HEARTBEAT_MS = 50;
/** How long an instance without notifications keeps using replicas; a writer whose notification may be lost waits as long. */
export const TRUST_MS = 250;
/** A replica that is further behind is not used. */
export const MOST_LAG_SECONDS = 5;
const MOST_LAG_MS = MOST_LAG_SECONDS * 1_000;
/** The same for lists that promise all changes since a time: that promise has a margin of two seconds (migration mark-changes). */
const MOST_RECENT_LAG_MS = 1_500;
/** Change marks a second apart are kept for an hour (migration mark-changes): a proof can be found for that long. */
const PROOF_MS = 600_000;
/** More marked members than this count as all members. */
const MOST_MARKS = 10_000;

const NOTICES = 'member_writes';
const NOTICE = /^(all|\d+):(\d+)$/;

/** The members whose data was written. */
export type Written = number | 'all';

/**
 * A position in the log of the primary after every acknowledged commit, in bytes. Without `synchronous_commit`, a commit is
 * acknowledged before it is flushed.
 */
const POSITION = `(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0')::float8`;

/** Announces that data of the members ($1, their ids or `all`, separated by commas) was written. */
export const ANNOUNCE = {
  name: 'announce-member-writes',
  text: `SELECT here.position, pg_notify('${NOTICES}', whom || ':' || here.position::bigint)
FROM (SELECT ${POSITION} AS position OFFSET 0) here CROSS JOIN unnest(string_to_array($1, ',')) AS whom`,
};

/** Another server, or the same one after a restart, has started at another microsecond. */
export const SERVER = 'pg_postmaster_start_time()::text';

const READ_POSITION = {
  name: 'read-position',
  text: `SELECT ${POSITION} AS position, ${SERVER} AS server`,
};

/**
 * Writes a change mark with a unique time: a server that has it has followed this primary, not another one that took over or was
 * restored. Like reads, this does not wait for a standby.
 */
const PROVE = `BEGIN; SET LOCAL synchronous_commit = local;
INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text RETURNING taken_at::text AS proof; COMMIT`;

interface WalPosition {
  readonly position: number;
  /** By `performance.now()`; the position is no earlier. */
  readonly at: number;
}

/** What a replica has to prove before it is used. */
export interface ReadConsistency {
  /** Position in the log of the primary, in bytes. */
  readonly position: number;
  /** Number of the connection to the primary that reported the position. */
  readonly epoch: number;
  /** `taken_at` of a row of `change_marks` that this primary wrote. */
  readonly proof: string;
  /** The primary itself, which is no replica: see {@link SERVER}. */
  readonly server: string;
}

/**
 * Determines the log position that a replica must have reached for a read: the primary's position a few seconds ago, and everything
 * written since for the member. The writing instance announces its writes (NOTIFY); while the channel is cut, or its heartbeat is
 * late, there is no position, and the primary is used.
 *
 * Writes older than the permitted lag are covered by the first condition, so none is kept for longer.
 */
@Injectable()
export class PrimaryWal extends NoticeChannel {
  /** Positions of the last {@link MOST_LAG_MS}, oldest first. */
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

  /**
   * @param recent whether the read promises all changes since a time
   * @returns undefined if only the primary may be used
   */
  needOf(member: number, recent: boolean): ReadConsistency | undefined {
    if (!this.trusted) return undefined;
    const lag = recent ? this.#recent : this.#places[0]!.position;
    return this.#need(Math.max(lag, this.#all.position, this.#marks.get(member)?.position ?? 0));
  }

  /** What a replica has to prove to have everything up to a position; undefined while the channel is cut. */
  needFor(position: number): ReadConsistency | undefined {
    return this.trusted ? this.#need(position) : undefined;
  }

  /** The last known position of the primary's log, in bytes; undefined while the channel is cut. */
  get position(): number | undefined {
    return this.trusted ? this.#places.at(-1)!.position : undefined;
  }

  /** Records that data of a member, or of all, was written at or before the position. */
  mark(whom: Written, position: number): void {
    const at = performance.now();
    if (whom === 'all' || this.#marks.size >= MOST_MARKS) {
      this.#all = { position: Math.max(position, this.#all.position), at };
      return;
    }
    const before = this.#marks.get(whom)?.position ?? 0;
    this.#marks.delete(whom); // it moves to the end: entries are ordered by time
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

  /** Drops positions and marks older than the permitted lag, less the time for which a heartbeat is valid. */
  #forget(now: number): void {
    const places = this.#places;
    while (places.length > 1 && now - places[0]!.at > MOST_LAG_MS - TRUST_MS) places.shift();
    this.#recent = places.find(({ at }) => now - at <= MOST_RECENT_LAG_MS - TRUST_MS)!.position;
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
