import type { ValueSql } from './json-text.js';
/**
 * SQL that more than one feature uses: each rule is defined here once.
 */

/** The URL of the event `e`, for participants `p` who may see it. */
export const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;

/** A member's maintained total: the sum of folded rows and of changes since, exact in the statement's snapshot. */
export function totalOfMember(
  column: 'events_count' | 'connections_count' | 'achievements_count',
  userId = '$1',
): string {
  return `COALESCE((SELECT sum(${column}) FROM user_totals WHERE user_id = ${userId}), 0)`;
}

/** The number of members going to the event `e`, maintained like {@link totalOfMember}. */
export const ATTENDEES = 'COALESCE((SELECT sum(attendees_count) FROM event_totals WHERE event_id = e.id), 0)';

/**
 * The time before which sign-ins of a member (`u`, users) are not valid, in microseconds since 1970; NULL if all are.
 * Code that signs a member in reads it together with what the sign-in is checked against, and stores the results only
 * if it is still the same then: so a change also ends sign-ins in progress, to the microsecond, and only by the database's clock.
 */
export const SIGN_INS_VALID_SINCE = '(EXTRACT(epoch FROM u.sign_ins_valid_since) * 1000000)::bigint';

/**
 * That a row, found by its key, has not expired; as a condition that no index serves. In a plan made while the table was empty, the index by
 * expiry would be as good as that of keys, and the plan be kept.
 */
export const unexpired = (column = 'expires_at') => `(${column} > now()) IS TRUE`;

/**
 * Joins the row of a table (`users u`) that has a key of a row before it. It is looked up for that row, whatever PostgreSQL expects: a
 * plan made while the table had a few rows would read them all, to find one by its hash, and be kept while the table grows.
 */
export const keyed = (table: string, condition: string) =>
  `LATERAL (SELECT * FROM ${table} WHERE ${condition} LIMIT 1) ${table.split(' ')[1]} ON true`;

/** SQL of a text's sort key: its lower-cased code points. */
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

/** No open transaction can add a change before this number: whoever reads up to it leaves no gap that is filled later. */
export const HORIZON = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/** A number that is not below this one comes from another server, from a dump of which this database was restored. */
export const AHEAD = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
/** The database and its timeline: in another one, after a restore or a failover, numbers of transactions may be used a second time. */
export const ORIGIN = `(SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;
