import { Model } from '../../model/json-schema.js';
import { JsonFragment } from '../../model/json-text.js';
import { ATTENDEES, ONLINE_URL } from '../../database/sql.js';
import { Event, Participant } from './table.js';
import { User } from '../profile/table.js';
import {
  countField,
  objectField,
  objectListField,
  relation,
  textField,
  timestampField,
} from '../../model/response.js';
import { PageQuery } from '../../http/paging.js';
import { CountryCode, Flag, ListOf, DateTime, OneOf, Search } from '../../http/input/parameters.js';
import { EVENT_ROLES, EVENT_STATUSES, LENGTHS, RSVP_STATUSES } from '../../values/vocabulary.js';
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
    'Only events that changed at this time or later, by `updated_at` or on this server, including the member’s own role and RSVP. To miss no change, pass the time of the previous response',
  )
  updated_since?: string;
}

const EXAMPLE = '2026-01-31 18:00:00';

/** Stored JSON text of the event `e` for lists, so that reads need not build it. */
const CARD = new JsonFragment('e.card', true);
/** The stored JSON text of the event's location, without the closing brace. */
const LOCATION_KEYS = new JsonFragment('left(e.location, -1)', true);

/** Fields that the stored JSON texts contain. */
const [card, place] = [relation(Event, CARD), relation(Event, LOCATION_KEYS)];
const [e, p, o] = [relation(Event, 'e'), relation(Participant, 'p'), relation(User, 'o')];

const EventLocation = new Model('EventLocation', {
  name: place.location_name,
  city: place.location_city,
  country_code: place.location_country_code,
});

const EventLocationDetail = new Model('EventLocationDetail', {
  ...EventLocation.properties,
  address: e.location_address,
  latitude: e.location_latitude,
  longitude: e.location_longitude,
});

const NO_VENUE = 'null if there is no venue, or it is not known';

export const EventItem = new Model('Event', {
  id: card.id,
  title: card.title,
  summary: card.summary,
  status: card.status,
  visibility: card.visibility,
  starts_at: card.starts_at.with({ example: EXAMPLE }),
  ends_at: card.ends_at,
  timezone: card.timezone.with({ example: 'Europe/Berlin' }),
  location: objectField(EventLocation, e.location.from, NO_VENUE).nullable,
  starts_at_local: timestampField(
    { local: e.starts_at.from, zone: e.timezone.from },
    { example: EXAMPLE, description: '`starts_at` in `timezone`' },
  ),
  ends_at_local: timestampField({ local: e.ends_at.from, zone: e.timezone.from }, '`ends_at` in `timezone`')
    .nullable,
  is_all_day: card.is_all_day,
  is_online: card.is_online,
  cover_image: card.cover_image,
  organizer: objectField(UserCard, o.card.from, 'The event’s organizer'),
  role: p.role,
  rsvp_status: p.rsvp_status,
  attendees_count: countField(ATTENDEES, 'Number of people who are going'),
  capacity: card.capacity,
  created_at: card.created_at.with({ example: EXAMPLE }),
  updated_at: card.updated_at.with({ example: EXAMPLE }),
});

export const EventDetail = new Model('EventDetail', {
  ...EventItem.properties,
  description: e.description,
  tags: e.tags,
  location: objectField(EventLocationDetail, { when: `${e.location.from} <> 'null'` }, NO_VENUE).nullable,
  online_url: textField(ONLINE_URL, 'Only for organizers and members who are going; otherwise null').nullable,
  spots_left: countField(
    `CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - (${ATTENDEES}), 0) END`,
    'Number of free places, never below 0; null without a capacity',
  ).nullable,
  responded_at: p.responded_at,
  checked_in_at: p.checked_in_at,
  co_organizers: objectListField(
    UserCard,
    `SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer'`,
    'The people who organize the event with the organizer',
  ),
  cancelled_at: e.cancelled_at,
  cancellation_reason: e.cancellation_reason,
});
