/**
 * Every metric of the process: name → type, meaning, labels. This is the only such table: `docs/metrics.md` is generated from it,
 * and {@link Meter} accepts no other names and labels. The value of a label is one of those listed here, or a name from our code
 * (a route, a table, an error code): never an id, and nothing that a caller sent.
 */
interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** The values that a label can have; {@link NAMES} where they are names from our code. */
  readonly labels?: Readonly<Record<string, readonly string[] | typeof NAMES>>;
  /** How a gauge is combined over several processes (`WORKERS`); counters and histograms are added up. */
  readonly together?: 'sum' | 'min' | 'max' | 'first';
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

/** Stands for values that are names from our code, too many to list here. */
const NAMES = 'names';

const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5] as const;

export const METRICS = {
  build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say which version runs, and on which Node',
    labels: { version: NAMES, node: NAMES },
    together: 'first',
  },
  server_processes: {
    type: 'gauge',
    help: 'Server processes that answered this scrape, and that did not: those count on with what they said last',
    labels: { state: ['answering', 'silent'] },
    together: 'sum',
  },
  http_request_duration_seconds: {
    type: 'histogram',
    help: 'Duration of requests, by route and status; `none` for paths that are no route',
    labels: { method: ['GET', 'HEAD', 'PUT', 'POST', 'OPTIONS', 'other'], route: NAMES, status: NAMES },
    buckets: SHORT,
  },
  http_requests_under_way: {
    type: 'gauge',
    help: 'Requests that have arrived and are not answered yet',
    together: 'sum',
  },
  http_problems_total: {
    type: 'counter',
    help: 'Answers that were problems, by code (docs/errors.md)',
    labels: { code: NAMES },
  },
  rate_limit_refusals_total: {
    type: 'counter',
    help: 'Requests over a limit, by the limit and the kind of credential that came with them',
    labels: {
      limit: ['read', 'write', 'platform', 'failed_authentication', 'oauth_requests'],
      credential: ['api_key', 'oauth_token', 'calendar_link', 'none'],
    },
  },
  rate_limits_shared: {
    type: 'gauge',
    help: '1 while a limit holds for all instances together, 0 while the shared store is away and each limits alone',
    labels: { limit: ['read', 'write', 'platform', 'failed_authentication', 'oauth_requests'] },
    together: 'min',
  },
  overload_refusals_total: {
    type: 'counter',
    help: 'Requests refused since there was no room for them, by reason: `overload`, `caller_share` and `address_share` at the front door, `database_pool`, `password_hashing`',
    labels: { reason: NAMES },
  },
  sign_ins_total: {
    type: 'counter',
    help: 'Attempts to sign in, by result (`failed`: the database or the platform’s own login could not be asked), by the page on which they were made, and by what with',
    labels: {
      result: ['signed-in', 'invalid', 'throttled', 'busy', 'failed'],
      way: ['authorization', 'account'],
      method: ['password', 'passkey', 'upstream'],
    },
  },
  password_hashing_queue: {
    type: 'gauge',
    help: 'Passwords that are being hashed, and that wait to be',
    labels: { state: ['running', 'waiting'] },
    together: 'sum',
  },
  password_hashing_duration_seconds: {
    type: 'histogram',
    help: 'Time to hash or verify one password, without waiting',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  },
  oauth_errors_total: {
    type: 'counter',
    help: 'Answers of the authorization server and its pages that were errors, by their code; `other` for codes that no document of OAuth or OpenID has; those of the front door are in `overload_refusals_total`',
    labels: { error: NAMES },
  },
  database_pool_connections: {
    type: 'gauge',
    help: 'Connections of the pool, and requests that wait for one',
    labels: { state: ['busy', 'idle', 'waiting'] },
    together: 'sum',
  },
  database_pipelined_lanes: {
    type: 'gauge',
    help: 'Connections for pipelined reads that are up; 0 where nothing is pipelined',
    together: 'sum',
  },
  database_pipelined_reads_under_way: {
    type: 'gauge',
    help: 'Statements sent on those connections and not answered yet',
    together: 'sum',
  },
  database_replica_lag_seconds: {
    type: 'gauge',
    help: 'How far a replica is behind, by its number in DATABASE_READ_URL; none where it is away, or does not follow this primary',
    labels: { replica: NAMES },
    together: 'max',
  },
  database_replica_asked: {
    type: 'gauge',
    help: '1 while a replica, by its number in DATABASE_READ_URL, is at most five seconds behind, so that it is asked; 0 while the primary is read in its place',
    labels: { replica: NAMES },
    together: 'min',
  },
  member_writes_channel_up: {
    type: 'gauge',
    help: '1 while it is heard what other instances write of members, 0 while no replica is asked, since it is not; none without DATABASE_READ_URL',
    together: 'min',
  },
  member_reads_total: {
    type: 'counter',
    help: 'Reads of members’ lists and profiles, by where they were answered; 0 without DATABASE_READ_URL',
    labels: { place: ['primary', 'replica'] },
  },
  database_dead_rows: {
    type: 'gauge',
    help: 'Rows that the database keeps though they were deleted or replaced, by table; not on the embedded database',
    labels: { table: NAMES },
    together: 'max',
  },
  revocation_channel_up: {
    type: 'gauge',
    help: '1 while credentials may be remembered, 0 while each is looked up',
    together: 'min',
  },
  webhook_attempts_total: {
    type: 'counter',
    help: 'Messages of webhooks that were sent, by what came of it: `failed` is tried again, `dead` is not, `withheld` was not sent since its app or key may not know of the member any more',
    labels: { outcome: ['delivered', 'failed', 'dead', 'withheld'] },
  },
  webhook_attempt_duration_seconds: {
    type: 'histogram',
    help: 'Time until a receiver of webhooks answered, or was given up',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  webhook_delay_seconds: {
    type: 'histogram',
    help: 'From a change until the receiver has taken its message, of those taken at once',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  webhook_deliveries_pending: {
    type: 'gauge',
    help: 'Messages of webhooks that are to be sent, now or again later',
    together: 'max',
  },
  webhook_deliveries_under_way: {
    type: 'gauge',
    help: 'Messages of webhooks that are sent at this moment',
    together: 'sum',
  },
  sweeper_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'When expired rows of a kind were last swept without an error, in seconds since 1970; 0 before the first time',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_overdue_seconds: {
    type: 'gauge',
    help: 'For how long the oldest row that was left at the last sweep could be gone; 0 where there was none',
    labels: { rows: NAMES },
    together: 'max',
  },
  sweeper_deleted_rows_total: {
    type: 'counter',
    help: 'Expired rows that were deleted, by kind',
    labels: { rows: NAMES },
  },
  sweeper_failures_total: {
    type: 'counter',
    help: 'Sweeps of a kind of rows that ended with an error',
    labels: { rows: NAMES },
  },
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof METRICS;

type NamesOf<Type extends Metric['type']> = {
  [Name in MetricName]: (typeof METRICS)[Name] extends { type: Type } ? Name : never;
}[MetricName];

export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;

/** All labels of a metric. */
export type LabelsOf<Name extends MetricName> = (typeof METRICS)[Name] extends { labels: infer Labels }
  ? { readonly [Label in keyof Labels]: Labels[Label] extends readonly (infer Value)[] ? Value : string }
  : Readonly<Record<never, string>>;

/** Finds a metric’s row, in the type that all rows share. */
export function metricOf(name: MetricName): Metric {
  return METRICS[name];
}
