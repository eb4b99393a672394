import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { eventValues, recordEventIf, type LoneEvent } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import { Semaphore } from '../../database/postgres/semaphore.js';
import { networkOf } from '../../values/network.js';
import { Busy } from '../passwords/passwords.js';
import { Config } from '../../config/config.js';
import { Hmac } from '../../crypto/hmac.js';

interface Allowance {
  /** Failures allowed in a window; one more attempt begins a block. */
  readonly failures: number;
  /** Whether each failure restarts the window, so that it ends only after a minute without one. */
  readonly slides: boolean;
  /** Each block is twice as long as the one before, up to this. */
  readonly longestBlockSeconds: number;
}

/** Length of a window, and of the first block. */
const WINDOW_SECONDS = 60;

/** Cannot be switched off: no 60 seconds see more failures than this. */
const PER_ACCOUNT: Allowance = { failures: 10, slides: true, longestBlockSeconds: 900 };

/** An attempt that is not settled by then counts as a failure: the server that took the place is gone. */
const LEASE_SECONDS = 30;

/** How often an instance checks whether another one has given a place back. */
const POLL_MS = 50;

/** How many times the server tries to give a place back; then the attempt counts as a failure. */
const MOST_TRIES = 10;

/** How many may wait for one account or address; more are refused at once. */
const MOST_WAITING = 150;

/**
 * Takes a place before the password is checked: failures and attempts in progress never exceed the allowance, for any
 * number of parallel guesses, on any number of instances. Uses the database's clock. Further attempts do not lengthen
 * a block.
 *
 * A lease is its holder's name, too: it is later than every other one, whatever the clock's steps (1 ms in the embedded database).
 *
 * `attempts` are the failures of the window and the attempts in progress; in a block they exceed the allowance. No row
 * is returned if every place is taken, and some of them may be given back.
 */
const TAKE = `INSERT INTO login_throttle AS t (key, attempts, window_ends_at, under_way)
VALUES ($1, 1, now() + make_interval(secs => ${WINDOW_SECONDS}), ARRAY[clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})])
ON CONFLICT (key) DO UPDATE SET (attempts, window_ends_at, blocks, under_way) = (
  SELECT
    attempts + 1,
    CASE
      WHEN is_over THEN EXCLUDED.window_ends_at
      WHEN attempts = $2 THEN now() + make_interval(secs => LEAST($3, ${WINDOW_SECONDS} * 2.0 ^ LEAST(t.blocks, 20)))
      ELSE t.window_ends_at
    END,
    CASE
      WHEN t.window_ends_at <= now() - interval '1 hour' THEN 0
      WHEN attempts = $2 AND NOT is_over THEN t.blocks + 1
      ELSE t.blocks
    END,
    CASE WHEN attempts >= $2 THEN '{}' ELSE under_way || GREATEST(clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
      (SELECT max(lease) + interval '1 microsecond' FROM unnest(under_way) AS lease)) END
  FROM (SELECT is_over, under_way, CASE WHEN is_over THEN cardinality(under_way) ELSE t.attempts END AS attempts
    FROM (SELECT t.window_ends_at <= now() AS is_over,
      ARRAY(SELECT lease FROM unnest(t.under_way) AS lease WHERE lease > now()) AS under_way) AS live) AS so_far)
WHERE NOT EXISTS (SELECT FROM unnest(t.under_way) AS lease WHERE lease > now())
  OR CASE WHEN t.window_ends_at <= now() THEN cardinality(t.under_way) ELSE t.attempts END < $2
RETURNING attempts, under_way[cardinality(under_way)]::text AS lease,
  GREATEST(1, ceil(extract(epoch FROM window_ends_at - now())))::integer AS seconds_left`;

/**
 * Settles this many places, and records the event, if there is one. Each place is settled once: its lease is gone afterwards. A failure after
 * the window's end is the first of a new window. Rows are always locked in the same order. $1 is the outcome; then the places; then the event.
 */
const settle = (places: number, isRecorded: boolean) => {
  const given = Array.from({ length: places }, (_, i) => [2, 3, 4].map((at) => `$${at + 3 * i}`));
  // Besides the join, which PostgreSQL would make by reading the table whole while it is small.
  const isGiven = `t.key IN (${given.map(([key]) => key).join(', ')})`;
  return `WITH places AS MATERIALIZED (
  SELECT t.key, given.lease, given.slides
  FROM (VALUES ${given.map(([key, lease, slides]) => `(${key}::bytea, ${lease}::timestamptz, ${slides}::boolean)`).join(', ')})
    AS given (key, lease, slides) JOIN login_throttle t ON t.key = given.key WHERE ${isGiven}
  ORDER BY t.key FOR UPDATE OF t
), settled AS (
  UPDATE login_throttle t SET
    under_way = array_remove(t.under_way, places.lease),
    attempts = CASE
      WHEN $1::text <> 'failed' THEN t.attempts - 1
      WHEN t.window_ends_at <= now() THEN cardinality(t.under_way)
      ELSE t.attempts
    END,
    window_ends_at = CASE
      WHEN $1 = 'failed' AND (places.slides OR t.window_ends_at <= now()) THEN now() + make_interval(secs => ${WINDOW_SECONDS})
      ELSE t.window_ends_at
    END,
    blocks = CASE WHEN $1 = 'signed-in' THEN 0 ELSE t.blocks END
  FROM places WHERE t.key = places.key AND ${isGiven} AND places.lease = ANY (t.under_way)
) ${isRecorded ? recordEventIf('(SELECT) AS told', 2 + 3 * places) : 'SELECT'}`;
};

const FORGET = 'DELETE FROM login_throttle WHERE key = ANY ($1::bytea[])';

/** What failures are counted for. */
export interface Subject {
  /**
   * `passkeys`: an address from which passkeys are sent, since guesses at passwords do not keep anybody from using one; `device`: a browser
   * in which the member has signed in before.
   */
  readonly kind: 'address' | 'passkeys' | 'account' | 'device';
  /** The address; the name in the form in which names are compared, also one that nobody has; or the id of the browser. */
  readonly of: string | undefined;
}

export interface Blocked {
  readonly kind: Subject['kind'];
  readonly retryAfterSeconds: number;
  /** This attempt began the block. */
  readonly first: boolean;
}

/** An attempt that may check the password. */
export interface ReservedAttempt {
  /** The most attempts that one of its subjects has in its window: failures, and those in progress with this one. */
  readonly attempts: number;
  /**
   * @param event recorded with it, in the same statement
   * @throws what the database throws: the attempt then counts as a failure
   */
  settle(settlement: 'signed-in' | 'failed', event?: LoneEvent): Promise<void>;
  /** Gives the places back: the password was not checked, so the attempt is not counted. */
  withdraw(): void;
}

/** The place taken for one subject. */
interface Taken {
  readonly key: Buffer;
  /** Key of its queue. */
  readonly id: string;
  readonly lease: string | null;
  readonly slides: boolean;
  readonly attempts: number;
}

/** The attempts that wait for a place of one subject on this instance, first come first served: one statement at a time, however many wait. */
class Line extends Semaphore {
  /** A place was given back here, so there is no need to wait for the next check. */
  wake = (): void => undefined;

  constructor() {
    super(1, MOST_WAITING, 0, () => new Busy());
  }
}

/**
 * Bounds guessing, for all instances together: per account, whatever the address; per address (RATE_LIMIT_AUTH a
 * minute), whatever the account; and per browser in which the member has signed in before, instead of both.
 *
 * Only failures count. An attempt in progress takes a place until its outcome is known; if none is free, it waits.
 *
 * Not rate-limiter-flexible, whose PostgreSQL store goes by each instance's own clock, has fixed windows only (twice
 * the allowance around their edge), and names its statements, which the embedded database cannot take.
 */
@Injectable()
export class SignInThrottle {
  readonly #hmac: Hmac;
  readonly #allowances: Readonly<Record<Subject['kind'], Allowance>>;
  readonly #lines = new Map<string, Line>();

  constructor(
    private readonly database: Database,
    config: Config,
  ) {
    this.#hmac = new Hmac(config.secrets, 'sign-in-throttle');
    const perAddress: Allowance = {
      failures: config.rateLimits.auth,
      slides: false, // many members may share an address: there is hardly a quiet minute
      longestBlockSeconds: WINDOW_SECONDS,
    };
    this.#allowances = {
      account: PER_ACCOUNT,
      device: PER_ACCOUNT,
      address: perAddress,
      passkeys: perAddress,
    };
  }

  /** Forgets the failures, and ends the block. */
  async forget(subject: Subject): Promise<void> {
    await this.database.prepared(FORGET, [this.#keysOf(subject)]);
  }

  /**
   * Takes a place of each subject, or of none.
   *
   * @param deadline moment of performance.now() until which it waits
   * @throws Busy if all places were taken by attempts in progress for the whole time
   */
  async take(subjects: readonly Subject[], deadline: number): Promise<ReservedAttempt | Blocked> {
    const taken: Taken[] = [];
    const withdraw = () => {
      if (taken.length > 0) void insist(() => this.#settle(taken, 'withdrawn'));
    };
    try {
      for (const subject of subjects) {
        if (this.#allowances[subject.kind].failures === 0) continue; // switched off
        for (const key of this.#keysOf(subject)) {
          const result = await this.#takeOne(subject.kind, key, deadline);
          if ('retryAfterSeconds' in result) {
            withdraw();
            return result;
          }
          taken.push(result);
        }
      }
    } catch (error) {
      withdraw();
      throw error;
    }
    const attempts = Math.max(0, ...taken.map((each) => each.attempts));
    return { attempts, settle: (settlement, event) => this.#settle(taken, settlement, event), withdraw };
  }

  async #settle(
    taken: readonly Taken[],
    settlement: 'signed-in' | 'failed' | 'withdrawn',
    event?: LoneEvent,
  ): Promise<void> {
    if (taken.length === 0) return; // all its limits are switched off
    const places = taken.flatMap(({ key, lease, slides }) => [key, lease, slides]);
    const statement = settle(taken.length, event !== undefined);
    await this.database.prepared(statement, [settlement, ...places, ...(event ? eventValues(event) : [])]);
    for (const { id } of taken) this.#lines.get(id)?.wake();
  }

  /**
   * The keys under which its failures are counted: under SECRET_KEY and the previous one, in the same order everywhere, so that instances
   * that disagree about which is current, while it is being changed, count together.
   */
  #keysOf({ kind, of }: Subject): Buffer[] {
    const name = kind === 'address' || kind === 'passkeys' ? networkOf(of) : of;
    return this.#hmac.everyOf(`${kind}:${name}`).toSorted(Buffer.compare);
  }

  async #takeOne(kind: Subject['kind'], key: Buffer, deadline: number): Promise<Taken | Blocked> {
    const id = key.toString('base64');
    const result = this.#lines.has(id) ? undefined : await this.#try(kind, key, id);
    if (result) return result;
    const line = this.#lines.get(id) ?? new Line();
    this.#lines.set(id, line);
    const takeInTurn = async () => {
      for (;;) {
        const woken = new Promise<void>((resolve) => (line.wake = resolve));
        const taken = await this.#try(kind, key, id);
        if (taken) return taken;
        await Promise.race([woken, setTimeout(POLL_MS)]);
        if (deadline <= performance.now()) throw new Busy();
      }
    };
    try {
      return await line.take(takeInTurn, deadline - performance.now());
    } finally {
      if (line.counts.running === 0) this.#lines.delete(id);
    }
  }

  /** @returns undefined if every place is taken, and some may be given back */
  async #try(kind: Subject['kind'], key: Buffer, id: string): Promise<Taken | Blocked | undefined> {
    const { failures, slides, longestBlockSeconds } = this.#allowances[kind];
    const [row] = await this.database.prepared<{
      attempts: number;
      lease: string | null;
      seconds_left: number;
    }>(TAKE, [key, failures, longestBlockSeconds]);
    if (!row) return undefined;
    const { attempts, lease, seconds_left } = row;
    if (attempts > failures)
      return { kind, retryAfterSeconds: seconds_left, first: attempts === failures + 1 };
    return { key, id, lease, slides, attempts };
  }
}

/** Gives places back in the background: many are given back at once, just when there is too much to do, and nobody should wait for that. */
async function insist(task: () => Promise<void>): Promise<void> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    try {
      await task();
      return;
    } catch {
      await setTimeout(POLL_MS);
    }
  }
}
