import * as is from '../../import/fields.js';
import { NEW_USERS, recordType } from '../../import/record-type.js';
import { LENGTHS, RSVP_STATUSES_BY_ROLE, type EventRole } from '../../values/vocabulary.js';
import { derivedOfParticipants } from './derived.js';
import { Event, Participant } from './table.js';

export const events = recordType({
  name: 'events',
  fields: {
    ...is.columns(
      Event,
      'id',
      'title',
      'summary',
      'description',
      'status',
      'visibility',
      'starts_at',
      'ends_at',
    ),
    timezone: is.required(is.timeZone),
    ...is.columns(Event, 'is_all_day', 'is_online'),
    online_url: is.url(LENGTHS.events.online_url),
    location: {
      fields: {
        name: is.column(Event, 'location_name'),
        city: is.column(Event, 'location_city'),
        country_code: is.countryCode,
        address: is.column(Event, 'location_address'),
        latitude: is.column(Event, 'location_latitude'),
        longitude: is.column(Event, 'location_longitude'),
      },
    },
    cover_image: is.url(LENGTHS.events.cover_image),
    ...is.columns(Event, 'organizer_id', 'capacity', 'tags', 'created_at'),
    updated_at: { ...is.moment, absent: 'the time of the import that changes it' },
    ...is.columns(Event, 'cancelled_at', 'cancellation_reason', 'deleted_at'),
  },
  check: ({ starts_at, ends_at }) =>
    starts_at && ends_at && ends_at < starts_at
      ? is.inconsistent('ends_at', 'must not be before starts_at')
      : undefined,
  removal: { ended: 'deleted_at', ends: { deleted_at: 'now()', updated_at: 'now()' } },
});

export const participants = recordType({
  name: 'participants',
  fields: {
    event_id: is.required(is.idOf('events')),
    user_id: is.required(is.idOfMember),
    ...is.columns(Participant, 'role', 'rsvp_status', 'responded_at', 'checked_in_at'),
    deleted: is.orElse(false, is.flag),
  },
  check: ({ role, rsvp_status }) => {
    const statuses: readonly string[] = RSVP_STATUSES_BY_ROLE[role as EventRole] ?? [];
    const allowed: unknown[] = statuses.length > 0 ? [...statuses] : [null];
    if (role === undefined || rsvp_status === undefined || allowed.includes(rsvp_status)) return undefined;
    return is.inconsistent(
      'rsvp_status',
      `must be ${allowed.map(String).join(' or ')} for the role ${role as string}`,
    );
  },
  key: ['user_id', 'event_id'],
  copies: derivedOfParticipants.copies,
  // Null for a new member, who has no readers yet; later, a trigger sets it at each update.
  besides: { changed_in: 'CASE WHEN n.id IS NULL THEN pg_current_xact_id()::text::bigint END' },
  joins: `LEFT JOIN ${NEW_USERS} n ON n.id = s.user_id`,
});
