import { Entity, ForeignKey, Unique } from 'typeorm';
import {
  bigint,
  boolean,
  doublePrecision,
  identity,
  integer,
  row,
  text,
  timestamptz,
} from '../../../../model/column.js';
import { OfMember } from '../../../../model/declarations.js';
import { User } from './user.entity.js';

@Entity('events')
@Unique('events_copied_key', ['starts_at', 'is_draft', 'is_deleted', 'id'])
@OfMember<Event>({
  owner: ['organizer_id'],
  erase: { keep: 'they are the platform’s, and others take part in them' },
  export: { in: 'events' },
})
export class Event extends row({
  id: identity('BY DEFAULT'),
  title: text,
  summary: text.nullable,
  description: text.nullable,
  status: text,
  visibility: text,
  starts_at: timestamptz,
  ends_at: timestamptz.nullable,
  /** IANA name. */
  timezone: text,
  is_all_day: boolean.default(false),
  is_online: boolean.default(false),
  online_url: text.nullable,
  location_name: text.nullable,
  location_city: text.nullable,
  location_country_code: text.nullable,
  location_address: text.nullable,
  location_latitude: doublePrecision.nullable,
  location_longitude: doublePrecision.nullable,
  cover_image: text.nullable,
  organizer_id: bigint.refersTo(() => User),
  capacity: integer.nullable,
  tags: text.array.sqlDefault("'{}'"),
  created_at: timestamptz.sqlDefault('now()'),
  updated_at: timestamptz.sqlDefault('now()'),
  cancelled_at: timestamptz.nullable,
  cancellation_reason: text.nullable,
  deleted_at: timestamptz.nullable,
  /** The event as lists show it, as JSON text without the closing brace; made by the database. */
  card: text.generated.unselected,
  /** The place as lists show it, as JSON text; made by the database. */
  location: text.generated.unselected,
  /** Whether `status` is draft; made by the database. */
  is_draft: boolean.generated.unselected,
  /** Whether `deleted_at` is set; made by the database. */
  is_deleted: boolean.generated.unselected,
  /** The transaction that last changed it; null if unchanged since it was first stored. */
  changed_in: bigint.nullable.unselected,
  /** Number of changes since it was first stored; counted by the database. */
  revision: integer.default(0).unselected,
  /** The form of `title` for sorting and searching; made by the database. */
  folded_title: text.generated.unselected,
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
  user_id: bigint.primary.refersTo(() => User),
  event_id: bigint.primary,
  role: text,
  rsvp_status: text.nullable,
  responded_at: timestamptz.nullable,
  checked_in_at: timestamptz.nullable,
  /** Copies of the event's columns, filled in by a trigger and kept true by the foreign key. */
  starts_at: timestamptz,
  event_is_draft: boolean,
  event_is_deleted: boolean,
  /** The access rule applied to these and `role`; made by the database. */
  is_visible: boolean.generated.unselected,
  /** The transaction that last added or changed it; null if it was added with the member. */
  changed_in: bigint.nullable.sqlDefault('((pg_current_xact_id())::text)::bigint').unselected,
}) {}
