import type { Database } from '../../database/database.js';
import type { DeveloperRequestCount } from '../../database/schema/entities/credentials/auth-event.entity.js';

interface UsedInTime {
  /** Start of the hour or day, in the API's format, UTC. */
  readonly time: string;
  readonly accepted: number;
  /** Status 400 to 499. */
  readonly refused: number;
  readonly failed: number;
}

/** Requests in the hours that began within the last 24 hours, and within the last 30 days. */
interface Counted {
  readonly day: number;
  readonly month: number;
}

interface UsedApp extends Counted {
  readonly id: string;
  readonly name: string;
  /** The requests in {@link Counted} that were rejected or failed. */
  readonly errors_day: number;
  readonly errors_month: number;
  /** Percentile of the durations of the stored requests; null if there are none. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

type UsedInVain = Counted & Pick<DeveloperRequestCount, 'method' | 'route' | 'status' | 'error'>;

export interface DevelopedUse {
  readonly hours: readonly UsedInTime[];
  readonly days: readonly UsedInTime[];
  readonly apps: readonly UsedApp[];
  readonly errors: readonly UsedInVain[];
}

const MAX_ERRORS = 50;

/** SQL of `apps`: all own apps and keys of the member $1, or only the one with id $2. */
export const APPS = `
  SELECT id AS client_id, NULL::text AS key_id, name FROM oauth_clients WHERE owner_id = $1 AND ($2::text IS NULL OR id = $2)
  UNION ALL SELECT NULL, id, name FROM api_keys WHERE user_id = $1 AND self_issued AND ($2 IS NULL OR id = $2)`;

/** SQL of `uses`: the counts of {@link APPS} in the last 30 days; `recent`: in the last 24 hours. */
const usesOf = (column: string) => `
  SELECT n.*, n.hour > now() - interval '24 hours' AS recent FROM apps JOIN developer_request_counts n ON n.${column} = apps.${column}
  WHERE n.hour > now() - interval '30 days'`;
const USES = `WITH apps AS (${APPS}), uses AS (${usesOf('client_id')} UNION ALL ${usesOf('key_id')})`;

const sum = (condition: string) => `COALESCE(sum(requests) FILTER (WHERE ${condition}), 0)::float8`;

const inTime = (unit: 'hour' | 'day', count: number) => `${USES}
SELECT to_char(t, 'YYYY-MM-DD HH24:MI:SS') AS time, ${sum('status < 400')} AS accepted,
  ${sum('status BETWEEN 400 AND 499')} AS refused, ${sum('status >= 500')} AS failed
FROM (SELECT date_trunc('${unit}', now() AT TIME ZONE 'UTC') AS last) now,
  generate_series(last - interval '${count - 1} ${unit}', last, interval '1 ${unit}') t
LEFT JOIN uses ON date_trunc('${unit}', hour AT TIME ZONE 'UTC') = t GROUP BY t ORDER BY t`;

const [HOURS, DAYS] = [inTime('hour', 24), inTime('day', 30)];

const COUNTED = `${sum('recent')} AS day, ${sum('true')} AS month`;

const BY_APP = `${USES}, counted AS (
  SELECT COALESCE(client_id, key_id) AS id, ${COUNTED}, ${sum('recent AND status >= 400')} AS errors_day,
    ${sum('status >= 400')} AS errors_month FROM uses GROUP BY 1
)
SELECT c.*, apps.name, took.part[1] AS p50_ms, took.part[2] AS p95_ms
FROM counted c JOIN apps ON c.id = COALESCE(apps.client_id, apps.key_id) CROSS JOIN LATERAL (
  SELECT percentile_disc('{0.5,0.95}'::float8[]) WITHIN GROUP (ORDER BY duration_ms) AS part FROM developer_requests d
  WHERE d.client_id = apps.client_id OR d.key_id = apps.key_id
) took ORDER BY apps.name, c.id`;

const ERRORS = `${USES}
SELECT method, route, status, error, ${COUNTED} FROM uses WHERE status >= 400
GROUP BY method, route, status, error ORDER BY month DESC, method, route, status, error LIMIT ${MAX_ERRORS}`;

/** Counts the responses to a member's own apps and keys. @param of limits the count to the app or key with this id */
export async function developedUse(
  database: Pick<Database, 'rows'>,
  userId: number,
  of: string | null,
): Promise<DevelopedUse> {
  const read = <Row extends object>(statement: string) => database.rows<Row>(statement, [userId, of]);
  return {
    hours: await read<UsedInTime>(HOURS),
    days: await read<UsedInTime>(DAYS),
    apps: await read<UsedApp>(BY_APP),
    errors: await read<UsedInVain>(ERRORS),
  };
}
