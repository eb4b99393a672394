import { Inject, Injectable } from '@nestjs/common';
import type { Pool, QueryResultRow } from 'pg';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { Unavailable } from './unavailable.js';

/** SQL for the hot path. With a name it is parsed once per connection (a prepared statement). */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** More requests than this for every connection waiting for one are refused at once instead. */
const WAITERS_PER_CONNECTION = 20;

/**
 * Statements on TypeORM's own pool, without its layers: the one way in which requests read.
 * Writes of several statements go through `dataSource.transaction`.
 */
@Injectable()
export class Database {
  readonly #pool: Pool;
  readonly #mostWaiting: number;
  readonly #named: boolean;

  constructor(
    readonly dataSource: DataSource,
    @Inject(CONFIG) config: Config,
  ) {
    this.#pool = (dataSource.driver as unknown as { master: Pool }).master;
    this.#mostWaiting = config.databasePoolSize * WAITERS_PER_CONNECTION;
    // The embedded database is one session for all connections, where names would collide.
    this.#named = config.databaseUrl !== undefined;
  }

  /** @throws Unavailable when too many requests wait for a connection already */
  async rows<Row extends QueryResultRow>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    if (this.#pool.waitingCount >= this.#mostWaiting)
      throw new Unavailable('too many requests wait for the database');
    const { rows } = await this.#pool.query<Row>(
      this.#named
        ? { name: statement.name, text: statement.text, values: values as unknown[] }
        : { text: statement.text, values: values as unknown[] },
    );
    return rows;
  }

  /** The only row, or `undefined`. */
  async row<Row extends QueryResultRow>(
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Row | undefined> {
    return (await this.rows<Row>(statement, values))[0];
  }
}
