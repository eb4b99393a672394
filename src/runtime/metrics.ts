/**
 * A metric of {@link METRICS}, from which `docs/operators/metrics.md` is generated. Label values must not be ids or input of callers.
 * A metric `…_total` is a counter, a metric with buckets is a histogram, and any other metric is a gauge.
 */
interface Metric {
  readonly help: string;
  /** Possible values of each label; {@link NAMES} if they are too many to list. */
  readonly labels?: Readonly<Record<string, readonly string[] | typeof NAMES>>;
  /** How to combine a gauge's values from all processes (`WORKERS`); default: their sum. */
  readonly together?: 'min' | 'max' | 'first';
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

/** Stands for values that are too many to list here, such as routes. */
const NAMES = 'names';

const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5] as const;

export const METRICS = {
  build_info: {
    help: 'Always 1; the labels are the versions of the server and of Node',
    labels: { version: NAMES, node: NAMES },
    together: 'first',
  },
  server_processes: {
    help: 'Server processes that responded to this scrape (`answering`) or did not (`silent`); for silent processes, the response has only their last counters and histograms',
    labels: { state: ['answering', 'silent'] },
  },
  server_ready: {
    help: '1 while `/readyz` returns 200, else 0',
    together: 'min',
  },
  http_request_duration_seconds: {
    help: 'Duration of requests, except requests rejected before they start (overload); the route is `none` if no route matches',
    labels: { method: ['GET', 'HEAD', 'PUT', 'POST', 'OPTIONS', 'other'], route: NAMES, status: NAMES },
    buckets: SHORT,
  },
  http_requests_under_way: {
    help: 'Requests in progress',
  },
  http_problems_total: {
    help: 'Error responses (problem+json), by code (docs/developers/errors.md), except for requests rejected before they start',
    labels: { code: NAMES },
  },
  rate_limit_refusals_total: {
    help: 'Requests rejected by a rate limit, by limit and kind of credential',
    labels: {
      limit: ['read', 'write', 'platform', 'failed_authentication', 'oauth_requests'],
      credential: ['api_key', 'oauth_token', 'calendar_link', 'none'],
    },
  },
  rate_limits_shared: {
    help: '1 while the instances share rate limits; 0 while this instance counts only its own requests; absent on the embedded database',
    together: 'min',
  },
  overload_refusals_total: {
    help: 'Requests rejected because of overload. `api`, `platform`, `oauth`, `pages`: waited too long to start; `database_pool`: too many waited; `password_hashing`: too many waited, or too long',
    labels: { reason: NAMES },
  },
  admission: {
    help: 'Requests in progress and waiting, by kind, and connections that the server does not read because of overload',
    labels: {
      kind: ['api', 'platform', 'oauth', 'pages'],
      state: ['at_work', 'waiting', 'unread_connections'],
    },
  },
  sign_ins_total: {
    help: 'Sign-in attempts by result, page (`way`) and method; `failed`: the database or the external identity provider failed',
    labels: {
      result: ['signed-in', 'invalid', 'throttled', 'busy', 'failed'],
      way: ['authorization', 'account'],
      method: ['password', 'passkey', 'upstream'],
    },
  },
  password_hashing_queue: {
    help: 'Passwords that the server is hashing, and passwords that wait for hashing',
    labels: { state: ['running', 'waiting'] },
  },
  password_hashing_duration_seconds: {
    help: 'Time to hash or verify one password, without waiting',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  },
  oauth_errors_total: {
    help: 'Error responses of the authorization server and its pages, by code; `other` is not a standard code. See `overload_refusals_total` for overload',
    labels: { error: NAMES },
  },
  database_pool_connections: {
    help: 'Pool connections for requests, and requests that wait for one',
    labels: { state: ['busy', 'idle', 'waiting'] },
  },
  database_pipelined_lanes: {
    help: 'Open connections for pipelined reads; 0 if reads are not pipelined',
  },
  database_pipelined_reads_under_way: {
    help: 'Statements in progress on connections for pipelined reads',
  },
  database_replica_lag_seconds: {
    help: 'Lag of a replica, by its position in DATABASE_READ_URL; absent while the replica is unavailable or follows another primary',
    labels: { replica: NAMES },
    together: 'max',
  },
  database_replica_asked: {
    help: '1 while the server may read from this replica (lag at most five seconds), else 0; by position in DATABASE_READ_URL',
    labels: { replica: NAMES },
    together: 'min',
  },
  member_writes_channel_up: {
    help: '1 while this process receives notifications of other instances’ writes; 0 while it receives none and uses no replica; absent without DATABASE_READ_URL',
    together: 'min',
  },
  member_reads_total: {
    help: 'Reads of members’ lists and profiles, by database server; 0 without DATABASE_READ_URL',
    labels: { place: ['primary', 'replica'] },
  },
  client_secrets_expiring: {
    help: 'Client secrets of enabled apps that were used in the last 7 days and expire within 7 days, while the app uses no newer secret',
    together: 'max',
  },
  signing_key_age_seconds: {
    help: 'Time since the activation of the oldest signing key in use; absent before the first key',
    together: 'max',
  },
  api_keys_expiring: {
    help: 'API keys that were used in the last 7 days, expire within 7 days, and were not rotated',
    together: 'max',
  },
  database_dead_rows: {
    help: 'Dead rows (not vacuumed yet), by table; absent on the embedded database',
    labels: { table: NAMES },
    together: 'max',
  },
  revocation_channel_up: {
    help: '1 while this process receives revocations and may cache credentials; 0 while it reads every credential from the database',
    together: 'min',
  },
  logout_attempts_total: {
    help: 'Back-channel logout attempts: `failed` is retried, `dead` is not',
    labels: { outcome: ['delivered', 'failed', 'dead'] },
  },
  notice_emails_total: {
    help: 'Attempts to email a notice to a member: `failed` is retried; `undelivered`: the email failed for three days, and the server stopped retrying',
    labels: { outcome: ['sent', 'failed', 'undelivered'] },
  },
  webhook_attempts_total: {
    help: 'Webhook attempts: `failed` is retried, `dead` is not; `withheld` was not sent, because the app or key lost access',
    labels: { outcome: ['delivered', 'failed', 'dead', 'withheld'] },
  },
  webhook_attempt_duration_seconds: {
    help: 'Time until a webhook endpoint responded or the attempt failed',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  webhook_delay_seconds: {
    help: 'Time from a change until the endpoint accepted the message; first attempts only',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  webhook_deliveries_pending: {
    help: 'Webhook messages waiting to be sent or retried',
    together: 'max',
  },
  webhook_oldest_due_seconds: {
    help: 'Delay of the oldest due webhook message to an endpoint that is not failing; 0 if none',
    together: 'max',
  },
  webhook_deliveries_under_way: {
    help: 'Webhook messages that the server is sending',
  },
  sweeper_last_success_timestamp_seconds: {
    help: 'Time of the last successful sweep, in seconds since 1970; 0 before the first',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_overdue_seconds: {
    help: 'Time since the expiry of the oldest row that the last sweep did not delete; 0 if it deleted all expired rows',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_deleted_rows_total: {
    help: 'Deleted expired rows, by kind',
    labels: { rows: NAMES },
  },
  sweeper_failures_total: {
    help: 'Failed sweeps, by kind of rows',
    labels: { rows: NAMES },
  },
  periodic_work_failures_total: {
    help: 'Failed runs of periodic work, which runs again after its interval',
    labels: {
      work: [
        'access_changes',
        'change_marks',
        'changes',
        'ending_access',
        'ending_credentials',
        'ending_keys',
        'logouts',
        'members',
        'names',
        'notices',
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

/** Returns a metric's declaration with its Prometheus type. */
export function metricOf(name: MetricName) {
  const metric: Metric = METRICS[name];
  const type = name.endsWith('_total') ? 'counter' : metric.buckets ? 'histogram' : 'gauge';
  return { ...metric, type } as const;
}
