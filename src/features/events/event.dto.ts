import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { PageQuery } from '../../http/paging.js';
import { Flag, ListOf, Moment, OneOf, Search } from '../../http/input/query.js';
import { UserCard } from '../profile/profile.dto.js';

export const EVENT_STATUSES = ['draft', 'scheduled', 'ongoing', 'completed', 'cancelled'] as const;
export const EVENT_VISIBILITIES = ['public', 'unlisted', 'private'] as const;
export const EVENT_ROLES = ['organizer', 'co_organizer', 'attendee', 'invitee'] as const;
export const RSVP_STATUSES = ['going', 'maybe', 'waitlisted', 'pending', 'declined'] as const;
export const TIME_FILTERS = ['all', 'upcoming', 'ongoing', 'past'] as const;
export const EVENT_SORTS = [
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

  @OneOf(TIME_FILTERS, 'upcoming: not started; ongoing: started, not past its end; past: all others')
  time_filter: (typeof TIME_FILTERS)[number] = 'all';

  @Moment('Events that start at this moment or later')
  starts_after?: string;

  @Moment('Events that start before this moment')
  starts_before?: string;

  @ListOf(EVENT_STATUSES, 'Only events in one of these states')
  status?: string[];

  @ListOf(EVENT_ROLES, 'Only events in which the member has one of these roles')
  role?: string[];

  @ListOf(RSVP_STATUSES, 'Only events to which the member answered so')
  rsvp_status?: string[];

  @Flag('Only online events, or only others')
  is_online?: boolean;

  @Search(2, 100, 'Case-insensitive substring of the title')
  q?: string;

  @Moment(
    'Events whose `updated_at` is this moment or later, and those that changed here after it, the member’s own role and answer included: ask with the `Date` of the last answer and nothing is missed',
  )
  updated_since?: string;
}

const moment = { pattern: TIMESTAMP_PATTERN, example: '2026-01-31 18:00:00' };
const momentOrNull = { type: String, nullable: true, pattern: TIMESTAMP_PATTERN };
const textOrNull = { type: String, nullable: true };

@ApiSchema({ name: 'EventLocation' })
class EventLocation {
  @ApiProperty(textOrNull)
  name: string | null;

  @ApiProperty(textOrNull)
  city: string | null;

  @ApiProperty({ ...textOrNull, pattern: '^[A-Z]{2}$', description: 'ISO 3166-1 alpha-2' })
  country_code: string | null;
}

@ApiSchema({ name: 'EventLocationDetail' })
class EventLocationDetail extends EventLocation {
  @ApiProperty(textOrNull)
  address: string | null;

  @ApiProperty({ type: Number, nullable: true, minimum: -90, maximum: 90 })
  latitude: number | null;

  @ApiProperty({ type: Number, nullable: true, minimum: -180, maximum: 180 })
  longitude: number | null;
}

@ApiSchema({ name: 'Event' })
export class EventItem {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  title: string;

  @ApiProperty(textOrNull)
  summary: string | null;

  @ApiProperty({ enum: EVENT_STATUSES })
  status: string;

  @ApiProperty({ enum: EVENT_VISIBILITIES })
  visibility: string;

  @ApiProperty(moment)
  starts_at: string;

  @ApiProperty(momentOrNull)
  ends_at: string | null;

  @ApiProperty({ example: 'Europe/Berlin', description: 'IANA name' })
  timezone: string;

  @ApiProperty({ ...moment, description: '`starts_at` in `timezone`' })
  starts_at_local: string;

  @ApiProperty({ ...momentOrNull, description: '`ends_at` in `timezone`' })
  ends_at_local: string | null;

  @ApiProperty()
  is_all_day: boolean;

  @ApiProperty()
  is_online: boolean;

  @ApiProperty({ type: EventLocation, nullable: true })
  location: EventLocation | null;

  @ApiProperty(textOrNull)
  cover_image: string | null;

  @ApiProperty({ type: UserCard })
  organizer: UserCard;

  @ApiProperty({ enum: EVENT_ROLES, description: 'Of the member' })
  role: string;

  @ApiProperty({
    type: String,
    nullable: true,
    enum: [...RSVP_STATUSES, null],
    description: 'Of the member; null for organizers',
  })
  rsvp_status: string | null;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'All whose answer is going' })
  attendees_count: number;

  @ApiProperty({ type: 'integer', nullable: true, minimum: 0 })
  capacity: number | null;

  @ApiProperty(moment)
  created_at: string;

  @ApiProperty(moment)
  updated_at: string;
}

@ApiSchema({ name: 'EventDetail' })
export class EventDetail extends EventItem {
  @ApiProperty(textOrNull)
  description: string | null;

  @ApiProperty({ type: [String] })
  tags: string[];

  @ApiProperty({ type: EventLocationDetail, nullable: true })
  declare location: EventLocationDetail | null;

  @ApiProperty({ ...textOrNull, description: 'Only for organizers and those who are going' })
  online_url: string | null;

  @ApiProperty({ type: 'integer', nullable: true, minimum: 0 })
  spots_left: number | null;

  @ApiProperty(momentOrNull)
  responded_at: string | null;

  @ApiProperty(momentOrNull)
  checked_in_at: string | null;

  @ApiProperty({ type: [UserCard] })
  co_organizers: UserCard[];

  @ApiProperty(momentOrNull)
  cancelled_at: string | null;

  @ApiProperty(textOrNull)
  cancellation_reason: string | null;
}
