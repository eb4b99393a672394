import type { DataSource } from 'typeorm';

interface UsedOnOneDay {
  /** Day in UTC, such as `2026-01-31`. */
  readonly day: string;
  /** Name of the app or the key; null if it no longer exists. */
  readonly app_name: string | null;
  /** Host of the app's metadata document; null if there is none. */
  readonly app_host: string | null;
  readonly app_kind: 'client' | 'key';
  readonly scopes: readonly string[];
  readonly uses: number;
  readonly last_used_at: string;
}

interface SignInLine {
  readonly occurred_at: string;
  /** `upstream`: the external identity provider. */
  readonly method: 'password' | 'passkey' | 'upstream';
  /** Reason of a rejection, as in the audit log; null for a successful sign-in. */
  readonly reason: string | null;
  /** Short name, not the User-Agent header; null if unknown. */
  readonly browser: string | null;
  readonly system: string | null;
  /** The caller's network: /24 for IPv4, /48 for IPv6; `local` for a loopback address. */
  readonly network: string | null;
}

interface AccessEvent {
  readonly occurred_at: string;
  readonly type: (typeof ACCESS_EVENTS)[number];
  /** Name of the affected app or key; null if there is none, or it no longer exists. */
  readonly app_name: string | null;
  /** Whether the access of all apps was revoked. */
  readonly of_all_apps: boolean;
}

/** Types of the audit events in {@link Activity}. */
const ACCESS_EVENTS = [
  'passkey.added',
  'passkey.removed',
  'user.password_set',
  'user.password_switched',
  'consent.granted',
  'access.revoked',
  'key.created',
  'key.revoked',
  'calendar_link.created',
  'calendar_link.revoked',
  'user.exported',
] as const;

interface UsedByApp extends Pick<UsedOnOneDay, 'app_name'> {
  /** `others`: the sum of all apps without their own entry. */
  readonly app_kind: UsedOnOneDay['app_kind'] | 'others';
  /** Requests on each of {@link Activity.days}. */
  readonly counts: readonly number[];
}

/** Times are in the API's format; `used`, `signIns` and `events` begin with the latest. */
export interface Activity {
  /** Days in UTC, oldest first, such as `2026-01-31`. */
  readonly days: readonly string[];
  /** Most used apps first; `others` last. */
  readonly apps: readonly UsedByApp[];
  readonly used: readonly UsedOnOneDay[];
  readonly signIns: readonly SignInLine[];
  readonly events: readonly AccessEvent[];
}

const DAYS = 90;
/** Number of apps with their own series in the chart; the other apps form one series. */
const SHOWN_APPS = 5;
const SHOWN = 200;
const SHOWN_EVENTS = 50;
/** Maximum per kind (successful, rejected), so that rejections, which anyone can cause, do not displace successful sign-ins. */
const SHOWN_SIGN_INS = 25;

/** Returns a row per day and app, or per day without use. All apps beyond {@link SHOWN_APPS} count as one app. */
const FIND_DAYS = `WITH used AS (
  SELECT day, app_kind, app_id, sum(uses) AS uses FROM member_usage
  WHERE user_id = $1 AND day > (now() AT TIME ZONE 'UTC')::date - ${DAYS} GROUP BY day, app_kind, app_id
), apps AS (
  SELECT app_kind, app_id, LEAST(row_number() OVER (ORDER BY sum(uses) DESC, app_kind, app_id), ${SHOWN_APPS + 1}) AS place
  FROM used GROUP BY app_kind, app_id
)
SELECT to_char(d, 'YYYY-MM-DD') AS day, a.place, sum(u.uses)::float8 AS uses, min(a.app_kind) AS app_kind,
  min(COALESCE(c.name, k.name)) AS app_name
FROM generate_series((now() AT TIME ZONE 'UTC')::date - ${DAYS - 1}, (now() AT TIME ZONE 'UTC')::date, interval '1 day') d
LEFT JOIN (used u JOIN apps a USING (app_kind, app_id)) ON u.day = d::date
LEFT JOIN oauth_clients c ON a.app_kind = 'client' AND c.id = a.app_id
LEFT JOIN api_keys k ON a.app_kind = 'key' AND k.id = a.app_id
GROUP BY d, a.place ORDER BY d`;

interface UsedOnDay extends Pick<UsedOnOneDay, 'app_name' | 'app_kind' | 'uses'> {
  readonly day: string;
  readonly place: number | null;
}

function byApp(rows: readonly UsedOnDay[]): Pick<Activity, 'days' | 'apps'> {
  const days = [...new Set(rows.map(({ day }) => day))];
  const places = Map.groupBy(
    rows.filter(({ place }) => place !== null),
    ({ place }) => place!,
  );
  const apps = [...places]
    .toSorted(([one], [other]) => one - other)
    .map(([place, ofApp]) => {
      const isNamed = place <= SHOWN_APPS;
      const uses = new Map(ofApp.map((row) => [row.day, row.uses]));
      return {
        app_name: isNamed ? ofApp[0]!.app_name : null,
        app_kind: isNamed ? ofApp[0]!.app_kind : ('others' as const),
        counts: days.map((day) => uses.get(day) ?? 0),
      };
    });
  return { days, apps };
}

const FIND_SIGN_INS = `SELECT api_time(e.occurred_at) AS occurred_at, e.details->>'method' AS method, e.details->>'reason' AS reason,
  e.details->>'browser' AS browser, e.details->>'system' AS system,
  CASE WHEN e.ip <<= inet '127.0.0.0/8' OR e.ip = inet '::1' THEN 'local'
    ELSE network(set_masklen(e.ip, CASE family(e.ip) WHEN 4 THEN 24 ELSE 48 END))::text END AS network
FROM unnest(ARRAY['sign_in.succeeded', 'sign_in.refused']) AS kind (type) CROSS JOIN LATERAL (
  SELECT * FROM auth_events WHERE user_id = $1 AND type = kind.type AND occurred_at > now() - interval '${DAYS} days'
  ORDER BY occurred_at DESC, id DESC LIMIT ${SHOWN_SIGN_INS}
) e ORDER BY e.occurred_at DESC, e.id DESC`;

/** Reads the use of a member's data (recorded by {@link Usage}), sign-ins and access events of the last 90 days. */
export async function readActivity(dataSource: DataSource, userId: number): Promise<Activity> {
  const onDays = await dataSource.query<UsedOnDay[]>(FIND_DAYS, [userId]);
  const used = await dataSource.query<UsedOnOneDay[]>(
    `SELECT to_char(u.day, 'YYYY-MM-DD') AS day, COALESCE(c.name, k.name) AS app_name,
  CASE WHEN c.document_read_at IS NOT NULL THEN substring(c.id FROM '^https://([^/]+)') END AS app_host,
  u.app_kind, array_agg(u.scope) AS scopes, sum(u.uses)::float8 AS uses, api_time(max(u.last_used_at)) AS last_used_at
FROM member_usage u LEFT JOIN oauth_clients c ON u.app_kind = 'client' AND c.id = u.app_id
LEFT JOIN api_keys k ON u.app_kind = 'key' AND k.id = u.app_id
WHERE u.user_id = $1 AND u.day > (now() AT TIME ZONE 'UTC')::date - ${DAYS}
GROUP BY u.day, u.app_kind, u.app_id, c.id, k.id ORDER BY max(u.last_used_at) DESC, u.app_id LIMIT ${SHOWN}`,
    [userId],
  );
  const signIns = await dataSource.query<SignInLine[]>(FIND_SIGN_INS, [userId]);
  const events = await dataSource.query<AccessEvent[]>(
    `SELECT api_time(e.occurred_at) AS occurred_at, e.type, COALESCE(c.name, k.name) AS app_name,
  e.type = 'access.revoked' AND e.client_id IS NULL AS of_all_apps
FROM auth_events e LEFT JOIN oauth_clients c ON c.id = e.client_id LEFT JOIN api_keys k ON k.id = e.key_id
WHERE e.user_id = $1 AND e.type = ANY ($2) AND e.occurred_at > now() - interval '${DAYS} days'
ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${SHOWN_EVENTS}`,
    [userId, ACCESS_EVENTS],
  );
  return { ...byApp(onDays), used, signIns, events };
}
