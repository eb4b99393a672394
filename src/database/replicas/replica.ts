import { setTimeout } from 'node:timers/promises';
import type { Pool, QueryConfig } from 'pg';
import type { Config } from '../../config/config.js';
import { REQUEST_PLANS } from '../postgres/data-source.js';
import { PipelinedReads } from '../postgres/pipelined-reads.js';
import { SERVER, type ReadConsistency } from './primary-wal.js';
import type { NamedStatement, ReadConnection } from '../postgres/read-connection.js';
import { commented } from '../postgres/callers.js';
import { openPool } from '../postgres/session.js';
import { Semaphore } from '../postgres/semaphore.js';

/** Minimum time in ms between two checks of a session's position that reads start. */
const LOOK_AGAIN_MS = 2;
/** Time in ms for which a check is valid, since a server may be promoted. */
const LOOK_COUNTS_MS = 1_000;
/** Maximum duration of a pool's statement in ms, so that the primary has time to repeat the statement. */
const MAX_MS = 300;
const IDLE_MS = 10_000;
/** Share of the pool for long statements; another server runs further long statements immediately. */
const LONG_SHARE = 0.2;

/** Keeps sessions of a promoted server read-only. */
const SESSION = `-c default_transaction_read_only=on ${REQUEST_PLANS}`;

/** Reads the server's state: among others, its replay position, and whether it has the proof $1. */
const LOOK = {
  name: 'look-at-replica',
  text: `SELECT pg_is_in_recovery() AS is_standby, COALESCE(pg_last_wal_replay_lsn() - '0/0', 0)::float8 AS position,
  ${SERVER} AS server,
  EXISTS (SELECT FROM change_marks WHERE taken_at = $1::timestamptz) AS is_proven,
  COALESCE(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8 AS age`,
};

interface Look {
  is_standby: boolean;
  position: number;
  server: string;
  is_proven: boolean;
  /** Age of the last replayed commit, in seconds: the lag if the replica is behind. */
  age: number;
}

interface Seen extends Look {
  readonly epoch: number;
  /** Time of the query, by `performance.now()`. */
  readonly askedAt: number;
}

/** A streaming replica, whose reads are as recent as required. If a read returns undefined or no rows, another server must serve it. */
export class Replica {
  readonly #reads: PipelinedReads;
  readonly #pool: Pool;
  readonly #long: Semaphore;
  /** The last check of each session: a new connection may reach another or a restored server. */
  readonly #seen = new WeakMap<ReadConnection, Seen>();
  readonly #lookedAt = new WeakMap<ReadConnection, number>();

  constructor(
    private readonly config: Config,
    url: string,
  ) {
    const { connect, lock } = config.databaseDeadlines;
    this.#long = new Semaphore(Math.max(1, Math.floor(config.databasePoolSize * LONG_SHARE)), 0, 0);
    this.#reads = new PipelinedReads(config, { connectionString: url, options: SESSION });
    this.#pool = openPool({
      connectionString: url,
      options: SESSION,
      application_name: 'public-user-api',
      max: config.databasePoolSize,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: Math.min(connect, MAX_MS),
      lock_timeout: lock,
      statement_timeout: MAX_MS,
      query_timeout: MAX_MS + 50,
      keepAlive: true,
    });
    this.#pool.on('connect', (client) => client.on('error', () => undefined)); // for clients in use: their next statement fails
  }

  /** Returns a session known to be recent enough. If there is none, starts checks for the next call. */
  sessionWith(need: ReadConsistency): ReadConnection | undefined {
    for (let turn = 0; turn < 2; turn++) {
      const session = this.#reads.next();
      if (session === undefined) continue;
      if (suffices(this.#seen.get(session), need)) return session;
      if (performance.now() - (this.#lookedAt.get(session) ?? -Infinity) >= LOOK_AGAIN_MS)
        void this.#look(session, need);
    }
    return undefined;
  }

  look(need: ReadConsistency): void {
    for (const session of this.#reads.connections) void this.#look(session, need);
  }

  /** Runs a hot read. @returns undefined if no session is recent enough; undefined or no rows after a failure */
  async read<Row>(
    statement: NamedStatement,
    values: unknown[],
    need: ReadConsistency,
  ): Promise<Row[] | undefined> {
    if (this.config.sqlRequestIds) return this.query({ ...statement, values }, need); // a statement with a request id cannot be prepared
    const session = this.sessionWith(need);
    return session && this.#reads.rows<Row>(statement, values, () => Promise.resolve([]), session);
  }

  rows<Row>(text: string, values: unknown[], need: ReadConsistency): Promise<Row[] | undefined> {
    return this.query({ text, values }, need);
  }

  /** Runs a statement that reads many rows. @returns undefined if too many of these run, or if {@link query} returns undefined */
  async long<Row>(
    statement: QueryConfig,
    values: unknown[],
    need: ReadConsistency,
  ): Promise<Row[] | undefined> {
    return this.#long.take(() => this.query<Row>({ ...statement, values }, need)).catch(() => undefined);
  }

  /** Runs a statement in a pooled session. @returns undefined if the pool is busy, the server is not recent enough, or the read fails */
  async query<Row>(query: QueryConfig, need: ReadConsistency): Promise<Row[] | undefined> {
    // The pool may take long to notice that a server is down.
    if (this.#pool.waitingCount > 0 || this.sessionWith(need) === undefined) return undefined;
    try {
      const client = await this.#pool.connect();
      let failed = true;
      try {
        const askedAt = performance.now();
        const looks = await client.query<Look>({ ...LOOK, values: [need.proof] });
        const isRecentEnough = suffices({ ...looks.rows[0]!, epoch: need.epoch, askedAt }, need);
        const rows = isRecentEnough ? ((await client.query(commented(query))).rows as Row[]) : undefined;
        failed = false;
        return rows;
      } finally {
        client.release(failed);
      }
    } catch {
      return undefined; // if the statement is wrong, the primary will report the error
    }
  }

  /** Waits until the replica has the required position, or is the primary; at most until `latest` (`performance.now()`). */
  async reaches(need: () => ReadConsistency | undefined, latest: number): Promise<void> {
    for (let pause = 1; performance.now() < latest; pause = Math.min(2 * pause, 16)) {
      const needed = need();
      const [session] = this.#reads.connections;
      if (needed && session) {
        const isThere = () => {
          const seen = this.#seen.get(session);
          return suffices(seen, needed) || leads(seen, needed);
        };
        if (isThere()) return;
        await Promise.race([
          this.#look(session, needed),
          setTimeout(Math.max(1, latest - performance.now()), undefined, { ref: false }),
        ]);
        if (isThere()) return;
      }
      await setTimeout(pause);
    }
  }

  /** Returns the lag behind a position in seconds: 0 for the primary; Infinity if the server is down or seems not to follow the primary. */
  async lag(need: ReadConsistency): Promise<number> {
    const [session] = this.#reads.connections;
    const look = session && (await this.#look(session, need));
    if (look?.server === need.server) return 0;
    if (!look?.is_standby) return Infinity;
    if (look.position < need.position) return look.age;
    return look.is_proven ? 0 : Infinity;
  }

  async end(): Promise<void> {
    await Promise.allSettled([this.#reads.end(), this.#pool.end()]);
  }

  async #look(session: ReadConnection, { proof, epoch }: ReadConsistency): Promise<Look | undefined> {
    const askedAt = performance.now();
    this.#lookedAt.set(session, askedAt);
    const [look] = await this.#reads.rows<Look>(LOOK, [proof], () => Promise.resolve([]), session);
    if (!look) return undefined;
    this.#seen.set(session, { ...look, epoch, askedAt });
    return look;
  }
}

const isRecent = ({ askedAt }: Seen) => performance.now() - askedAt < LOOK_COUNTS_MS;

/** Tells whether the server follows the primary, and has the required position. */
function suffices(seen: Seen | undefined, need: ReadConsistency): boolean {
  if (!seen?.is_standby || !seen.is_proven || !isRecent(seen)) return false;
  return seen.epoch === need.epoch && seen.position >= need.position;
}

/** Tells whether the server is the primary itself. */
function leads(seen: Seen | undefined, need: ReadConsistency): boolean {
  return seen?.is_standby === false && seen.server === need.server && isRecent(seen);
}
