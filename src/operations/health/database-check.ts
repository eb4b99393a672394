import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Pool } from 'pg';
import { databaseAddress, isDirect } from '../../database/postgres/data-source.js';
import { openPool } from '../../database/postgres/session.js';
import { mismatchOf, readSchema } from '../../database/schema/schema.js';
import { Config } from '../../config/config.js';
import { TtlMemo } from '../../runtime/ttl-memo.js';

/** Maximum age of a result, in ms, so that frequent probes cause few statements. */
const MAX_AGE_MS = 250;

interface DatabaseState {
  /** Whether the database accepts writes; a standby does not. */
  readonly writable: boolean;
  /** Reason why this version cannot use the schema; undefined if it can. */
  readonly mismatch: string | undefined;
}

/** Checks the database on its own connection, so that it does not wait for busy pools. */
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

  /** @throws Error if the database is unreachable or too slow, or its schema cannot be read */
  read(): Promise<DatabaseState> {
    return this.#recent.find();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#pool.end();
  }

  async #look(): Promise<DatabaseState> {
    const client = await this.#pool.connect();
    const broken = () => undefined; // the pending query reports the error
    client.on('error', broken);
    let writable = false;
    try {
      const query = async (sql: string) => (await client.query(sql)).rows as unknown[];
      const [role] = await query(`SELECT current_setting('transaction_read_only') = 'off' AS writable`);
      ({ writable } = role as { writable: boolean });
      return { writable, mismatch: mismatchOf(await readSchema({ query }))?.predicate };
    } finally {
      client.off('error', broken);
      // Closes a connection to a read-only database: the next one may reach the new primary.
      client.release(!writable);
    }
  }
}
