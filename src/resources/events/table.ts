import { Entity, ForeignKey, Unique } from 'typeorm';
import { bigint, identity, row, stored } from '../../model/column.js';
import { OfMember } from '../../model/declarations.js';
import { boolean, enumOf, id, integer, number, text, texts, timestamp } from '../../model/field.js';
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
import { User } from '../profile/table.js';

@Entity('events')
@Unique('events_copied_key', ['starts_at', 'is_draft', 'is_deleted', 'id'])
@OfMember<Event>({
  owner: ['organizer_id'],
  erase: { keep: 'they belong to the platform, and have other participants' },
  export: { in: 'events' },
})
export class Event extends row({
  id: identity('BY DEFAULT'),
  title: text(LENGTHS.events.title),
  summary: text(LENGTHS.events.summary).about('A line or two, for lists').nullable,
  description: text(LENGTHS.events.description).about('The full description').nullable,
  status: enumOf(EVENT_STATUSES).about('draft: visible only to those who organize the event'),
  visibility: enumOf(EVENT_VISIBILITIES).about(
    'Who can find it on the platform. In this API, only members with a role in the event see it, with any visibility',
  ),
  starts_at: timestamp.about('UTC'),
  ends_at: timestamp.about('UTC; null if no end is known: the event is then past once it has started')
    .nullable,
  timezone: text().about('IANA time zone'),
  is_all_day: stored(
    boolean.about('Whether only the dates of its start and end matter, not the times'),
  ).default(false),
  is_online: stored(boolean.about('Whether it takes place online')).default(false),
  online_url: text(LENGTHS.events.online_url).nullable,
  location_name: text(LENGTHS.events.location_name).about('Name of the venue').nullable,
  location_city: text(LENGTHS.events.location_city).nullable,
  location_country_code: text(undefined, COUNTRY_CODE_PATTERN).about('ISO 3166-1 alpha-2').nullable,
  location_address: text(LENGTHS.events.location_address).about('Street and number').nullable,
  location_latitude: number(MAX_LATITUDE).nullable,
  location_longitude: number(MAX_LONGITUDE).nullable,
  cover_image: text(LENGTHS.events.cover_image).about('URL of an image').nullable,
  organizer_id: stored(id).refersTo(() => User),
  capacity: integer(0).about('Maximum number of attendees; null if there is none').nullable,
  tags: stored(texts.about('Keywords')).sqlDefault("'{}'"),
  created_at: stored(timestamp.about('When the event was created')).sqlDefault('now()'),
  updated_at: stored(timestamp.about('When the event itself last changed')).sqlDefault('now()'),
  cancelled_at: timestamp.about('null if it was not cancelled').nullable,
  cancellation_reason: text(LENGTHS.events.cancellation_reason).about(
    'As given by the person who cancelled it',
  ).nullable,
  deleted_at: timestamp.nullable,
  /** The event as lists show it, as JSON text without the closing brace; made by the database. */
  card: stored(text()).generated.unselected,
  /** The place as lists show it, as JSON text; made by the database. */
  location: stored(text()).generated.unselected,
  /** Whether `status` is draft; made by the database. */
  is_draft: stored(boolean).generated.unselected,
  /** Whether `deleted_at` is set; made by the database. */
  is_deleted: stored(boolean).generated.unselected,
  /** The transaction that last changed it; null if unchanged since it was first stored. */
  changed_in: bigint.nullable.unselected,
  /** Number of changes since it was first stored; counted by the database. */
  revision: stored(integer(0)).default(0).unselected,
  /** The form of `title` for sorting and searching; made by the database. */
  folded_title: stored(text()).generated.unselected,
}) {}

/** A member's relation to an event, which gives access to it. */
@Entity('participants')
@ForeignKey(
  () => Event,
  ['event_id', 'starts_at', 'event_is_draft', 'event_is_deleted'],
  ['id', 'starts_at', 'is_draft', 'is_deleted'],
  { onUpdate: 'CASCADE' },
)
@OfMember<Participant>({ export: { in: 'events' } })
export class Participant extends row({
  user_id: stored(id).primary.refersTo(() => User),
  event_id: stored(id).primary,
  role: enumOf(EVENT_ROLES).about('The member’s role in the event'),
  rsvp_status: enumOf(RSVP_STATUSES).about('The member’s response; null for organizers and co-organizers')
    .nullable,
  responded_at: timestamp.about('When the member responded to the invitation').nullable,
  checked_in_at: timestamp.about('When the member checked in').nullable,
  /** Copies of the event's columns, filled in by a trigger and kept true by the foreign key. */
  starts_at: timestamp,
  event_is_draft: boolean,
  event_is_deleted: boolean,
  /** The access rule applied to these and `role`; made by the database. */
  is_visible: stored(boolean).generated.unselected,
  /** The transaction that last added or changed it; null if it was added with the member. */
  changed_in: bigint.nullable.sqlDefault('((pg_current_xact_id())::text)::bigint').unselected,
}) {}
