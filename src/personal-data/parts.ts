import { KEY_DETAILS } from '../auth/api-keys/api-keys.service.js';
import { CONNECTED_APPS } from '../oauth/admin/connected-apps.js';

/** Rows of a member ($1), in the order of a unique key. */
export interface MemberRows {
  /** Name of the part in the file. */
  readonly name: string;
  /** The tables that it is about. */
  readonly tables: readonly string[];
  /** What the file shows of a row; `from` ends with a condition, to which more can be added. All of it is SQL. */
  readonly item: string;
  readonly from: string;
  /** Column and type of each part of the key. */
  readonly key: readonly (readonly [column: string, type: string])[];
  readonly descending?: boolean;
}

/** Rows of a table that belong to one of the member's own apps or keys. */
const ofOwn = (table: string) => `(
  SELECT t.*, c.name AS app_name FROM oauth_clients c JOIN ${table} t ON t.client_id = c.id WHERE c.owner_id = $1
  UNION ALL SELECT t.*, k.name FROM api_keys k JOIN ${table} t ON t.key_id = k.id WHERE k.user_id = $1
) t`;

export const CONNECTED: MemberRows = {
  name: 'connected_apps',
  tables: ['oauth_grants', 'oauth_grant_usage'],
  item: 'a.*',
  from: `(${CONNECTED_APPS}) a WHERE true`,
  key: [['a.client_id', 'text']],
};

/** What the account pages show, and what is not shown anywhere else. No column of a secret, not even its hash. */
export const ROWS: readonly MemberRows[] = [
  CONNECTED,
  {
    name: 'consents',
    tables: ['oauth_consents'],
    item: 'client_id, granted, rejected, api_time(created_at) AS created_at, api_time(updated_at) AS updated_at',
    from: 'oauth_consents WHERE user_id = $1',
    key: [['client_id', 'text']],
  },
  {
    name: 'sessions',
    tables: ['oauth_sessions'],
    item: `api_time(signed_in_at) AS signed_in_at, api_time(last_seen_at) AS last_seen_at, host(ip) AS ip, user_agent`,
    from: 'oauth_sessions WHERE user_id = $1 AND expires_at > now()',
    key: [['public_id', 'uuid']],
  },
  {
    name: 'keys',
    tables: ['api_keys', 'api_key_usage'],
    item: 'k.*',
    from: `(${KEY_DETAILS} WHERE k.user_id = $1) k WHERE true`,
    key: [['k.id', 'text']],
  },
  {
    name: 'passkeys',
    tables: ['passkeys'],
    item: `id, name, api_time(created_at) AS created_at, api_time(last_used_at) AS last_used_at, backed_up AS synced`,
    from: 'passkeys WHERE user_id = $1',
    key: [['id', 'bigint']],
  },
  {
    name: 'own_apps',
    tables: ['oauth_clients'],
    item: `id AS client_id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes, client_uri, policy_uri, jwks,
  encode(logo, 'base64') AS logo, id_token_signed_response_alg, api_time(created_at) AS created_at, api_time(disabled_at) AS disabled_at`,
    from: 'oauth_clients WHERE owner_id = $1',
    key: [['id', 'text']],
  },
  {
    name: 'own_apps_requests',
    tables: ['developer_requests'],
    item: `t.app_name, t.client_id, t.key_id, api_time(t.occurred_at) AS occurred_at, t.method, t.route, t.status, t.error, t.reason,
  t.parameter, t.value, t.error_id`,
    from: `${ofOwn('developer_requests')} WHERE true`,
    key: [['t.id', 'bigint']],
  },
  {
    name: 'webhooks',
    tables: ['webhook_endpoints'],
    item: `t.id, t.url, t.types, t.client_id, t.key_id, api_time(t.created_at) AS created_at,
  api_time(t.failing_since) AS failing_since, api_time(t.disabled_at) AS disabled_at, t.disabled_because`,
    from: `${ofOwn('webhook_endpoints')} WHERE true`,
    key: [['t.id', 'text']],
  },
  {
    name: 'calendar_links',
    tables: ['calendar_links'],
    item: `id, name, api_time(created_at) AS created_at, api_time(last_used_at) AS last_used_at`,
    from: 'calendar_links WHERE user_id = $1',
    key: [['id', 'bigint']],
  },
  {
    name: 'usage',
    tables: ['member_usage'],
    item: `to_char(day, 'YYYY-MM-DD') AS day, app_kind, app_id, scope, uses, api_time(last_used_at) AS last_used_at`,
    from: 'member_usage WHERE user_id = $1',
    key: [
      ['day', 'date'],
      ['app_kind', 'text'],
      ['app_id', 'text'],
      ['scope', 'text'],
    ],
  },
  {
    name: 'platform_news',
    tables: ['platform_changes'],
    item: 'type, by_id, fields, scopes, api_time(changed_at) AS changed_at',
    from: 'platform_changes WHERE user_id = $1',
    key: [
      ['changed_in', 'bigint'],
      ['sequence', 'bigint'],
    ],
  },
  {
    name: 'account_events',
    tables: ['auth_events'],
    item: `api_time(occurred_at) AS occurred_at, type, actor, client_id, key_id, host(ip) AS ip, details`,
    from: 'auth_events WHERE user_id = $1',
    key: [
      ['occurred_at', 'timestamptz'],
      ['id', 'bigint'],
    ],
    descending: true,
  },
];

/** Tables whose rows of the member are the file's profile and lists, with the items of the API. */
export const LISTED: readonly string[] = [
  'users',
  'participants',
  'events',
  'connections',
  'user_achievements',
];

/** Tables with rows of members that are not in the file, and why. A test compares all of these with the database. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  oauth_tokens: 'hashes of secrets; connected_apps says what they allow',
  oauth_state: 'sign-ins in progress, for minutes',
  changes: 'which item of a list changed when, for a few days; the items are in the file',
  record_versions: 'numbers of the platform’s records; the records are in the file',
  user_totals: 'counts of rows that are in the file',
  renamed_users: 'that a name has yet to be copied, for seconds',
  idempotent_responses: 'responses to the platform’s own keys',
  webhook_deliveries: 'that a receiver is to be told of a change, for a few days; the change is in the file',
};
