import type { ValueSql } from '../model/json-text.js';
/** The online URL of the event `e`; NULL unless the participant `p` may see it. */
export const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;

/** A member's total: the compacted count plus deltas, exact in the statement's snapshot. */
export function totalOfMember(
  column: 'events_count' | 'connections_count' | 'achievements_count',
  userId = '$1',
): string {
  return `COALESCE((SELECT sum(${column}) FROM user_totals WHERE user_id = ${userId}), 0)`;
}

/** The number of members who are going to the event `e`, computed like {@link totalOfMember}. */
export const ATTENDEES = 'COALESCE((SELECT sum(attendees_count) FROM event_totals WHERE event_id = e.id), 0)';

/**
 * Time (in µs since 1970) before which sign-ins of the member `u` are invalid; NULL if all are valid. A sign-in reads this time with the
 * member's data, and its writes require the same time: a new time also ends sign-ins in progress.
 */
export const SIGN_INS_VALID_SINCE = '(EXTRACT(epoch FROM u.sign_ins_valid_since) * 1000000)::bigint';

/** SQL that sets who ends access in this transaction, for the stored reason. @param actor SQL: `user`, `client`, else the platform */
export const endedBy = (actor: string) => `set_config('public_user_api.ended_by', ${actor}, true)`;

/** SQL: whether a row is unexpired. Uses no index by expiry: PostgreSQL could choose it while the table is empty, and keep the plan. */
export const unexpired = (column = 'expires_at') => `(${column} > now()) IS TRUE`;

/** Joins a row of a table (`users u`) by key: for a plain join, PostgreSQL could choose a scan while the table is small, and keep it. */
export const keyed = (table: string, condition: string) =>
  `LATERAL (SELECT * FROM ${table} WHERE ${condition} LIMIT 1) ${table.split(' ')[1]} ON true`;

/** SQL of a text's sort key: the case-folded text, compared by code points. */
export function foldedText(sql: string): ValueSql {
  return `(fold_case(${sql}) COLLATE "C")`;
}

/** SQL of a case-insensitive substring match in text that is already folded; `%` and `_` are literal. */
export function contains(folded: string, placeholder: string): string {
  return `strpos(${folded}, fold_case(${placeholder})) > 0`;
}

/** SQL of a case-insensitive comparison for equality. */
export function equals(text: string, placeholder: string): string {
  return `fold_case(${text}) = fold_case(${placeholder})`;
}

/** No transaction with a lower number is still open, so readers that stop below this number miss no change. */
export const HORIZON = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/** The next transaction number: a visible change with this number or a higher one comes from a restored dump. */
export const AHEAD = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
/** Identifies the database cluster and its timeline: after a restore or failover, transaction numbers may repeat. */
export const ORIGIN = `(SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;
