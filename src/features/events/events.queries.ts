import { ATTENDEES, EVENT_ACCESS, quoted } from '../../database/sql.js';
import type { NamedStatement } from '../../database/pipelined-reads.js';
import type { Sort } from '../../http/paging.js';
import type { EVENT_SORTS } from './event.dto.js';

/** The member's relations to events. */
export const RELATIONS = 'participants p';
export const OF_MEMBER = 'p.user_id = $1';

/**
 * What filters and sorts look at and a relation does not hold. OFFSET 0: looked up by id for each relation of the member,
 * however many there are; never all events of the platform for one member's.
 */
export const OF_EVENT = `CROSS JOIN LATERAL (SELECT status, is_online, folded_title, ends_at, created_at, updated_at, changed_in
  FROM events WHERE id = p.event_id OFFSET 0) e`;

/** The SQL function for local times: the second one also where the system has forgotten a time zone. */
export type LocalTime = 'local_time' | 'local_time_or_utc';

/** JSON text of an event `e` and the member's relation to it, `p`, open at the end. */
function eventFields(location: string, localTime: LocalTime): string {
  return `e.card || ',"location":' || ${location} || ',"starts_at_local":"' || ${localTime}(e.starts_at, e.timezone)
    || '","ends_at_local":' || ${quoted(`${localTime}(e.ends_at, e.timezone)`)}
    || ',"organizer":' || (SELECT o.card FROM users o WHERE o.id = e.organizer_id)
    || ',"role":"' || p.role || '","rsvp_status":' || ${quoted('p.rsvp_status')}
    || ',"attendees_count":' || (${ATTENDEES})`;
}

/** What an item shows of the event itself. */
export const SHOWN = 'JOIN events e ON e.id = p.event_id';

/** JSON text of a list item, over {@link RELATIONS} and {@link SHOWN}. */
export function listItem(localTime: LocalTime): string {
  return `${eventFields('e.location', localTime)} || '}'`;
}

/** The list's location with what only the detail has. */
const LOCATION_DETAIL = `CASE e.location WHEN 'null' THEN 'null' ELSE left(e.location, -1)
      || ',"address":' || json_text(e.location_address) || ',"latitude":' || COALESCE(e.location_latitude::text, 'null')
      || ',"longitude":' || COALESCE(e.location_longitude::text, 'null') || '}' END`;

const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;
const SPOTS_LEFT = `CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - (${ATTENDEES}), 0) END`;
const CO_ORGANIZERS = `(SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer')`;

/** $1: the member, $2: the id. No row, whatever the reason that there is nothing to see. */
export function readEvent(localTime: LocalTime): NamedStatement {
  return {
    name: `read-event:${localTime}`,
    text: `SELECT ${eventFields(LOCATION_DETAIL, localTime)}
    || ',"description":' || json_text(e.description) || ',"tags":' || to_json(e.tags)::text
    || ',"online_url":' || json_text(${ONLINE_URL}) || ',"spots_left":' || COALESCE((${SPOTS_LEFT})::text, 'null')
    || ',"responded_at":' || ${quoted('api_time(p.responded_at)')}
    || ',"checked_in_at":' || ${quoted('api_time(p.checked_in_at)')}
    || ',"co_organizers":[' || ${CO_ORGANIZERS} || ']'
    || ',"cancelled_at":' || ${quoted('api_time(e.cancelled_at)')}
    || ',"cancellation_reason":' || json_text(e.cancellation_reason) || '}' AS json
FROM ${RELATIONS} ${SHOWN} WHERE ${EVENT_ACCESS} AND p.event_id = $2`,
  };
}

export const SORTS: Record<(typeof EVENT_SORTS)[number], Sort> = {
  starts_at: { key: 'p.starts_at', type: 'timestamptz' },
  '-starts_at': { key: 'p.starts_at', type: 'timestamptz', descending: true },
  created_at: { key: 'e.created_at', type: 'timestamptz' },
  '-created_at': { key: 'e.created_at', type: 'timestamptz', descending: true },
  updated_at: { key: 'e.updated_at', type: 'timestamptz' },
  '-updated_at': { key: 'e.updated_at', type: 'timestamptz', descending: true },
  title: { key: 'e.folded_title', type: 'text' },
  '-title': { key: 'e.folded_title', type: 'text', descending: true },
};

/** Sorts that an index over the member's relations gives. */
export const SORTS_OF_RELATION: readonly string[] = ['starts_at', '-starts_at'];

/** Every event is in exactly one of the three; one without an end is past once it has started. */
export const TIME_CONDITIONS = {
  upcoming: 'p.starts_at > now()',
  ongoing: 'p.starts_at <= now() AND e.ends_at >= now()',
  past: 'p.starts_at <= now() AND (e.ends_at IS NULL OR e.ends_at < now())',
};

/**
 * What the platform says was updated at the moment or later, and what became different here after it: the event, or the member's
 * relation to it. So who polls with the time of the last answer misses nothing, however long a writer took to commit.
 */
export function changedSince(moment: string): string {
  const mark = `(SELECT last_mark_before(${moment}::timestamptz))`;
  return `e.updated_at >= ${moment}::timestamptz OR committed_after(p.changed_in, ${mark}) OR committed_after(e.changed_in, ${mark})`;
}
