import type { Config } from '../../config/config.js';
import { openPool } from '../../database/postgres/session.js';

/** A store in which instances add up their admitted requests. */
export interface CountStore {
  /** Adds requests by key in one round trip; each key includes its window (minutes since 1970). @returns the sum of each key */
  add(window: number, calls: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
  end(): Promise<void>;
}

/** $1 window, $2 keys, $3 requests. Sorted keys prevent deadlocks. The sweeper deletes old rows. */
const ADD = `INSERT INTO rate_limit_counts AS c (key, window_number, used)
SELECT key, $1::bigint, calls FROM unnest($2::text[], $3::integer[]) AS added (key, calls) ORDER BY key
ON CONFLICT (key) DO UPDATE SET used = c.used + EXCLUDED.used RETURNING key, used`;

/** Uses a separate connection without a pooler: exchanges never wait for requests, and the statement remains prepared. */
export function postgresCounts(url: string, { connect, lock }: Config['databaseDeadlines']): CountStore {
  const pool = openPool({
    connectionString: url,
    application_name: 'public-user-api limits',
    max: 1,
    connectionTimeoutMillis: connect,
    statement_timeout: lock,
    query_timeout: lock + 50,
    keepAlive: true,
  });
  return {
    async add(window, calls) {
      const values = [window, [...calls.keys()], [...calls.values()]];
      const { rows } = await pool.query({ name: 'add-counts', text: ADD, values, rowMode: 'array' });
      return new Map(rows as [string, number][]);
    },
    end: () => pool.end(),
  };
}
