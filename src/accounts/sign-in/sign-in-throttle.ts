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
  /** Maximum failures in a window; the next attempt starts a block. */
  readonly failures: number;
  readonly slides: boolean;
  /** Maximum length of a block. Up to this length, each new block is twice as long as the previous block. */
  readonly maxBlockSeconds: number;
}

/** Length of a window and of the first block, in seconds. */
const WINDOW_SECONDS = 60;

/** Limit per account or known browser. No setting disables it. */
const PER_ACCOUNT: Allowance = { failures: 10, slides: true, maxBlockSeconds: 900 };

/** Seconds after which an attempt without a result counts as a failure, since its server has probably stopped. */
const LEASE_SECONDS = 30;

/** Interval in ms between checks for a free permit, and between tries to release one. */
const POLL_MS = 50;

/** Maximum tries to release a permit; after the last try, the attempt counts as a failure. */
const MAX_TRIES = 10;

/** Maximum waiting attempts per subject on this instance. */
const MAX_WAITING = 150;

/**
 * Takes a permit before the password check, so that parallel guesses on all instances stay within the allowance. Each lease is later than
 * the key's other leases, even if the clock steps. Returns no row if all permits are taken, but attempts in progress may release some.
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

/** Settles each permit once, and records the event. Locks rows in key order, to prevent deadlocks. $1: outcome; then permits and event. */
const settle = (places: number, isRecorded: boolean) => {
  const given = Array.from({ length: places }, (_, i) => [2, 3, 4].map((at) => `$${at + 3 * i}`));
  // Repeats the join's condition: from the join alone, PostgreSQL would read a small table sequentially.
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

export interface Subject {
  /** `passkeys`: an address, counted separately so that password guesses do not block passkeys; `device`: a known browser. */
  readonly kind: 'address' | 'passkeys' | 'account' | 'device';
  /** The address, the browser's id, or the case-folded name, even if no member has this name. */
  readonly of: string | undefined;
}

export interface Blocked {
  readonly kind: Subject['kind'];
  readonly retryAfterSeconds: number;
  readonly first: boolean;
}

export interface ReservedAttempt {
  /** Highest count of any subject: failures plus attempts in progress, including this attempt. */
  readonly attempts: number;
  /** @param event recorded in the same statement @throws database errors: the attempt then counts as a failure */
  settle(settlement: 'signed-in' | 'failed', event?: LoneEvent): Promise<void>;
  /** Releases the permits without counting the attempt: the password was not checked. */
  withdraw(): void;
}

interface Taken {
  readonly key: Buffer;
  readonly id: string;
  readonly lease: string | null;
  readonly slides: boolean;
  readonly attempts: number;
}

/** Queues the waiting attempts of one subject on this instance (FIFO): only the first one checks for a free permit. */
class Line extends Semaphore {
  /** Starts the next check at once; called after this instance releases a permit. */
  wake = (): void => undefined;

  constructor() {
    super(1, MAX_WAITING, 0, () => new Busy());
  }
}

/** Limits failed sign-ins across all instances. The times are the database's, since the clocks of instances may differ. */
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
      slides: false, // many members may share an address, so an address rarely has a minute without failures
      maxBlockSeconds: WINDOW_SECONDS,
    };
    this.#allowances = {
      account: PER_ACCOUNT,
      device: PER_ACCOUNT,
      address: perAddress,
      passkeys: perAddress,
    };
  }

  async forget(subject: Subject): Promise<void> {
    await this.database.prepared(FORGET, [this.#keysOf(subject)]);
  }

  /** Takes a permit for every subject or for none. @param deadline by performance.now() @throws Busy if not all are free in time */
  async take(subjects: readonly Subject[], deadline: number): Promise<ReservedAttempt | Blocked> {
    const taken: Taken[] = [];
    const withdraw = () => {
      if (taken.length > 0) void insist(() => this.#settle(taken, 'withdrawn'));
    };
    try {
      for (const subject of subjects) {
        if (this.#allowances[subject.kind].failures === 0) continue; // disabled
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
    if (taken.length === 0) return; // all limits of the subjects are disabled
    const places = taken.flatMap(({ key, lease, slides }) => [key, lease, slides]);
    const statement = settle(taken.length, event !== undefined);
    await this.database.prepared(statement, [settlement, ...places, ...(event ? eventValues(event) : [])]);
    for (const { id } of taken) this.#lines.get(id)?.wake();
  }

  /** Keys under the current and the previous SECRET_KEY in a fixed order, so that instances count together during a key rotation. */
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

  /** @returns undefined if all permits are taken, but some may be released */
  async #try(kind: Subject['kind'], key: Buffer, id: string): Promise<Taken | Blocked | undefined> {
    const { failures, slides, maxBlockSeconds } = this.#allowances[kind];
    const [row] = await this.database.prepared<{
      attempts: number;
      lease: string | null;
      seconds_left: number;
    }>(TAKE, [key, failures, maxBlockSeconds]);
    if (!row) return undefined;
    const { attempts, lease, seconds_left } = row;
    if (attempts > failures)
      return { kind, retryAfterSeconds: seconds_left, first: attempts === failures + 1 };
    return { key, id, lease, slides, attempts };
  }
}

/** Tries to release permits up to MAX_TRIES times; never rejects. Callers do not wait for it. */
async function insist(task: () => Promise<void>): Promise<void> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    try {
      await task();
      return;
    } catch {
      await setTimeout(POLL_MS);
    }
  }
}
