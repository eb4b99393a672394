import type { DataSource } from 'typeorm';

/** What an app or key used of a member on one day. */
interface UsedScope {
  /** `2026-01-31`, UTC. */
  readonly day: string;
  /** Name of the app or the key; null if it no longer exists. */
  readonly app_name: string | null;
  /** Of an app that is known by a document alone: the document's host. */
  readonly app_host: string | null;
  readonly app_kind: 'client' | 'key';
  readonly scope: string;
  readonly uses: number;
  /** In the API's form. */
  readonly last_used_at: string;
}

/** A sign-in, or a change of who has access. */
interface AccessEvent {
  /** In the API's form. */
  readonly occurred_at: string;
  readonly type: (typeof ACCESS_EVENTS)[number];
  /** Name of the app or the key that it concerns; null if there is none, or it no longer exists. */
  readonly app_name: string | null;
}

/** Events of the audit trail that members are shown. */
const ACCESS_EVENTS = [
  'sign_in.succeeded',
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

/** The use of a member's data, as the member sees it. */
export interface Activity {
  /** Requests of each of the last days, the oldest first. */
  readonly days: readonly { readonly day: string; readonly uses: number }[];
  /** The latest first. */
  readonly used: readonly UsedScope[];
  readonly events: readonly AccessEvent[];
}

const DAYS = 90;
const SHOWN = 200;
const SHOWN_EVENTS = 50;

/** Reads who used a member's data in the last 90 days, as recorded by {@link Usage}. */
export async function activityOf(dataSource: DataSource, userId: number): Promise<Activity> {
  const days = await dataSource.query<{ day: string; uses: number }[]>(
    `SELECT to_char(d, 'YYYY-MM-DD') AS day, COALESCE(u.uses, 0)::float8 AS uses
FROM generate_series((now() AT TIME ZONE 'UTC')::date - ${DAYS - 1}, (now() AT TIME ZONE 'UTC')::date, interval '1 day') d
LEFT JOIN (
  SELECT day, sum(uses) AS uses FROM member_usage WHERE user_id = $1 AND day > (now() AT TIME ZONE 'UTC')::date - ${DAYS} GROUP BY day
) u ON u.day = d::date ORDER BY d`,
    [userId],
  );
  const used = await dataSource.query<UsedScope[]>(
    `SELECT to_char(u.day, 'YYYY-MM-DD') AS day, COALESCE(c.name, k.name) AS app_name,
  CASE WHEN c.document_read_at IS NOT NULL THEN substring(c.id FROM '^https://([^/]+)') END AS app_host,
  u.app_kind, u.scope, u.uses, api_time(u.last_used_at) AS last_used_at
FROM member_usage u LEFT JOIN oauth_clients c ON u.app_kind = 'client' AND c.id = u.app_id
LEFT JOIN api_keys k ON u.app_kind = 'key' AND k.id = u.app_id
WHERE u.user_id = $1 AND u.day > (now() AT TIME ZONE 'UTC')::date - ${DAYS}
ORDER BY u.last_used_at DESC, u.app_id, u.scope LIMIT ${SHOWN}`,
    [userId],
  );
  const events = await dataSource.query<AccessEvent[]>(
    `SELECT api_time(e.occurred_at) AS occurred_at, e.type, COALESCE(c.name, k.name) AS app_name
FROM auth_events e LEFT JOIN oauth_clients c ON c.id = e.client_id LEFT JOIN api_keys k ON k.id = e.key_id
WHERE e.user_id = $1 AND e.type = ANY ($2) AND e.occurred_at > now() - interval '${DAYS} days'
ORDER BY e.occurred_at DESC, e.id DESC LIMIT ${SHOWN_EVENTS}`,
    [userId, ACCESS_EVENTS],
  );
  return { days, used, events };
}
