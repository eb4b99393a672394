/**
 * SQL that more than one feature says: each rule stands here once.
 */

/** A member's relations to events: `p` (participants) and `e` (events). */
export const EVENT_RELATIONS = 'participants p JOIN events e ON e.id = p.event_id';

/** The access rule of events, over {@link EVENT_RELATIONS}: a relation of this member ($1), and what its role may see. */
export const EVENT_ACCESS = 'p.user_id = $1 AND event_visible(p.role, e.status, e.deleted_at)';

/**
 * The moment before which no sign-in of a member (`u`, users) counts, in microseconds since 1970; NULL where every one does.
 * Whoever signs a member in reads it together with what the sign-in is checked against, and stores nothing that comes of it
 * unless it is the same then: so a change ends what is half done, to the microsecond and by no clock but the database's.
 */
export const SIGN_INS_VALID_SINCE = '(EXTRACT(epoch FROM u.sign_ins_valid_since) * 1000000)::bigint';

/** JSON text of a value that needs no escaping (a moment, an enum), null too. */
export function quoted(sql: string): string {
  return `COALESCE('"' || ${sql} || '"', 'null')`;
}

/** What a text sorts by: its lower-cased code points. */
export function foldedText(sql: string): string {
  return `(fold_case(${sql}) COLLATE "C")`;
}

/** Case-insensitive substring, `%` and `_` literal. */
export function contains(sql: string, placeholder: string): string {
  return `strpos(fold_case(${sql}), fold_case(${placeholder})) > 0`;
}
