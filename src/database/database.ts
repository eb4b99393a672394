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

/** Maximum waiting statements per connection; {@link Database} rejects further statements of requests at once. */
const WAITERS_PER_CONNECTION = 20;

/** Time in ms for which {@link Database.patient} retries a write whose row is locked. */
export const LOCK_PATIENCE_MS = 2_000;
const LOCK_PAUSE_MS = 50;
const LOCK_NOT_AVAILABLE = '55P03';

const LONG_SHARE = 0.2;

export type Reads = Pick<Database, 'read' | 'rows' | 'long'>;

/** Runs single statements without TypeORM. For transactions, use `dataSource.transaction`. */
@Injectable()
export class Database {
  readonly #pool: Pool;
  readonly #maxWaiting: number;
  /** Undefined for the embedded database, which has one session, and if statements contain request ids. */
  readonly #pipelined: PipelinedReads | undefined;
  readonly #ownSessions: boolean;
  readonly #long: Semaphore;
  readonly #background = new Map<BackgroundUse, Promise<DataSource>>();
  /** Number of statements rejected because too many waited for a connection. */
  refusals = 0;

  constructor(
    readonly dataSource: DataSource,
    private readonly config: Config,
  ) {
    this.#pool = (dataSource.driver as unknown as { master: Pool }).master;
    this.#maxWaiting = config.databasePoolSize * WAITERS_PER_CONNECTION;
    this.#long = new Semaphore(
      Math.max(1, Math.floor(config.databasePoolSize * LONG_SHARE)),
      config.databasePoolSize * WAITERS_PER_CONNECTION,
      config.databaseDeadlines.connect,
    );
    this.#ownSessions = isDirect(config);
    this.#pipelined =
      config.databaseUrl === undefined || config.sqlRequestIds ? undefined : new PipelinedReads(config);
  }

  /** Runs a frequent read that has a constant text and takes well under 1 ms. */
  read<Row>(statement: NamedStatement, values: unknown[]): Promise<Row[]> {
    const { name, text } = statement;
    const pooled = () => this.#query<Row>(this.#ownSessions ? { name, text, values } : { text, values });
    return this.#pipelined ? this.#pipelined.rows<Row>(statement, values, pooled) : pooled();
  }

  /** Runs a statement without preparing it. */
  async rows<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return this.#query({ text, values });
  }

  /** Runs a statement whose text is constant; prepares it if possible. */
  async prepared<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return this.#query(this.#ownSessions ? { name: nameOf(text), text, values } : { text, values });
  }

  /** Runs a statement like {@link prepared}; retries for 2 s while a row is locked. @param beforeAgain runs before each retry */
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

  /** Runs a statement that reads many rows; few may run at a time. @throws Unavailable if too many wait, or one waits too long */
  async long<Row>({ name, text }: Pick<QueryConfig, 'name' | 'text'>, values: unknown[]): Promise<Row[]> {
    return this.#long.take(() =>
      this.#query({ ...(name !== undefined && this.#ownSessions ? { name } : {}), text, values }),
    );
  }

  /** Returns the connections for background work; opens them on first use. After a failure, the next call tries again. */
  background(use: BackgroundUse): Promise<DataSource> {
    let opening = this.#background.get(use);
    if (!opening) {
      this.#background.set(use, (opening = createDataSource(this.config, use).initialize()));
      opening.catch(() => this.#background.delete(use));
    }
    return opening;
  }

  poolState(): { busy: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  pipelinesInProgress(): number[] {
    return this.#pipelined?.connections.map(({ inProgress }) => inProgress) ?? [];
  }

  async end(): Promise<void> {
    await this.#pipelined?.end();
    await Promise.allSettled(
      [...this.#background.values()].map(async (opening) => (await opening).destroy()),
    );
    await this.dataSource.destroy();
  }

  async #query<Row>(query: QueryConfig): Promise<Row[]> {
    if (currentCaller() && this.#pool.waitingCount >= this.#maxWaiting) {
      this.refusals++;
      throw new Unavailable('too many requests wait for the database');
    }
    if (this.config.sqlRequestIds) return this.#queryInContext(query);
    return (await this.#pool.query(query)).rows as Row[];
  }

  /** Pool.query would run a waiting statement in the context of the request that released the connection. */
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
