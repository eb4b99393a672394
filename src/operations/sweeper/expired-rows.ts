import { setTimeout } from 'node:timers/promises';
import type { DataSource } from 'typeorm';

/** Rows that one statement deletes: some 20 ms of work, so its locks are released soon. */
const BATCH = 1_000;
/** Longest pause between two batches. */
const LONGEST_PAUSE_MS = 1_000;

/** Rows that are no longer needed. An index must serve `only` and `moment`, or sweeping fails as the table grows. */
export interface ExpiredRows {
  /** Their name in metrics and in the log. */
  readonly name: string;
  readonly table: string;
  /** SQL: the time at which a row expires or was created. */
  readonly moment: string;
  /** SQL: rows from before this time are deleted. */
  readonly before: string;
  /** SQL: the condition of the partial index. */
  readonly only?: string;
  /** SQL: columns of deleted rows, which `statement` reads as `gone`, and what else the same statement does. */
  readonly also?: { readonly columns: string; readonly statement: string };
}

const MINUTE = `interval '1 minute'`;

/**
 * A grant ends with its last token. It is not deleted here but when its own `expires_at` has passed, since deleting a live grant is
 * announced to every instance. A token that expired less than a minute ago may still be in use by a request: neither it nor its
 * grant is touched.
 */
const END_GRANTS = `UPDATE oauth_grants SET expires_at = now() WHERE ctid = ANY(ARRAY(
    SELECT g.ctid FROM oauth_grants g WHERE g.id IN (SELECT grant_id FROM gone) AND g.expires_at > now()
      AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at >= now() - ${MINUTE})
    FOR UPDATE SKIP LOCKED))`;

/** Everything that expires, in sweeping order. For ages from settings: {@link auditEventsOlderThan}, {@link changesOlderThan}. */
export const EXPIRED_ROWS: readonly ExpiredRows[] = [
  {
    // A code that is used twice within ten minutes reveals a theft, so its use is remembered for as long.
    name: 'authorization_codes',
    table: 'oauth_tokens',
    only: `model = 'AuthorizationCode'`,
    moment: 'expires_at',
    before: `now() - interval '10 minutes'`,
    also: { columns: 'grant_id', statement: END_GRANTS },
  },
  {
    name: 'oauth_tokens',
    table: 'oauth_tokens',
    only: `model <> 'AuthorizationCode'`,
    moment: 'expires_at',
    before: `now() - ${MINUTE}`,
    also: { columns: 'grant_id', statement: END_GRANTS },
  },
  { name: 'oauth_grants', table: 'oauth_grants', moment: 'expires_at', before: 'now()' },
  { name: 'oauth_sessions', table: 'oauth_sessions', moment: 'expires_at', before: 'now()' },
  { name: 'oauth_state', table: 'oauth_state', moment: 'expires_at', before: 'now()' },
  {
    // Until then, each block is longer than the one before.
    name: 'login_throttle',
    table: 'login_throttle',
    moment: 'window_ends_at',
    before: `now() - interval '1 hour'`,
  },
  {
    // For as long, the same Idempotency-Key gets the same response.
    name: 'idempotent_responses',
    table: 'idempotent_responses',
    moment: 'created_at',
    before: `now() - interval '24 hours'`,
  },
  {
    name: 'webhook_deliveries',
    table: 'webhook_deliveries',
    only: `status <> 'pending'`,
    moment: 'ended_at',
    before: `now() - interval '7 days'`,
  },
  { name: 'member_usage', table: 'member_usage', moment: 'day', before: `now() - interval '90 days'` },
  {
    // One whose clock is late may still add to the window before.
    name: 'rate_limit_counts',
    table: 'rate_limit_counts',
    moment: 'to_timestamp(window_number * 60)',
    before: `now() - interval '3 minutes'`,
  },
  {
    name: 'oauth_refusals',
    table: 'oauth_refusals',
    moment: 'occurred_at',
    before: `now() - interval '30 days'`,
  },
];

/** Returns the changes that members' apps and the platform read by cursor; `change_places` records up to where they are swept. */
export function changesOlderThan(seconds: number): ExpiredRows[] {
  return [
    ['changes', 'swept'],
    ['platform_changes', 'platform_swept'],
  ].map(([table, place]) => ({
    name: table!,
    table: table!,
    moment: 'changed_at',
    before: `now() - make_interval(secs => ${seconds})`,
    also: {
      columns: 'changed_in, sequence',
      statement: `UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence
    FROM (SELECT changed_in, sequence FROM gone
      WHERE changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY changed_in DESC, sequence DESC LIMIT 1) last
    WHERE p.name = '${place}' AND (p.changed_in, p.sequence) < (last.changed_in, last.sequence)`,
    },
  }));
}

/** Returns audit events older than so many seconds; the database refuses to delete any younger than a week. */
export function auditEventsOlderThan(seconds: number): ExpiredRows {
  return {
    name: 'auth_events',
    table: 'auth_events',
    moment: 'occurred_at',
    before: `now() - make_interval(secs => ${seconds})`,
  };
}

/** Writes SQL that deletes one batch from time $1 on, oldest first, without rows that another transaction has locked. */
export function batchStatement({ table, moment, before, only = 'true', also }: ExpiredRows): string {
  return `WITH expired AS MATERIALIZED (
  SELECT ctid, ${moment} AS moment FROM ${table} WHERE ${only} AND ${moment} < ${before} AND ${moment} >= $1
  ORDER BY ${moment} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM expired)) RETURNING ${also?.columns ?? '1'}
)${also ? `, afterwards AS (\n  ${also.statement}\n)` : ''}
SELECT count(*)::integer AS deleted, max(moment)::text AS last FROM expired`;
}

/** Writes SQL for the time since when the oldest row has been deletable. */
export function oldestStatement({ table, moment, before, only = 'true' }: ExpiredRows): string {
  return `SELECT now() - (${before} - ${moment}) AS since FROM ${table} WHERE ${only} AND ${moment} < ${before} ORDER BY ${moment} LIMIT 1`;
}

/**
 * Deletes expired rows in batches, each followed by a pause as long as the batch took: half of the time is left to others. Each
 * batch begins where the previous one ended, since the index still contains deleted rows while any transaction could see them.
 *
 * @param more asked after each batch whether to go on
 * @returns how many rows were deleted
 */
export async function deleteExpired(
  dataSource: DataSource,
  rows: ExpiredRows,
  more: () => boolean = () => true,
): Promise<number> {
  const statement = batchStatement(rows);
  let last = '-infinity';
  for (let sum = 0; ;) {
    const startedAt = performance.now();
    const [batch] = await dataSource.query<{ deleted: number; last: string | null }[]>(statement, [last]);
    sum += batch!.deleted;
    if (batch!.deleted < BATCH || !more()) return sum;
    last = batch!.last!;
    await setTimeout(Math.min(performance.now() - startedAt, LONGEST_PAUSE_MS));
  }
}
