import { EVENT_ACCESS, EVENT_RELATIONS, foldedText, quoted } from '../../database/sql.js';
import type { Sort } from '../../http/paging.js';
import type { EVENT_SORTS } from './event.dto.js';

/** JSON text of an event, over {@link EVENT_RELATIONS}, open at the end. */
function eventFields(location: string): string {
  return `e.card || ',"location":' || ${location} || ',"starts_at_local":"' || local_time(e.starts_at, e.timezone)
    || '","ends_at_local":' || ${quoted('local_time(e.ends_at, e.timezone)')}
    || ',"organizer":' || (SELECT o.card FROM users o WHERE o.id = e.organizer_id)
    || ',"role":"' || p.role || '","rsvp_status":' || ${quoted('p.rsvp_status')}
    || ',"attendees_count":' || e.attendees_count`;
}

/** JSON text of a list item, over {@link EVENT_RELATIONS}. */
export const LIST_ITEM = `${eventFields('e.location')} || '}'`;

/** The list's location with what only the detail has. */
const LOCATION_DETAIL = `CASE e.location WHEN 'null' THEN 'null' ELSE left(e.location, -1)
      || ',"address":' || json_text(e.location_address) || ',"latitude":' || COALESCE(e.location_latitude::text, 'null')
      || ',"longitude":' || COALESCE(e.location_longitude::text, 'null') || '}' END`;

const ONLINE_URL = `CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END`;
const SPOTS_LEFT = 'CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - e.attendees_count, 0) END';
const CO_ORGANIZERS = `(SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer')`;

/** $1: the member, $2: the id. No row, whatever the reason that there is nothing to see. */
export const READ_EVENT = {
  name: 'read-event',
  text: `SELECT ${eventFields(LOCATION_DETAIL)}
    || ',"description":' || json_text(e.description) || ',"tags":' || to_json(e.tags)::text
    || ',"online_url":' || json_text(${ONLINE_URL}) || ',"spots_left":' || COALESCE((${SPOTS_LEFT})::text, 'null')
    || ',"responded_at":' || ${quoted('api_time(p.responded_at)')}
    || ',"checked_in_at":' || ${quoted('api_time(p.checked_in_at)')}
    || ',"co_organizers":[' || ${CO_ORGANIZERS} || ']'
    || ',"cancelled_at":' || ${quoted('api_time(e.cancelled_at)')}
    || ',"cancellation_reason":' || json_text(e.cancellation_reason) || '}' AS json
FROM ${EVENT_RELATIONS} WHERE ${EVENT_ACCESS} AND p.event_id = $2`,
};

export const SORTS: Record<(typeof EVENT_SORTS)[number], Sort> = {
  starts_at: { key: 'p.starts_at', type: 'timestamptz' },
  '-starts_at': { key: 'p.starts_at', type: 'timestamptz', descending: true },
  created_at: { key: 'e.created_at', type: 'timestamptz' },
  '-created_at': { key: 'e.created_at', type: 'timestamptz', descending: true },
  updated_at: { key: 'e.updated_at', type: 'timestamptz' },
  '-updated_at': { key: 'e.updated_at', type: 'timestamptz', descending: true },
  title: { key: foldedText('e.title'), type: 'text' },
  '-title': { key: foldedText('e.title'), type: 'text', descending: true },
};

/** Every event is in exactly one of the three; one without an end is past once it has started. */
export const TIME_CONDITIONS = {
  upcoming: 'p.starts_at > now()',
  ongoing: 'p.starts_at <= now() AND e.ends_at >= now()',
  past: 'p.starts_at <= now() AND (e.ends_at IS NULL OR e.ends_at < now())',
};
