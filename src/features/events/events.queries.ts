import { EVENT_ACCESS, EVENT_RELATIONS, foldedText, userCard } from '../../database/sql.js';
import type { Sort } from '../../http/paging.js';
import type { EVENT_SORTS } from './event.dto.js';

const HAS_LOCATION = `num_nonnulls(e.location_name, e.location_city, e.location_country_code, e.location_address,
    e.location_latitude, e.location_longitude) > 0`;

const LOCATION = `'name', e.location_name, 'city', e.location_city, 'country_code', e.location_country_code`;
const LOCATION_DETAIL = `${LOCATION}, 'address', e.location_address, 'latitude', e.location_latitude, 'longitude', e.location_longitude`;

/** Keys and values of an event, over `e`, its organizer `o` and the member's relation in `relation`. */
function eventFields(relation: string, location: string): string {
  return `'id', e.id, 'title', e.title, 'summary', e.summary, 'status', e.status, 'visibility', e.visibility,
    'starts_at', api_time(e.starts_at), 'ends_at', api_time(e.ends_at), 'timezone', e.timezone,
    'starts_at_local', local_time(e.starts_at, e.timezone), 'ends_at_local', local_time(e.ends_at, e.timezone),
    'is_all_day', e.is_all_day, 'is_online', e.is_online,
    'location', CASE WHEN ${HAS_LOCATION} THEN json_build_object(${location}) END,
    'cover_image', e.cover_image, 'organizer', ${userCard('o')},
    'role', ${relation}.role, 'rsvp_status', ${relation}.rsvp_status,
    'attendees_count', e.attendees_count, 'capacity', e.capacity,
    'created_at', api_time(e.created_at), 'updated_at', api_time(e.updated_at)`;
}

/** JSON of a list item, over `page` with {@link LIST_JOINS}. */
export const LIST_ITEM = `json_build_object(${eventFields('page', LOCATION)})`;
export const LIST_JOINS = 'JOIN events e ON e.id = page.id JOIN users o ON o.id = e.organizer_id';

/** $1: the member, $2: the id. No row, whatever the reason that there is nothing to see. */
export const READ_EVENT = {
  name: 'read-event',
  text: `SELECT json_build_object(${eventFields('p', LOCATION_DETAIL)},
    'description', e.description, 'tags', e.tags,
    'online_url', CASE WHEN p.role IN ('organizer', 'co_organizer') OR p.rsvp_status = 'going' THEN e.online_url END,
    'spots_left', CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - e.attendees_count, 0) END,
    'responded_at', api_time(p.responded_at), 'checked_in_at', api_time(p.checked_in_at),
    'co_organizers', (SELECT COALESCE(json_agg(${userCard('u')} ORDER BY u.id), '[]')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer'),
    'cancelled_at', api_time(e.cancelled_at), 'cancellation_reason', e.cancellation_reason)::text AS json
FROM ${EVENT_RELATIONS} JOIN users o ON o.id = e.organizer_id
WHERE ${EVENT_ACCESS} AND p.event_id = $2`,
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
