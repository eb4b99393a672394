/**
 * SQL that more than one feature says: each rule stands here once.
 */

/**
 * The access rule of events, over `p` (participants): a relation of this member ($1), and what its role may see. The rule
 * itself is the function `event_visible`; the row holds what it says.
 */
export const EVENT_ACCESS = 'p.user_id = $1 AND p.is_visible';

/** Where the event `e` takes place online, for those of its participants `p` who may know. */
export const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;

/** A maintained total of a member: the sum of what was folded and of what has changed since, exact in the statement's snapshot. */
export function totalOfMember(
  column: 'events_count' | 'connections_count' | 'achievements_count',
  userId = '$1',
): string {
  return `COALESCE((SELECT sum(${column}) FROM user_totals WHERE user_id = ${userId}), 0)`;
}

/** How many are going to the event `e`: as {@link totalOfMember}. */
export const ATTENDEES = 'COALESCE((SELECT sum(attendees_count) FROM event_totals WHERE event_id = e.id), 0)';

/**
 * The moment before which no sign-in of a member (`u`, users) counts, in microseconds since 1970; NULL where every one does.
 * Whoever signs a member in reads it together with what the sign-in is checked against, and stores nothing that comes of it
 * unless it is the same then: so a change ends what is half done, to the microsecond and by no clock but the database's.
 */
export const SIGN_INS_VALID_SINCE = '(EXTRACT(epoch FROM u.sign_ins_valid_since) * 1000000)::bigint';

/** What a text sorts by: its lower-cased code points. */
export function foldedText(sql: string): string {
  return `(fold_case(${sql}) COLLATE "C")`;
}

/** Case-insensitive substring, `%` and `_` literal; of a text that is folded already. */
export function contains(folded: string, placeholder: string): string {
  return `strpos(${folded}, fold_case(${placeholder})) > 0`;
}
