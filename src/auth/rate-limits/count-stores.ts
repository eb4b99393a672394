import type { Config } from '../../config/config.js';
import { openPool } from '../../database/postgres/session.js';

/** Where instances add up the calls that each of them admitted. */
export interface CountStore {
  /** Adds calls, by key, in one round trip; the window, in minutes since 1970, is part of each key. @returns the sum of each key */
  add(window: number, calls: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
  end(): Promise<void>;
}

/** $1 window, $2 keys, $3 calls. Keys are in order, so instances wait for one another and never deadlock. Old rows are swept. */
const ADD = `INSERT INTO rate_limit_counts AS c (key, window_number, used)
SELECT key, $1::bigint, calls FROM unnest($2::text[], $3::integer[]) AS added (key, calls) ORDER BY key
ON CONFLICT (key) DO UPDATE SET used = c.used + EXCLUDED.used RETURNING key, used`;

/** On its own connection, not through a pooler: exchanges never wait for requests, and the statement remains prepared. */
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

const ADD_SCRIPT = `local sums = {}
for i, key in ipairs(KEYS) do
  sums[i] = redis.call('INCRBY', key, ARGV[i])
  redis.call('EXPIRE', key, 120)
end
return sums`;

/** The client library is loaded only where it is used. It connects with the first command, and again for as long as it takes. */
export function redisCounts(url: string, { connect, lock }: Config['databaseDeadlines']): CountStore {
  const bounds = { maxRetriesPerRequest: 0, connectTimeout: connect, commandTimeout: lock };
  const opened = import('ioredis').then(({ Redis }) => {
    const redis = new Redis(url, { ...bounds, lazyConnect: true });
    return redis.on('error', () => undefined); // the command that fails reports it
  });
  return {
    async add(_window, calls) {
      const redis = await opened;
      const keys = [...calls.keys()].map((key) => `rate:${key}`);
      const sums = (await redis.eval(ADD_SCRIPT, keys.length, ...keys, ...calls.values())) as number[];
      return new Map([...calls.keys()].map((key, i) => [key, sums[i]!]));
    },
    end: async () => (await opened).disconnect(),
  };
}
