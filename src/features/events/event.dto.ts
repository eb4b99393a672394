import { Schema } from '../../http/output/schema.js';
import { JsonFragment } from '../../database/json-text.js';
import { ATTENDEES, ONLINE_URL } from '../../database/sql.js';
import {
  BooleanField,
  CountField,
  EnumField,
  IdField,
  NumberField,
  ObjectField,
  ObjectListField,
  TextField,
  TextListField,
  TimestampField,
} from '../../http/output/fields.js';
import { PageQuery } from '../../http/paging.js';
import { Flag, ListOf, Moment, OneOf, Search } from '../../http/input/parameters.js';
import {
  COUNTRY_CODE_PATTERN,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
  MAX_LATITUDE,
  MAX_LONGITUDE,
  RSVP_STATUSES,
} from '../../values/vocabulary.js';
import type { EventRole, EventStatus, EventVisibility, RsvpStatus } from '../../values/vocabulary.js';
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

  @Moment('Only events that start at this time or later')
  starts_after?: string;

  @Moment('Only events that start before this time')
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

  @Moment(
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

@Schema('EventLocation')
class EventLocation {
  @TextField({ from: LOCATION_KEYS, nullable: true, description: 'Name of the venue' })
  name: string | null;

  @TextField({ from: LOCATION_KEYS, nullable: true })
  city: string | null;

  @TextField({
    from: LOCATION_KEYS,
    nullable: true,
    pattern: COUNTRY_CODE_PATTERN,
    description: 'ISO 3166-1 alpha-2',
  })
  country_code: string | null;
}

@Schema('EventLocationDetail')
class EventLocationDetail extends EventLocation {
  @TextField({ from: 'e.location_address', nullable: true, description: 'Street and number' })
  address: string | null;

  @NumberField({ from: 'e.location_latitude', nullable: true, minimum: -MAX_LATITUDE, maximum: MAX_LATITUDE })
  latitude: number | null;

  @NumberField({
    from: 'e.location_longitude',
    nullable: true,
    minimum: -MAX_LONGITUDE,
    maximum: MAX_LONGITUDE,
  })
  longitude: number | null;
}

/** An event `e`, and the member's relation to it, `p`. */
@Schema('Event')
export class EventItem {
  @IdField({ from: CARD })
  id: number;

  @TextField({ from: CARD })
  title: string;

  @TextField({ from: CARD, nullable: true, description: 'A line or two, for lists' })
  summary: string | null;

  @EnumField(EVENT_STATUSES, {
    from: CARD,
    description: 'draft: visible only to those who organise the event',
  })
  status: EventStatus;

  @EnumField(EVENT_VISIBILITIES, {
    from: CARD,
    description:
      'Who can find it on the platform. In this API, only members with a role in the event see it, whatever its visibility',
  })
  visibility: EventVisibility;

  @TimestampField({ from: CARD, example: EXAMPLE, description: 'UTC' })
  starts_at: string;

  @TimestampField({
    from: CARD,
    nullable: true,
    description: 'UTC; null if no end is known: the event is then past once it has started',
  })
  ends_at: string | null;

  @TextField({ from: CARD, example: 'Europe/Berlin', description: 'IANA time zone' })
  timezone: string;

  @ObjectField(EventLocation, {
    from: LOCATION,
    nullable: true,
    description: 'null if there is no venue, or it is not known',
  })
  location: EventLocation | null;

  @TimestampField({
    from: { local: 'e.starts_at', zone: 'e.timezone' },
    example: EXAMPLE,
    description: '`starts_at` in `timezone`',
  })
  starts_at_local: string;

  @TimestampField({
    from: { local: 'e.ends_at', zone: 'e.timezone' },
    nullable: true,
    description: '`ends_at` in `timezone`',
  })
  ends_at_local: string | null;

  @BooleanField({
    from: CARD,
    description: 'Whether only the dates of its start and end matter, not the times',
  })
  is_all_day: boolean;

  @BooleanField({ from: CARD, description: 'Whether it takes place online' })
  is_online: boolean;

  @TextField({ from: CARD, nullable: true, description: 'URL of an image' })
  cover_image: string | null;

  @ObjectField(UserCard, { from: 'o.card', description: 'The person whose event it is' })
  organizer: UserCard;

  @EnumField(EVENT_ROLES, { from: 'p.role', description: 'The member’s role in the event' })
  role: EventRole;

  @EnumField(RSVP_STATUSES, {
    from: 'p.rsvp_status',
    nullable: true,
    description: 'The member’s response; null for organizers and co-organizers',
  })
  rsvp_status: RsvpStatus | null;

  @CountField({ from: ATTENDEES, description: 'Number of people who are going' })
  attendees_count: number;

  @CountField({
    from: CARD,
    nullable: true,
    description: 'Maximum number of attendees; null if there is none',
  })
  capacity: number | null;

  @TimestampField({ from: CARD, example: EXAMPLE, description: 'When the event was created' })
  created_at: string;

  @TimestampField({ from: CARD, example: EXAMPLE, description: 'When the event itself last changed' })
  updated_at: string;
}

@Schema('EventDetail')
export class EventDetail extends EventItem {
  @TextField({ from: 'e.description', nullable: true, description: 'The full description' })
  description: string | null;

  @TextListField({ from: 'e.tags', description: 'Keywords' })
  tags: string[];

  @ObjectField(EventLocationDetail, {
    when: `${LOCATION} <> 'null'`,
    nullable: true,
    description: 'null if there is no venue, or it is not known',
  })
  declare location: EventLocationDetail | null;

  @TextField({
    from: ONLINE_URL,
    nullable: true,
    description: 'Only for organizers and those who are going',
  })
  online_url: string | null;

  @CountField({
    from: `CASE WHEN e.capacity IS NOT NULL THEN GREATEST(e.capacity - (${ATTENDEES}), 0) END`,
    nullable: true,
    description: 'Never below 0; null if there is no capacity',
  })
  spots_left: number | null;

  @TimestampField({
    from: 'p.responded_at',
    nullable: true,
    description: 'When the member responded to the invitation',
  })
  responded_at: string | null;

  @TimestampField({ from: 'p.checked_in_at', nullable: true, description: 'When the member checked in' })
  checked_in_at: string | null;

  @ObjectListField(UserCard, {
    from: `SELECT COALESCE(string_agg(u.card, ',' ORDER BY u.id), '')
      FROM participants c JOIN users u ON u.id = c.user_id WHERE c.event_id = e.id AND c.role = 'co_organizer'`,
    description: 'The people who organise it together with the organizer',
  })
  co_organizers: UserCard[];

  @TimestampField({ from: 'e.cancelled_at', nullable: true, description: 'null if it was not cancelled' })
  cancelled_at: string | null;

  @TextField({
    from: 'e.cancellation_reason',
    nullable: true,
    description: 'As given by the person who cancelled it',
  })
  cancellation_reason: string | null;
}
