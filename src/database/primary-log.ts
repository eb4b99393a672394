import type { Client } from 'pg';
import { NoticeChannel } from './notice-channel.js';

/** How often the primary is asked how far its log is. */
const HEARTBEAT_MS = 50;
/** For so long an instance that hears nothing asks replicas on; a writer whose notice may not have been heard waits as long. */
export const TRUST_MS = 250;
/** A replica that is further behind is not asked. */
export const MOST_LAG_SECONDS = 5;
const MOST_LAG_MS = MOST_LAG_SECONDS * 1_000;
/** Of lists that promise what changed since a moment: that promise has two seconds to spare (migration mark-changes). */
const MOST_RECENT_LAG_MS = 1_500;
/** Marks of changes that are a second apart are kept for an hour (migration mark-changes): a proof is found for as long. */
const PROOF_MS = 600_000;
/** More members with a mark than this are all members. */
const MOST_MARKS = 10_000;

const NOTICES = 'member_writes';
const NOTICE = /^(all|\d+):(\d+)$/;

/** Whose data was written. */
export type Written = number | 'all';

/**
 * A place in the log of the primary behind every commit that was answered, in bytes. Without `synchronous_commit` a commit is
 * answered before it is flushed.
 */
const POSITION = `(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0')::float8`;

/** Announces that of the members ($1, their ids or `all`, with commas between) something was written. */
export const ANNOUNCE = {
  name: 'announce-member-writes',
  text: `SELECT here.position, pg_notify('${NOTICES}', whom || ':' || here.position::bigint)
FROM (SELECT ${POSITION} AS position OFFSET 0) here CROSS JOIN unnest(string_to_array($1, ',')) AS whom`,
};

const READ_POSITION = { name: 'read-position', text: `SELECT ${POSITION} AS position` };

/**
 * A mark of changes whose moment is nobody else's: who has it has followed this primary, and no other that took over, or was restored.
 * Reads wait for no standby, nor does this.
 */
const PROVE = `BEGIN; SET LOCAL synchronous_commit = local;
INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text RETURNING taken_at::text AS proof; COMMIT`;

interface Place {
  readonly position: number;
  /** By `performance.now()`; the position is no earlier. */
  readonly at: number;
}

/** Whether an instance hears what others write; else why not. */
export type ChannelState = { readonly heard: true } | { readonly heard: false; readonly reason: string };

/** What a replica has to show before it is asked. */
export interface Need {
  /** Of the log of the primary, in bytes. */
  readonly position: number;
  /** The connection to the primary by which the position is known. */
  readonly epoch: number;
  /** `taken_at` of a row of `change_marks` that this primary wrote. */
  readonly proof: string;
}

/**
 * How far a replica must have come for a read: the log of the primary as it was so many seconds ago, and what was written of the
 * member since. That is heard from the instance that wrote it (NOTIFY); while the channel is cut, or its beat late, there is no
 * answer, and the primary is asked.
 *
 * What is older than the lag that is allowed is covered by it, so no write is kept for longer.
 */
export class PrimaryLog extends NoticeChannel {
  /** In the order of time, of the last {@link MOST_LAG_MS}; the oldest first. */
  #places: Place[] = [];
  #recent = 0;
  #marks = new Map<number, Place>();
  #all: Place = { position: 0, at: 0 };
  #epoch = 0;
  #proof: { readonly text: string; readonly at: number } | undefined;

  /**
   * @param url the primary, without a pooler
   * @param tell is told when the channel is cut, why, and when it is heard again
   */
  constructor(
    url: string | undefined,
    private readonly tell: (channel: ChannelState) => void,
  ) {
    super(url, {
      applicationName: 'public-user-api writes',
      channel: NOTICES,
      heartbeatMs: HEARTBEAT_MS,
      trustMs: TRUST_MS,
    });
  }

  /**
   * @param recent whether the read promises what changed since a moment
   * @returns undefined where the primary alone is to be asked
   */
  needOf(member: number, recent: boolean): Need | undefined {
    if (!this.trusted) return undefined;
    const lag = recent ? this.#recent : this.#places[0]!.position;
    return this.#need(Math.max(lag, this.#all.position, this.#marks.get(member)?.position ?? 0));
  }

  /** What a replica has to show that has everything up to a position; undefined while the channel is cut. */
  needFor(position: number): Need | undefined {
    return this.trusted ? this.#need(position) : undefined;
  }

  /** The primary's log as it was last heard of, in bytes; undefined while the channel is cut. */
  get position(): number | undefined {
    return this.trusted ? this.#places.at(-1)!.position : undefined;
  }

  /** Something was written of a member, or of all, at or before the position. */
  mark(whom: Written, position: number): void {
    const at = performance.now();
    if (whom === 'all' || this.#marks.size >= MOST_MARKS) {
      this.#all = { position: Math.max(position, this.#all.position), at };
      return;
    }
    const before = this.#marks.get(whom)?.position ?? 0;
    this.#marks.delete(whom); // the order is that of time
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

  protected lose(reason: string): void {
    this.tell({ heard: false, reason });
  }

  protected regain(): void {
    this.tell({ heard: true });
  }

  protected override async beat(client: Client): Promise<void> {
    const at = performance.now();
    if (this.#proof === undefined || at - this.#proof.at > PROOF_MS) {
      const results = (await client.query(PROVE)) as unknown as { rows: { proof: string }[] }[];
      this.#proof = { text: results.flatMap(({ rows }) => rows)[0]!.proof, at };
    }
    const { rows } = await client.query<{ position: number }>(READ_POSITION);
    this.#places.push({ position: rows[0]!.position, at });
    this.#forget(at);
  }

  /** What a lag covers that is allowed. It is judged for as long as a beat counts. */
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

  #need(position: number): Need {
    return { position, epoch: this.#epoch, proof: this.#proof!.text };
  }
}
