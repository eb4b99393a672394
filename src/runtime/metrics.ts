/**
 * Every metric of the process: name → meaning, labels. This is the only such table: `docs/operators/metrics.md` is generated from it,
 * and {@link Meter} accepts no other names and labels. The value of a label is one of those listed here, or a name from our code
 * (a route, a table, an error code): never an id, and nothing that a caller sent. What ends with `_total` is a counter; what has buckets
 * a histogram; everything else a gauge.
 */
interface Metric {
  readonly help: string;
  /** The values that a label can have; {@link NAMES} where they are names from our code. */
  readonly labels?: Readonly<Record<string, readonly string[] | typeof NAMES>>;
  /** How a gauge is combined over several processes (`WORKERS`), if its values are not added up, as counters and histograms are. */
  readonly together?: 'min' | 'max' | 'first';
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

/** Stands for values that are names from our code and too many to list here. */
const NAMES = 'names';

const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5] as const;

export const METRICS = {
  build_info: {
    help: 'Always 1; the labels have the version of the server and of Node',
    labels: { version: NAMES, node: NAMES },
    together: 'first',
  },
  server_processes: {
    help: 'Server processes that responded to this scrape, and that did not: of those, the last known values are reported',
    labels: { state: ['answering', 'silent'] },
  },
  server_ready: {
    help: '1 while `/readyz` would be 200; 0 while requests should not be sent here',
    together: 'min',
  },
  http_request_duration_seconds: {
    help: 'Duration of requests, by method, route and status; the route is `none` if the path matches no route',
    labels: { method: ['GET', 'HEAD', 'PUT', 'POST', 'OPTIONS', 'other'], route: NAMES, status: NAMES },
    buckets: SHORT,
  },
  http_requests_under_way: {
    help: 'Requests in progress: received, and not answered yet',
  },
  http_problems_total: {
    help: 'Error responses (problem+json), by code (docs/developers/errors.md)',
    labels: { code: NAMES },
  },
  rate_limit_refusals_total: {
    help: 'Requests refused for exceeding a rate limit, by the limit and the kind of credential sent',
    labels: {
      limit: ['read', 'write', 'platform', 'failed_authentication', 'oauth_requests'],
      credential: ['api_key', 'oauth_token', 'calendar_link', 'none'],
    },
  },
  rate_limits_shared: {
    help: '1 while all instances share the rate limits; 0 while the shared store is unavailable, and this one limits by itself',
    together: 'min',
  },
  overload_refusals_total: {
    help: 'Requests refused because of overload, by reason: `api`, `platform`, `oauth` and `pages` after waiting too long for their turn among requests of that kind; `database_pool` and `password_hashing` later',
    labels: { reason: NAMES },
  },
  admission: {
    help: 'Requests that are worked on, and that wait for their turn, by kind; and connections that are not read for now, because of overload',
    labels: {
      kind: ['api', 'platform', 'oauth', 'pages'],
      state: ['at_work', 'waiting', 'unread_connections'],
    },
  },
  sign_ins_total: {
    help: 'Attempts to sign in, by result (`failed`: the database or the platform’s own login was unavailable), by the page on which they were made, and by method',
    labels: {
      result: ['signed-in', 'invalid', 'throttled', 'busy', 'failed'],
      way: ['authorization', 'account'],
      method: ['password', 'passkey', 'upstream'],
    },
  },
  password_hashing_queue: {
    help: 'Passwords being hashed, and passwords waiting to be hashed',
    labels: { state: ['running', 'waiting'] },
  },
  password_hashing_duration_seconds: {
    help: 'Time to hash or verify one password, not counting the time it waited',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  },
  oauth_errors_total: {
    help: 'Error responses of the authorization server and its pages, by error code; `other` for codes that no OAuth or OpenID specification defines. Refusals on arrival are in `overload_refusals_total`',
    labels: { error: NAMES },
  },
  database_pool_connections: {
    help: 'Connections of the pool for requests, and requests waiting for one',
    labels: { state: ['busy', 'idle', 'waiting'] },
  },
  database_pipelined_lanes: {
    help: 'Open connections for pipelined reads; 0 if reads are not pipelined',
  },
  database_pipelined_reads_under_way: {
    help: 'Statements in progress on those connections',
  },
  database_replica_lag_seconds: {
    help: 'How far a replica is behind the primary, by its position in DATABASE_READ_URL; absent while the replica is unavailable or does not follow this primary',
    labels: { replica: NAMES },
    together: 'max',
  },
  database_replica_asked: {
    help: '1 while a replica, by its position in DATABASE_READ_URL, is at most five seconds behind and therefore used; 0 while the primary is used instead',
    labels: { replica: NAMES },
    together: 'min',
  },
  member_writes_channel_up: {
    help: '1 while this process is notified of what other instances write; 0 while it is not, and therefore uses no replica; absent without DATABASE_READ_URL',
    together: 'min',
  },
  member_reads_total: {
    help: 'Reads of members’ lists and profiles, by where they were executed; 0 without DATABASE_READ_URL',
    labels: { place: ['primary', 'replica'] },
  },
  client_secrets_expiring: {
    help: 'Secrets of enabled apps that were used within a week and expire within the next one, where the app has no other that lasts longer, or has not used it yet',
    together: 'max',
  },
  signing_key_age_seconds: {
    help: 'For how long the oldest key that signs now has done so; absent before the first one is made',
    together: 'max',
  },
  api_keys_expiring: {
    help: 'API keys that were used within a week, expire within the next one, and were not rotated',
    together: 'max',
  },
  database_dead_rows: {
    help: 'Dead rows (deleted or replaced, and not vacuumed yet), by table; absent on the embedded database',
    labels: { table: NAMES },
    together: 'max',
  },
  revocation_channel_up: {
    help: '1 while credentials may be cached; 0 while revocations are not heard of, and every credential is looked up',
    together: 'min',
  },
  logout_attempts_total: {
    help: 'Attempts to tell an app that a session has ended (back-channel logout), by outcome: `failed` is retried; `dead` is not',
    labels: { outcome: ['delivered', 'failed', 'dead'] },
  },
  webhook_attempts_total: {
    help: 'Attempts to deliver webhook messages, by outcome: `failed` is retried; `dead` is not; `withheld` was not sent, because its app or key may no longer see the member',
    labels: { outcome: ['delivered', 'failed', 'dead', 'withheld'] },
  },
  webhook_attempt_duration_seconds: {
    help: 'Time until a webhook receiver responded, or the attempt was given up',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  webhook_delay_seconds: {
    help: 'Time from a change until the receiver accepted its message; only messages accepted at the first attempt',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  webhook_deliveries_pending: {
    help: 'Webhook messages waiting to be sent or retried',
    together: 'max',
  },
  webhook_oldest_due_seconds: {
    help: 'How long the oldest webhook message that is due has not been sent, receivers apart that are failing; 0 if there is none',
    together: 'max',
  },
  webhook_deliveries_under_way: {
    help: 'Webhook messages being sent',
  },
  sweeper_last_success_timestamp_seconds: {
    help: 'When expired rows of a kind were last swept without an error, in seconds since 1970; 0 before the first sweep',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_overdue_seconds: {
    help: 'How long the oldest expired row that the last sweep left behind has been expired; 0 if it left none',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_deleted_rows_total: {
    help: 'Expired rows deleted, by kind',
    labels: { rows: NAMES },
  },
  sweeper_failures_total: {
    help: 'Sweeps that ended with an error, by kind of rows',
    labels: { rows: NAMES },
  },
  periodic_work_failures_total: {
    help: 'Runs of periodic work that ended with an error; it is tried again after its interval',
    labels: {
      work: [
        'change_marks',
        'changes',
        'logouts',
        'members',
        'names',
        'platform_logo',
        'rate_limits',
        'refresh_answers',
        'signing_keys',
        'sweeper',
        'totals',
        'usage',
        'webhooks',
      ],
    },
  },
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof METRICS;

export type CounterName = Extract<MetricName, `${string}_total`>;
export type HistogramName = {
  [Name in MetricName]: (typeof METRICS)[Name] extends { buckets: unknown } ? Name : never;
}[MetricName];
export type GaugeName = Exclude<MetricName, CounterName | HistogramName>;

export type LabelsOf<Name extends MetricName> = (typeof METRICS)[Name] extends { labels: infer Labels }
  ? { readonly [Label in keyof Labels]: Labels[Label] extends readonly (infer Value)[] ? Value : string }
  : Readonly<Record<never, string>>;

/** Finds a metric’s row, in the type that all rows share, with the type of the metric in Prometheus. */
export function metricOf(name: MetricName) {
  const metric: Metric = METRICS[name];
  const type = name.endsWith('_total') ? 'counter' : metric.buckets ? 'histogram' : 'gauge';
  return { ...metric, type } as const;
}
