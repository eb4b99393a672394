import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Pool, QueryConfig } from 'pg';
import { DataSource } from 'typeorm';
import { createDataSource, isDirect, nameOf, type BackgroundUse } from './postgres/data-source.js';
import { currentCaller } from './postgres/callers.js';
import { PipelinedReads } from './postgres/pipelined-reads.js';
import type { NamedStatement } from './postgres/read-connection.js';
import { Semaphore } from './postgres/semaphore.js';
import { Unavailable } from './postgres/unavailable.js';
import { Config } from '../config/config.js';

/** More requests than this for every connection waiting for one are refused at once instead. */
const WAITERS_PER_CONNECTION = 20;

/** How long a write may wait for a row that others hold. */
export const LOCK_PATIENCE_MS = 2_000;
const LOCK_PAUSE_MS = 50;
/** PostgreSQL, appendix A. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Share of the connections for long statements. */
const LONG_SHARE = 0.2;

interface LongStatement {
  readonly name?: string;
  readonly text: string;
}

/** The methods for reading members' data, from the primary or from replicas. */
export type Reads = Pick<Database, 'read' | 'rows' | 'long'>;

/**
 * Runs statements on TypeORM's pool without its layers: the only way in which requests read.
 * Writes of several statements go through `dataSource.transaction`.
 */
@Injectable()
export class Database {
  readonly #pool: Pool;
  readonly #mostWaiting: number;
  /** Undefined for the embedded database, with its one session for all connections, and if statements carry request ids. */
  readonly #pipelined: PipelinedReads | undefined;
  /** Whether sessions are not shared, so a statement that pg prepared still exists the next time. */
  readonly #ownSessions: boolean;
  readonly #long: Semaphore;
  readonly #background = new Map<BackgroundUse, Promise<DataSource>>();
  /** Number of requests refused because too many were waiting for a connection. */
  refusals = 0;

  constructor(
    readonly dataSource: DataSource,
    private readonly config: Config,
  ) {
    this.#pool = (dataSource.driver as unknown as { master: Pool }).master;
    this.#mostWaiting = config.databasePoolSize * WAITERS_PER_CONNECTION;
    this.#long = new Semaphore(
      Math.max(1, Math.floor(config.databasePoolSize * LONG_SHARE)),
      config.databasePoolSize * WAITERS_PER_CONNECTION,
      config.databaseDeadlines.connect,
    );
    this.#ownSessions = isDirect(config);
    this.#pipelined =
      config.databaseUrl === undefined || config.sqlRequestIds ? undefined : new PipelinedReads(config);
  }

  /**
   * Runs a read of the hot path: constant text, done in well under a millisecond.
   *
   * @throws Unavailable when too many requests wait for a connection already
   */
  read<Row>(statement: NamedStatement, values: unknown[]): Promise<Row[]> {
    const { name, text } = statement;
    const pooled = () => this.#query<Row>(this.#ownSessions ? { name, text, values } : { text, values });
    return this.#pipelined ? this.#pipelined.rows<Row>(statement, values, pooled) : pooled();
  }

  /**
   * Runs any other statement on a connection of the pool.
   *
   * @throws Unavailable when too many requests wait for a connection already
   */
  async rows<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return this.#query({ text, values });
  }

  /**
   * Runs any other statement of constant text, as a prepared statement: never one with values in its text.
   *
   * @throws Unavailable when too many requests wait for a connection already
   */
  async prepared<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return this.#query(this.#ownSessions ? { name: nameOf(text), text, values } : { text, values });
  }

  /**
   * Runs a statement like {@link prepared}, and again if others hold the row that it changes, for two seconds: a feed or an import writes
   * many rows in one transaction. In between it holds no connection.
   *
   * @param beforeAgain called before each further attempt
   * @throws Unavailable when too many requests wait for a connection already
   */
  async patient<Row>(text: string, values: unknown[], beforeAgain: () => Promise<void>): Promise<Row[]> {
    const latest = performance.now() + LOCK_PATIENCE_MS;
    for (;;) {
      try {
        return await this.prepared<Row>(text, values);
      } catch (error) {
        if ((error as { code?: unknown }).code !== LOCK_NOT_AVAILABLE || performance.now() > latest)
          throw error;
        await setTimeout(Math.random() * LOCK_PAUSE_MS);
        await beforeAgain();
      }
    }
  }

  /**
   * Runs a statement that takes time in proportion to the member's rows; only a few at once, to leave connections for all others.
   *
   * @param statement with a name if its text never varies
   * @throws Unavailable when too many of these wait already, or this one waited as long as for a connection
   */
  async long<Row>({ name, text }: LongStatement, values: unknown[]): Promise<Row[]> {
    return this.#long.take(() =>
      this.#query({ ...(name !== undefined && this.#ownSessions ? { name } : {}), text, values }),
    );
  }

  /**
   * Connections for background work, opened when they are first needed: the database may be away at the start, and most instances
   * never need some. What failed is tried again by the next who asks.
   */
  background(use: BackgroundUse): Promise<DataSource> {
    let opening = this.#background.get(use);
    if (!opening) {
      this.#background.set(use, (opening = createDataSource(this.config, use).initialize()));
      opening.catch(() => this.#background.delete(use));
    }
    return opening;
  }

  /** Connections in use and idle, and requests that wait for one. */
  poolState(): { busy: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  /** For each open connection for pipelined reads, the number of statements in progress. */
  pipelinesUnderWay(): number[] {
    return this.#pipelined?.connections.map(({ underWay }) => underWay) ?? [];
  }

  async end(): Promise<void> {
    await this.#pipelined?.end();
    await Promise.allSettled(
      [...this.#background.values()].map(async (opening) => (await opening).destroy()),
    );
    await this.dataSource.destroy();
  }

  async #query<Row>(query: QueryConfig): Promise<Row[]> {
    if (currentCaller() && this.#pool.waitingCount >= this.#mostWaiting) {
      this.refusals++;
      throw new Unavailable('too many requests wait for the database');
    }
    if (this.config.sqlRequestIds) return this.#queryInContext(query);
    return (await this.#pool.query(query)).rows as Row[];
  }

  /** Pool.query would run a waiting statement in the context, and under the id, of the request that freed the connection. */
  async #queryInContext<Row>(query: QueryConfig): Promise<Row[]> {
    const client = await this.#pool.connect();
    let failed = true;
    try {
      const { rows } = await client.query(query);
      failed = false;
      return rows as Row[];
    } finally {
      client.release(failed);
    }
  }
}
