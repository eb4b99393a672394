import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import type { Pool } from 'pg';
import { databaseAddress } from '../../database/data-source.js';
import { readSchema } from '../../database/schema.js';
import { Recent } from './recent.js';
import { Config } from '../../config/config.js';

/** A balancer hears of a change so much later at most; a flood of questions costs twelve statements a second. */
const MAX_AGE_MS = 250;

export interface DatabaseState {
  /** Not a standby, nor set to be read only. */
  readonly writable: boolean;
  /**
   * Every migration of this version has run. Newer ones are no matter here: an upgrade migrates first and restarts one server after
   * the other then, and those that still run must not end all at once.
   */
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
    const client = await this.#pool.connect();
    const broken = () => undefined; // whoever asks on it is told
    client.on('error', broken);
    let writable = false;
    try {
      const query = async (sql: string) => (await client.query(sql)).rows as unknown[];
      const [role] = await query(`SELECT current_setting('transaction_read_only') = 'off' AS writable`);
      ({ writable } = role as { writable: boolean });
      const { pending } = await readSchema({ query });
      return { writable, migrated: pending.length === 0 };
    } finally {
      client.off('error', broken);
      // The next question may be led to another machine, which is the primary.
      client.release(!writable);
    }
  }
}
