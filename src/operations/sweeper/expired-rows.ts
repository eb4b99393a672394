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

/** @param kept how long rows stay after that moment: an interval of SQL */
const expired = (
  table: string,
  moment: string,
  kept = '0',
  more: Partial<Pick<ExpiredRows, 'name' | 'only' | 'also'>> = {},
): ExpiredRows => ({ name: table, table, moment, before: `now() - interval '${kept}'`, ...more });

/**
 * A grant ends with its last token. It is not deleted here but when its own `expires_at` has passed, since deleting a live grant is
 * announced to every instance. A token that expired less than a minute ago may still be in use by a request: neither it nor its
 * grant is touched.
 */
const END_GRANTS = {
  columns: 'grant_id',
  statement: `UPDATE oauth_grants SET expires_at = now() WHERE ctid = ANY(ARRAY(
    SELECT g.ctid FROM oauth_grants g WHERE g.id IN (SELECT grant_id FROM gone) AND g.expires_at > now()
      AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at >= now() - interval '1 minute')
    FOR UPDATE SKIP LOCKED))`,
};

/** Everything that expires, in sweeping order. For ages from settings: {@link auditEventsOlderThan}, {@link changesOlderThan}. */
export const EXPIRED_ROWS: readonly ExpiredRows[] = [
  // A code that is used twice within ten minutes reveals a theft, so its use is remembered for as long.
  expired('oauth_tokens', 'expires_at', '10 minutes', {
    name: 'authorization_codes',
    only: `model = 'AuthorizationCode'`,
    also: END_GRANTS,
  }),
  expired('oauth_tokens', 'expires_at', '1 minute', {
    only: `model <> 'AuthorizationCode'`,
    also: END_GRANTS,
  }),
  expired('oauth_grants', 'expires_at'),
  expired('oauth_sessions', 'expires_at'),
  expired('oauth_state', 'expires_at'),
  // Until then, each block is longer than the one before.
  expired('login_throttle', 'window_ends_at', '1 hour'),
  // For as long, the same Idempotency-Key gets the same response.
  expired('idempotent_responses', 'created_at', '24 hours'),
  expired('webhook_deliveries', 'ended_at', '7 days', { only: `status <> 'pending'` }),
  expired('member_usage', 'day', '90 days'),
  // One whose clock is late may still add to the window before.
  expired('rate_limit_counts', 'to_timestamp(window_number * 60)', '3 minutes'),
  expired('oauth_refusals', 'occurred_at', '30 days'),
];

/** Returns the changes that members' apps and the platform read by cursor; `change_places` records up to where they are swept. */
export function changesOlderThan(seconds: number): ExpiredRows[] {
  const of = (table: string, place: string) =>
    expired(table, 'changed_at', `${seconds} seconds`, {
      also: {
        columns: 'changed_in, sequence',
        statement: `UPDATE change_places p SET changed_in = last.changed_in, sequence = last.sequence
    FROM (SELECT changed_in, sequence FROM gone
      WHERE changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY changed_in DESC, sequence DESC LIMIT 1) last
    WHERE p.name = '${place}' AND (p.changed_in, p.sequence) < (last.changed_in, last.sequence)`,
      },
    });
  return [of('changes', 'swept'), of('platform_changes', 'platform_swept')];
}

/** Returns audit events older than so many seconds; the database refuses to delete any younger than a week. */
export const auditEventsOlderThan = (seconds: number): ExpiredRows =>
  expired('auth_events', 'occurred_at', `${seconds} seconds`);

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
