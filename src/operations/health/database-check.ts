import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Pool } from 'pg';
import { databaseAddress, isDirect } from '../../database/postgres/data-source.js';
import { openPool } from '../../database/postgres/session.js';
import { mismatchOf, readSchema } from '../../database/schema/schema.js';
import { Config } from '../../config/config.js';
import { TtlMemo } from '../../runtime/ttl-memo.js';

/** Longest delay until a balancer learns of a change; a flood of probes costs at most twelve statements a second. */
const MAX_AGE_MS = 250;

interface DatabaseState {
  /** Neither a standby nor set to read only. */
  readonly writable: boolean;
  /**
   * Why this version cannot use the schema, as in “the database lacks migrations”; undefined if it can. An upgrade migrates first and then
   * restarts the servers one by one: those still running stay ready over newer migrations that are marked as compatible with them.
   */
  readonly mismatch: string | undefined;
}

/**
 * Checks whether the database can serve, on its own connection: a busy pool says nothing about that, and no flood of requests
 * delays the check.
 */
@Injectable()
export class DatabaseCheck implements OnApplicationShutdown {
  readonly #pool: Pool;
  readonly #recent = new TtlMemo(MAX_AGE_MS, () => this.#look());

  constructor(config: Config) {
    const { connect, statement } = config.databaseDeadlines;
    const { url, username, ...address } = databaseAddress(config, 'requests');
    this.#pool = openPool({
      ...(url === undefined ? { ...address, user: username } : { connectionString: url }),
      pooled: !isDirect(config),
      max: 1,
      application_name: 'public-user-api readiness',
      connectionTimeoutMillis: connect,
      statement_timeout: statement,
      query_timeout: statement + 50,
      keepAlive: true,
    });
  }

  /** @throws as pg does if the database is unreachable or does not respond in time */
  read(): Promise<DatabaseState> {
    return this.#recent.find();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#pool.end();
  }

  async #look(): Promise<DatabaseState> {
    const client = await this.#pool.connect();
    const broken = () => undefined; // the pending query reports it
    client.on('error', broken);
    let writable = false;
    try {
      const query = async (sql: string) => (await client.query(sql)).rows as unknown[];
      const [role] = await query(`SELECT current_setting('transaction_read_only') = 'off' AS writable`);
      ({ writable } = role as { writable: boolean });
      return { writable, mismatch: mismatchOf(await readSchema({ query }))?.predicate };
    } finally {
      client.off('error', broken);
      // The next connection may lead to another machine, which is the primary.
      client.release(!writable);
    }
  }
}
