import { Column, Entity, ForeignKey, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { User } from './user.entity.js';

@Entity('events')
@Unique('events_copied_key', ['starts_at', 'is_draft', 'is_deleted', 'id'])
export class Event {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
  id: number;

  @Column('text')
  title: string;

  @Column('text', { nullable: true })
  summary: string | null;

  @Column('text', { nullable: true })
  description: string | null;

  @Column('text')
  status: string;

  @Column('text')
  visibility: string;

  @Column('timestamptz')
  starts_at: Date;

  @Column('timestamptz', { nullable: true })
  ends_at: Date | null;

  /** IANA name. */
  @Column('text')
  timezone: string;

  @Column('boolean', { default: false })
  is_all_day: boolean;

  @Column('boolean', { default: false })
  is_online: boolean;

  @Column('text', { nullable: true })
  online_url: string | null;

  @Column('text', { nullable: true })
  location_name: string | null;

  @Column('text', { nullable: true })
  location_city: string | null;

  @Column('text', { nullable: true })
  location_country_code: string | null;

  @Column('text', { nullable: true })
  location_address: string | null;

  @Column('double precision', { nullable: true })
  location_latitude: number | null;

  @Column('double precision', { nullable: true })
  location_longitude: number | null;

  @Column('text', { nullable: true })
  cover_image: string | null;

  @Column('bigint')
  @ForeignKey(() => User)
  organizer_id: number;

  @Column('integer', { nullable: true })
  capacity: number | null;

  @Column('text', { array: true, default: () => "'{}'" })
  tags: string[];

  @Column('timestamptz', { default: () => 'now()' })
  created_at: Date;

  @Column('timestamptz', { default: () => 'now()' })
  updated_at: Date;

  @Column('timestamptz', { nullable: true })
  cancelled_at: Date | null;

  @Column('text', { nullable: true })
  cancellation_reason: string | null;

  @Column('timestamptz', { nullable: true })
  deleted_at: Date | null;

  /** The event as lists show it, as JSON text without the closing brace; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  card: string;

  /** The place as lists show it, as JSON text; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  location: string;

  /** Whether `status` is draft; made by the database. */
  @Column({ type: 'boolean', insert: false, update: false, select: false })
  is_draft: boolean;

  /** Whether `deleted_at` is set; made by the database. */
  @Column({ type: 'boolean', insert: false, update: false, select: false })
  is_deleted: boolean;

  /** The transaction that last changed it; null if unchanged since it was first stored. */
  @Column('bigint', { nullable: true, select: false })
  changed_in: number | null;

  /** Number of changes since it was first stored; counted by the database. */
  @Column('integer', { default: 0, select: false })
  revision: number;

  /** The form of `title` for sorting and searching; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  folded_title: string;
}

/** A member's relation to an event, which gives access to it. */
@Entity('participants')
@ForeignKey(
  () => Event,
  ['event_id', 'starts_at', 'event_is_draft', 'event_is_deleted'],
  ['id', 'starts_at', 'is_draft', 'is_deleted'],
  { onUpdate: 'CASCADE' },
)
export class Participant {
  @PrimaryColumn('bigint')
  @ForeignKey(() => User)
  user_id: number;

  @PrimaryColumn('bigint')
  event_id: number;

  @Column('text')
  role: string;

  @Column('text', { nullable: true })
  rsvp_status: string | null;

  @Column('timestamptz', { nullable: true })
  responded_at: Date | null;

  @Column('timestamptz', { nullable: true })
  checked_in_at: Date | null;

  /** Copies of the event's columns, filled in by a trigger and kept true by the foreign key. */
  @Column('timestamptz')
  starts_at: Date;

  @Column('boolean')
  event_is_draft: boolean;

  @Column('boolean')
  event_is_deleted: boolean;

  /** The access rule applied to these and `role`; made by the database. */
  @Column({ type: 'boolean', insert: false, update: false, select: false })
  is_visible: boolean;

  /** The transaction that last added or changed it; null if it was added with the member. */
  @Column('bigint', {
    nullable: true,
    select: false,
    default: () => '((pg_current_xact_id())::text)::bigint',
  })
  changed_in: number | null;
}
