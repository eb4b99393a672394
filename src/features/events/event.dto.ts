import { Model } from '../../http/output/schema.js';
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
import { Flag, ListOf, DateTime, OneOf, Search } from '../../http/input/parameters.js';
import {
  COUNTRY_CODE_PATTERN,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
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

  @DateTime(
    'Only events whose `updated_at` is this time or later, or which changed here since then, including the member’s own role and RSVP. Pass the `Date` of the previous response, and no change is missed',
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
  name: textField({ from: LOCATION_KEYS, nullable: true, description: 'Name of the venue' }),
  city: textField({ from: LOCATION_KEYS, nullable: true }),
  country_code: textField({
    from: LOCATION_KEYS,
    nullable: true,
    pattern: COUNTRY_CODE_PATTERN,
    description: 'ISO 3166-1 alpha-2',
  }),
});

const EventLocationDetail = new Model('EventLocationDetail', {
  ...EventLocation.properties,
  address: textField({ from: 'e.location_address', nullable: true, description: 'Street and number' }),
  latitude: numberField({
    from: 'e.location_latitude',
    nullable: true,
    minimum: -MAX_LATITUDE,
    maximum: MAX_LATITUDE,
  }),
  longitude: numberField({
    from: 'e.location_longitude',
    nullable: true,
    minimum: -MAX_LONGITUDE,
    maximum: MAX_LONGITUDE,
  }),
});

/** An event `e`, and the member's relation to it, `p`. */
export const EventItem = new Model('Event', {
  id: idField({ from: CARD }),
  title: textField({ from: CARD }),
  summary: textField({ from: CARD, nullable: true, description: 'A line or two, for lists' }),
  status: enumField(EVENT_STATUSES, {
    from: CARD,
    description: 'draft: visible only to those who organise the event',
  }),
  visibility: enumField(EVENT_VISIBILITIES, {
    from: CARD,
    description:
      'Who can find it on the platform. In this API, only members with a role in the event see it, whatever its visibility',
  }),
  starts_at: timestampField({ from: CARD, example: EXAMPLE, description: 'UTC' }),
  ends_at: timestampField({
    from: CARD,
    nullable: true,
    description: 'UTC; null if no end is known: the event is then past once it has started',
  }),
  timezone: textField({ from: CARD, example: 'Europe/Berlin', description: 'IANA time zone' }),
  location: objectField(EventLocation, {
    from: LOCATION,
    nullable: true,
    description: 'null if there is no venue, or it is not known',
  }),
  starts_at_local: timestampField({
    from: { local: 'e.starts_at', zone: 'e.timezone' },
    example: EXAMPLE,
    description: '`starts_at` in `timezone`',
  }),
  ends_at_local: timestampField({
    from: { local: 'e.ends_at', zone: 'e.timezone' },
    nullable: true,
    description: '`ends_at` in `timezone`',
  }),
  is_all_day: booleanField({
    from: CARD,
    description: 'Whether only the dates of its start and end matter, not the times',
  }),
  is_online: booleanField({ from: CARD, description: 'Whether it takes place online' }),
  cover_image: textField({ from: CARD, nullable: true, description: 'URL of an image' }),
  organizer: objectField(UserCard, { from: 'o.card', description: 'The person whose event it is' }),
  role: enumField(EVENT_ROLES, { from: 'p.role', description: 'The member’s role in the event' }),
  rsvp_status: enumField(RSVP_STATUSES, {
    from: 'p.rsvp_status',
    nullable: true,
    description: 'The member’s response; null for organizers and co-organizers',
  }),
  attendees_count: countField({ from: ATTENDEES, description: 'Number of people who are going' }),
  capacity: countField({
    from: CARD,
    nullable: true,
    description: 'Maximum number of attendees; null if there is none',
  }),
  created_at: timestampField({ from: CARD, example: EXAMPLE, description: 'When the event was created' }),
  updated_at: timestampField({
    from: CARD,
    example: EXAMPLE,
    description: 'When the event itself last changed',
  }),
});

export const EventDetail = new Model('EventDetail', {
  ...EventItem.properties,
  description: textField({ from: 'e.description', nullable: true, description: 'The full description' }),
  tags: textListField({ from: 'e.tags', description: 'Keywords' }),
  location: objectField(EventLocationDetail, {
    when: `${LOCATION} <> 'null'`,
    nullable: true,
    description: 'null if there is no venue, or it is not known',
  }),
  online_url: textField({
    from: ONLINE_URL,
    nullable: true,
    description: 'Only for organizers and those who are going',
  }),
  spots_left: countField({
    from: `CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - (${ATTENDEES}), 0) END`,
    nullable: true,
    description: 'Never below 0; null if there is no capacity',
  }),
  responded_at: timestampField({
    from: 'p.responded_at',
    nullable: true,
    description: 'When the member responded to the invitation',
  }),
  checked_in_at: timestampField({
    from: 'p.checked_in_at',
    nullable: true,
    description: 'When the member checked in',
  }),
  co_organizers: objectListField(UserCard, {
    from: `SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer'`,
    description: 'The people who organise it together with the organizer',
  }),
  cancelled_at: timestampField({
    from: 'e.cancelled_at',
    nullable: true,
    description: 'null if it was not cancelled',
  }),
  cancellation_reason: textField({
    from: 'e.cancellation_reason',
    nullable: true,
    description: 'As given by the person who cancelled it',
  }),
});
