import pg from 'pg';
import type { Config } from '../../config/config.js';
import type { Database } from '../../database/database.js';
import { WINDOW_SECONDS } from './shared-counts.js';
import type { Answer, Ask, Presence, SharedCounts, Told, Word } from './shared-counts.js';

const SWEEP_BATCH = 10_000;

const NUMBER = `floor(extract(epoch FROM now()) / ${WINDOW_SECONDS})`;

/**
 * One row per key, by the database's clock. A row that another instance moved on to the next window while this statement waited for
 * it is counted in that window. Keys are in order, so instances wait for one another and never deadlock. A key that is only
 * queried, as each key in use is now and then, is read and not written.
 * $1 quota, $2 window, $3 keys, $4 spent, $5 wanted.
 */
const SETTLE = `WITH asked AS (
  SELECT key, spent, wanted, spent = 0 AND wanted = 0 AS only_heard, number::bigint
  FROM unnest($3::text[], $4::integer[], $5::integer[]) AS asked (key, spent, wanted), ${NUMBER} AS number
), settled AS (
  INSERT INTO rate_limit_counts AS c (key, window_number, used, granted)
  SELECT key, number, spent + GREATEST(0, granted), granted FROM (
    SELECT key, number, spent, LEAST(wanted, GREATEST(0, $1::integer - spent)) AS granted FROM (
      SELECT key, number, CASE number WHEN $2::bigint THEN spent ELSE 0 END AS spent,
        CASE number WHEN $2 THEN wanted ELSE GREATEST(0, wanted) END AS wanted
      FROM asked WHERE NOT only_heard) AS asked) AS first_of_window
  ORDER BY key
  ON CONFLICT (key) DO UPDATE SET (window_number, used, granted) = (
    SELECT number, GREATEST(0, before + spent + granted), granted FROM (
      SELECT number, before, spent, LEAST(EXCLUDED.granted, GREATEST(0, $1 - before - spent)) AS granted FROM (
        SELECT EXCLUDED.used - GREATEST(0, EXCLUDED.granted) AS spent,
          CASE WHEN same THEN c.window_number ELSE EXCLUDED.window_number END AS number,
          CASE WHEN same THEN c.used ELSE 0 END AS before
        FROM (SELECT c.window_number BETWEEN EXCLUDED.window_number AND EXCLUDED.window_number + 1 AS same) AS w) AS r) AS r)
  RETURNING key, window_number::bigint, used, granted
), told AS (
  TABLE settled
  UNION ALL
  SELECT key, CASE WHEN same THEN c.window_number ELSE number END, CASE WHEN same THEN c.used ELSE 0 END, 0
  FROM asked LEFT JOIN rate_limit_counts AS c USING (key), LATERAL (SELECT c.window_number BETWEEN number AND number + 1 AS same) AS w
  WHERE only_heard
)
SELECT key, window_number::integer, used, granted,
  ((window_number + 1) * ${WINDOW_SECONDS} - extract(epoch FROM now()))::float8 * 1000 AS milliseconds_left FROM told`;

/**
 * One row for all instances, so concurrent statements wait for one another and none overlooks another. $1 instance, $2 whether it
 * yields, $3 whether it leaves, $4 milliseconds.
 */
const ATTEND = `INSERT INTO rate_limit_instances AS i (latest, latest_until, others_until, alone)
SELECT $1::uuid, now + CASE WHEN $3::boolean THEN interval '0' ELSE lasting END, now + lasting, false
FROM (SELECT clock_timestamp() AS now, $4::float8 * interval '1 ms' AS lasting) AS t
ON CONFLICT (one) DO UPDATE SET (latest, latest_until, others_until, alone) = (
  SELECT CASE WHEN held THEN i.latest ELSE $1 END,
    CASE WHEN held THEN i.latest_until WHEN $3 THEN now ELSE now + lasting END,
    CASE WHEN held AND NOT $3 THEN GREATEST(i.others_until, now + lasting) WHEN held OR mine THEN i.others_until
      ELSE GREATEST(i.others_until, i.latest_until) END,
    held OR mine AND NOT $2::boolean AND NOT $3 AND (i.alone OR i.others_until <= now)
  FROM (SELECT now, lasting, i.latest = $1 AS mine, i.alone AND i.latest <> $1 AND i.latest_until > now AS held
    FROM (SELECT clock_timestamp() AS now, $4::float8 * interval '1 ms' AS lasting OFFSET 0) AS t) AS r)
RETURNING CASE WHEN latest <> $1 THEN 'wait' WHEN alone THEN 'alone' ELSE 'one of some' END AS state,
  others_until > clock_timestamp() AS others`;

interface Row extends Told {
  readonly window_number: number;
  readonly milliseconds_left: number;
}

/** Uses its own connection: limits still hold while requests wait for one from the pool. */
export class PostgresCounts implements SharedCounts {
  readonly #pool: pg.Pool;
  #swept = 0;

  private constructor(
    config: Config,
    private readonly database: Database,
  ) {
    const { connect, lock, statement } = config.databaseDeadlines;
    this.#pool = new pg.Pool({
      // Not through a pooler: its own session keeps its two statements prepared and never waits for others.
      connectionString: config.databaseDirectUrl,
      application_name: 'public-user-api limits',
      max: 1,
      idleTimeoutMillis: 0, // never released, or the next call would wait for a connection
      connectionTimeoutMillis: connect,
      lock_timeout: lock,
      statement_timeout: statement,
      query_timeout: statement + 50,
      keepAlive: true,
    });
    this.#pool.on('error', () => undefined); // the statement that fails reports it
  }

  /** Connects, or keeps trying in the background. */
  static async connect(config: Config, database: Database): Promise<PostgresCounts> {
    const counts = new PostgresCounts(config, database);
    await counts.#pool.query('SELECT').catch(() => undefined);
    return counts;
  }

  async attend(instance: string, word: Word, lastingMs: number): Promise<Presence> {
    const { rows } = await this.#pool.query<Presence>({
      name: 'attend-rate-limits',
      text: ATTEND,
      values: [instance, word === 'yields', word === 'leaves', lastingMs],
    });
    return rows[0]!;
  }

  async settle(quota: number, window: number, asks: readonly Ask[]): Promise<Answer> {
    const { rows } = await this.#pool.query<Row>({
      name: 'settle-rate-limits',
      text: SETTLE,
      values: [
        quota,
        window,
        asks.map(({ key }) => key),
        asks.map(({ spent }) => spent),
        asks.map(({ wanted }) => wanted),
      ],
    });
    const latest = rows.reduce((one, other) => (other.window_number > one.window_number ? other : one));
    void this.#sweep(latest.window_number);
    return {
      window: latest.window_number,
      millisecondsLeft: latest.milliseconds_left,
      told: rows.filter((row) => row.window_number === latest.window_number),
    };
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }

  /** Deletes, once per window, the keys unused in the last one. Rows locked by another instance are left to it. */
  async #sweep(window: number): Promise<void> {
    if (window === this.#swept) return;
    this.#swept = window;
    try {
      for (let deleted = SWEEP_BATCH; deleted === SWEEP_BATCH;) {
        const rows = await this.database.rows(
          `DELETE FROM rate_limit_counts WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM rate_limit_counts WHERE window_number < $1 LIMIT ${SWEEP_BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`,
          [window - 1],
        );
        deleted = rows.length;
      }
    } catch {
      // It is retried in the next window.
    }
  }
}
