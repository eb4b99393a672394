import type { ValueSql } from '../model/json-text.js';
/** SQL that more than one feature uses. */

/** The URL of the event `e`, for participants `p` who may see it. */
export const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;

/** A member's stored total: compacted counts plus later changes, exact in the statement's snapshot. */
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

/** Prevents use of an index by expiry: PostgreSQL could choose this index while the table is empty, and sessions keep plans. */
export const unexpired = (column = 'expires_at') => `(${column} > now()) IS TRUE`;

/** Joins a row by key (`users u`) with LATERAL: a plan made on a small table would scan the whole table, and sessions keep plans. */
export const keyed = (table: string, condition: string) =>
  `LATERAL (SELECT * FROM ${table} WHERE ${condition} LIMIT 1) ${table.split(' ')[1]} ON true`;

/** SQL of a text's sort key: the code points of the lower-cased text. */
export function foldedText(sql: string): ValueSql {
  return `(fold_case(${sql}) COLLATE "C")`;
}

/** SQL of a case-insensitive substring match in text that is already folded; `%` and `_` are literal. */
export function contains(folded: string, placeholder: string): string {
  return `strpos(${folded}, fold_case(${placeholder})) > 0`;
}

/** SQL of a comparison regardless of case. */
export function equals(text: string, placeholder: string): string {
  return `fold_case(${text}) = fold_case(${placeholder})`;
}

/** No open transaction can add a change with a lower transaction number, so readers that stop below it miss no change. */
export const HORIZON = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/** Changes with this transaction number or a higher one come from a restored dump of another server. */
export const AHEAD = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
/** The database and its timeline: after a restore or failover, transaction numbers may repeat. */
export const ORIGIN = `(SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;
