import { setTimeout } from 'node:timers/promises';
import type { DataSource } from 'typeorm';

/** Rows that one statement deletes: some 20 ms of work, and what it has locked is given back soon. */
const BATCH = 1_000;
/** So long at most nothing is done between two batches. */
const LONGEST_PAUSE_MS = 1_000;

/** Rows that nothing asks for any more. An index has to serve `only` and `moment`, or sweeping ends as the table grows. */
export interface ExpiredRows {
  /** How metrics and the log call them. */
  readonly name: string;
  readonly table: string;
  /** The column that says when a row ends, or when it was made. */
  readonly moment: string;
  /** SQL: the rows from before it are deleted. */
  readonly before: string;
  /** SQL: a condition of the index that is meant. */
  readonly only?: string;
  /** SQL: the columns of deleted rows that {@link also} uses as `gone`, and what is to be done in the same statement. */
  readonly also?: { readonly columns: string; readonly statement: string };
}

const MINUTE = `interval '1 minute'`;

/**
 * A grant ends with its last token. It is not deleted here but by its own `expires_at`, since the deletion of one that is
 * alive is announced to every instance. What expired less than a minute ago may still be in the hands of a request: neither
 * it nor its grant is touched.
 */
const END_GRANTS = `UPDATE oauth_grants SET expires_at = now() WHERE ctid = ANY(ARRAY(
    SELECT g.ctid FROM oauth_grants g WHERE g.id IN (SELECT grant_id FROM gone) AND g.expires_at > now()
      AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.expires_at >= now() - ${MINUTE})
    FOR UPDATE SKIP LOCKED))`;

/** Everything that expires, in the order in which it is swept. Of settings' ages: {@link auditEventsOlderThan}, {@link changesOlderThan}. */
export const EXPIRED_ROWS: readonly ExpiredRows[] = [
  {
    // A code that comes a second time within ten minutes betrays a theft: that it was used must still be known.
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
    // Until then a next block is longer than the one before.
    name: 'login_throttle',
    table: 'login_throttle',
    moment: 'window_ends_at',
    before: `now() - interval '1 hour'`,
  },
  {
    // So long the same Idempotency-Key gets the same answer.
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
    name: 'oauth_refusals',
    table: 'oauth_refusals',
    moment: 'occurred_at',
    before: `now() - interval '30 days'`,
  },
];

/** What members' apps, and the platform, read by cursors: which of them can lead to nothing more is remembered (`change_places`). */
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

/** The database refuses the deletion of audit events that are younger than a week. */
export function auditEventsOlderThan(seconds: number): ExpiredRows {
  return {
    name: 'auth_events',
    table: 'auth_events',
    moment: 'occurred_at',
    before: `now() - make_interval(secs => ${seconds})`,
  };
}

/** Writes SQL that deletes one batch, from the moment $1 on, oldest first; rows that somebody else is at are left to them. */
export function batchStatement({ table, moment, before, only = 'true', also }: ExpiredRows): string {
  return `WITH expired AS MATERIALIZED (
  SELECT ctid, ${moment} AS moment FROM ${table} WHERE ${only} AND ${moment} < ${before} AND ${moment} >= $1
  ORDER BY ${moment} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM expired)) RETURNING ${also?.columns ?? '1'}
)${also ? `, afterwards AS (\n  ${also.statement}\n)` : ''}
SELECT count(*)::integer AS deleted, max(moment)::text AS last FROM expired`;
}

/** Writes SQL for since when the oldest row could be gone. */
export function oldestStatement({ table, moment, before, only = 'true' }: ExpiredRows): string {
  return `SELECT now() - (${before} - ${moment}) AS since FROM ${table} WHERE ${only} AND ${moment} < ${before} ORDER BY ${moment} LIMIT 1`;
}

/**
 * Deletes expired rows batch by batch, with a pause after each that is as long as the batch took: half of the time belongs to
 * others. Each batch begins where the one before ended, since the index still leads to what was deleted for as long as any
 * transaction could see it.
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
