import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import type { Pool } from 'pg';
import { databaseAddress, MIGRATIONS } from '../../database/data-source.js';
import { Recent } from './recent.js';
import { Config } from '../../config/config.js';

/** A balancer hears of a change so much later at most; a flood of questions costs four statements a second. */
const MAX_AGE_MS = 250;

export interface DatabaseState {
  /** Not a standby, nor set to be read only. */
  readonly writable: boolean;
  /** Every migration of this version has run. */
  readonly migrated: boolean;
}

/**
 * Whether the database can serve, asked on a connection of its own: that the pool is busy says nothing about it, and no flood
 * of requests stands before the question.
 */
@Injectable()
export class DatabaseCheck implements OnApplicationShutdown {
  readonly #pool: Pool;
  readonly #recent = new Recent(MAX_AGE_MS, () => this.#look());

  constructor(config: Config) {
    const { connect, statement } = config.databaseDeadlines;
    const { url, username, ...address } = databaseAddress(config, 'requests');
    this.#pool = new pg.Pool({
      ...(url === undefined ? { ...address, user: username } : { connectionString: url }),
      max: 1,
      application_name: 'public-user-api readiness',
      connectionTimeoutMillis: connect,
      statement_timeout: statement,
      query_timeout: statement + 50,
      keepAlive: true,
    });
    this.#pool.on('error', () => undefined); // it broke while idle: the next question makes another
  }

  /** @throws as pg does where the database is away or does not answer in time */
  read(): Promise<DatabaseState> {
    return this.#recent.find();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#pool.end();
  }

  async #look(): Promise<DatabaseState> {
    const { rows } = await this.#pool.query<DatabaseState>(
      `SELECT current_setting('transaction_read_only') = 'off' AS writable,
         (SELECT count(*) FROM migrations WHERE name = ANY ($1)) = $2 AS migrated`,
      [MIGRATIONS.map(({ name }) => name), MIGRATIONS.length],
    );
    return rows[0]!;
  }
}
