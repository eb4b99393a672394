import { Model } from '../../model/json-schema.js';
import { JsonFragment } from '../../database/json-text.js';
import { ATTENDEES, ONLINE_URL } from '../../database/sql.js';
import {
  booleanField,
  countField,
  enumField,
  idField,
  numberField,
  objectField,
  objectListField,
  textField,
  textListField,
  timestampField,
} from '../../http/output/fields.js';
import { PageQuery } from '../../http/paging.js';
import { CountryCode, Flag, ListOf, DateTime, OneOf, Search } from '../../http/input/parameters.js';
import {
  COUNTRY_CODE_PATTERN,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
  LENGTHS,
  MAX_LATITUDE,
  MAX_LONGITUDE,
  RSVP_STATUSES,
} from '../../values/vocabulary.js';
import { UserCard } from '../profile/profile.dto.js';

const TIME_FILTERS = ['all', 'upcoming', 'ongoing', 'past'] as const;
const EVENT_SORTS = [
  '-starts_at',
  'starts_at',
  'created_at',
  '-created_at',
  'updated_at',
  '-updated_at',
  'title',
  '-title',
] as const;

export class EventsQuery extends PageQuery {
  @OneOf(EVENT_SORTS, 'Order; ties by ascending id')
  sort: (typeof EVENT_SORTS)[number] = '-starts_at';

  @OneOf(TIME_FILTERS, 'upcoming: not started; ongoing: started, but not ended; past: all others')
  time_filter: (typeof TIME_FILTERS)[number] = 'all';

  @DateTime('Only events that start at this time or later')
  starts_after?: string;

  @DateTime('Only events that start before this time')
  starts_before?: string;

  @ListOf(EVENT_STATUSES, 'Only events in one of these states')
  status?: string[];

  @ListOf(EVENT_ROLES, 'Only events in which the member has one of these roles')
  role?: string[];

  @ListOf(RSVP_STATUSES, 'Only events to which the member gave one of these responses')
  rsvp_status?: string[];

  @Flag('Only online events (`true`), or only others (`false`)')
  is_online?: boolean;

  @Search(2, 100, 'Case-insensitive substring of the title')
  q?: string;

  @Search(1, LENGTHS.events.location_city[1], 'Only events in this city, regardless of case')
  city?: string;

  @CountryCode('Only events in this country')
  country_code?: string;

  @DateTime(
    'Only events whose `updated_at` is this time or later, or which changed here since then, including the member’s own role and RSVP. Pass the time of the previous response, and no change is missed',
  )
  updated_since?: string;
}

const EXAMPLE = '2026-01-31 18:00:00';

/** What lists show of the event `e` itself. It is stored when the event changes, and not composed for each read. */
const CARD = new JsonFragment('e.card', true);
/** The same for its location; the text `null` if it has none. */
const LOCATION = 'e.location';
const LOCATION_KEYS = new JsonFragment(`left(${LOCATION}, -1)`, true);

const EventLocation = new Model('EventLocation', {
  name: textField(LOCATION_KEYS, 'Name of the venue').nullable,
  city: textField(LOCATION_KEYS).nullable,
  country_code: textField(LOCATION_KEYS, { pattern: COUNTRY_CODE_PATTERN, description: 'ISO 3166-1 alpha-2' })
    .nullable,
});

const EventLocationDetail = new Model('EventLocationDetail', {
  ...EventLocation.properties,
  address: textField('e.location_address', 'Street and number').nullable,
  latitude: numberField('e.location_latitude', { minimum: -MAX_LATITUDE, maximum: MAX_LATITUDE }).nullable,
  longitude: numberField('e.location_longitude', { minimum: -MAX_LONGITUDE, maximum: MAX_LONGITUDE })
    .nullable,
});

const NO_VENUE = 'null if there is no venue, or it is not known';

/** An event `e`, and the member's relation to it, `p`. */
export const EventItem = new Model('Event', {
  id: idField(CARD),
  title: textField(CARD),
  summary: textField(CARD, 'A line or two, for lists').nullable,
  status: enumField(EVENT_STATUSES, CARD, 'draft: visible only to those who organise the event'),
  visibility: enumField(
    EVENT_VISIBILITIES,
    CARD,
    'Who can find it on the platform. In this API, only members with a role in the event see it, with any visibility',
  ),
  starts_at: timestampField(CARD, { example: EXAMPLE, description: 'UTC' }),
  ends_at: timestampField(CARD, 'UTC; null if no end is known: the event is then past once it has started')
    .nullable,
  timezone: textField(CARD, { example: 'Europe/Berlin', description: 'IANA time zone' }),
  location: objectField(EventLocation, LOCATION, NO_VENUE).nullable,
  starts_at_local: timestampField(
    { local: 'e.starts_at', zone: 'e.timezone' },
    { example: EXAMPLE, description: '`starts_at` in `timezone`' },
  ),
  ends_at_local: timestampField({ local: 'e.ends_at', zone: 'e.timezone' }, '`ends_at` in `timezone`')
    .nullable,
  is_all_day: booleanField(CARD, 'Whether only the dates of its start and end matter, not the times'),
  is_online: booleanField(CARD, 'Whether it takes place online'),
  cover_image: textField(CARD, 'URL of an image').nullable,
  organizer: objectField(UserCard, 'o.card', 'The person whose event it is'),
  role: enumField(EVENT_ROLES, 'p.role', 'The member’s role in the event'),
  rsvp_status: enumField(
    RSVP_STATUSES,
    'p.rsvp_status',
    'The member’s response; null for organizers and co-organizers',
  ).nullable,
  attendees_count: countField(ATTENDEES, 'Number of people who are going'),
  capacity: countField(CARD, 'Maximum number of attendees; null if there is none').nullable,
  created_at: timestampField(CARD, { example: EXAMPLE, description: 'When the event was created' }),
  updated_at: timestampField(CARD, { example: EXAMPLE, description: 'When the event itself last changed' }),
});

export const EventDetail = new Model('EventDetail', {
  ...EventItem.properties,
  description: textField('e.description', 'The full description').nullable,
  tags: textListField('e.tags', 'Keywords'),
  location: objectField(EventLocationDetail, { when: `${LOCATION} <> 'null'` }, NO_VENUE).nullable,
  online_url: textField(ONLINE_URL, 'Only for organizers and those who are going').nullable,
  spots_left: countField(
    `CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - (${ATTENDEES}), 0) END`,
    'Never below 0; null if there is no capacity',
  ).nullable,
  responded_at: timestampField('p.responded_at', 'When the member responded to the invitation').nullable,
  checked_in_at: timestampField('p.checked_in_at', 'When the member checked in').nullable,
  co_organizers: objectListField(
    UserCard,
    `SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer'`,
    'The people who organise it together with the organizer',
  ),
  cancelled_at: timestampField('e.cancelled_at', 'null if it was not cancelled').nullable,
  cancellation_reason: textField('e.cancellation_reason', 'As given by the person who cancelled it').nullable,
});
