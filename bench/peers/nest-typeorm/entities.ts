import {
  Column,
  Entity,
  JoinColumn,
  ManyToOne,
  OneToOne,
  PrimaryColumn,
  VirtualColumn,
  type Relation,
} from 'typeorm';

@Entity('user_totals')
export class UserTotals {
  @PrimaryColumn('bigint')
  user_id: number;

  @Column('bigint')
  events_count: number;

  @Column('bigint')
  connections_count: number;

  @Column('bigint')
  achievements_count: number;
}

@Entity('users')
export class User {
  @PrimaryColumn('bigint')
  id: number;

  @Column('text')
  username: string;

  @Column('text')
  display_name: string;

  @Column('text', { nullable: true })
  bio: string | null;

  @Column('text', { nullable: true })
  profile_picture: string | null;

  @Column('timestamptz')
  created_at: Date;

  @Column('timestamptz', { nullable: true })
  disabled_at: Date | null;

  @OneToOne(() => UserTotals)
  @JoinColumn({ name: 'id', referencedColumnName: 'user_id' })
  totals: Relation<UserTotals>;
}

@Entity('api_keys')
export class ApiKey {
  @PrimaryColumn('text')
  id: string;

  @Column('bytea')
  hash: Buffer;

  @Column('text', { array: true })
  scopes: string[];

  @Column('timestamptz', { nullable: true })
  expires_at: Date | null;

  @Column('timestamptz', { nullable: true })
  revoked_at: Date | null;

  @ManyToOne(() => User)
  @JoinColumn({ name: 'user_id' })
  user: Relation<User>;
}

@Entity('events')
export class Event {
  @PrimaryColumn('bigint')
  id: number;

  @Column('text')
  title: string;

  @Column('text', { nullable: true })
  summary: string | null;

  @Column('text')
  status: string;

  @Column('text')
  visibility: string;

  @Column('timestamptz')
  starts_at: Date;

  @Column('timestamptz', { nullable: true })
  ends_at: Date | null;

  @Column('text')
  timezone: string;

  @Column('boolean')
  is_all_day: boolean;

  @Column('boolean')
  is_online: boolean;

  @Column('text', { nullable: true })
  location_name: string | null;

  @Column('text', { nullable: true })
  location_city: string | null;

  @Column('text', { nullable: true })
  location_country_code: string | null;

  @Column('text', { nullable: true })
  cover_image: string | null;

  @Column('integer', { nullable: true })
  capacity: number | null;

  @Column('timestamptz')
  created_at: Date;

  @Column('timestamptz')
  updated_at: Date;

  @Column('timestamptz', { nullable: true })
  deleted_at: Date | null;

  @VirtualColumn({
    type: 'integer',
    query: (alias) =>
      `SELECT COALESCE(sum(attendees_count), 0)::int FROM event_totals WHERE event_id = ${alias}.id`,
  })
  attendees_count: number;

  @ManyToOne(() => User)
  @JoinColumn({ name: 'organizer_id' })
  organizer: Relation<User>;
}

@Entity('participants')
export class Participant {
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('bigint')
  event_id: number;

  @Column('text')
  role: string;

  @Column('text', { nullable: true })
  rsvp_status: string | null;

  @Column('timestamptz')
  starts_at: Date;

  @ManyToOne(() => Event)
  @JoinColumn({ name: 'event_id' })
  event: Relation<Event>;
}

@Entity('connections')
export class Connection {
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('bigint')
  id: number;

  @Column('text')
  status: string;

  @Column('text', { nullable: true })
  source: string | null;

  @Column('bigint', { nullable: true })
  met_at_event_id: number | null;

  @Column('timestamptz')
  requested_at: Date;

  @Column('timestamptz', { nullable: true })
  connected_at: Date | null;

  @ManyToOne(() => User)
  @JoinColumn({ name: 'peer_id' })
  peer: Relation<User>;
}

@Entity('achievements')
export class Achievement {
  @PrimaryColumn('bigint')
  id: number;

  @Column('text', { nullable: true })
  key: string | null;

  @Column('text')
  name: string;

  @Column('text', { nullable: true })
  description: string | null;

  @Column('text', { nullable: true })
  icon_url: string | null;

  @Column('text')
  category: string;

  @Column('integer')
  points: number;

  @Column('boolean')
  is_hidden: boolean;

  @Column('integer', { nullable: true })
  target: number | null;

  @Column('timestamptz', { nullable: true })
  retired_at: Date | null;

  @VirtualColumn({
    type: 'integer',
    query: (alias) => `SELECT earners_count::int FROM achievements WHERE id = ${alias}.id`,
  })
  earners_count: number;
}

@Entity('user_achievements')
export class UserAchievement {
  @PrimaryColumn('bigint')
  user_id: number;

  @PrimaryColumn('bigint')
  achievement_id: number;

  @Column('integer')
  progress: number;

  @Column('timestamptz', { nullable: true })
  earned_at: Date | null;

  @Column('smallint', { nullable: true })
  pin_position: number | null;

  @ManyToOne(() => Achievement)
  @JoinColumn({ name: 'achievement_id' })
  achievement: Relation<Achievement>;
}

@Entity('platform_totals')
export class PlatformTotals {
  @PrimaryColumn('boolean')
  id: boolean;

  @Column('bigint')
  active_users_count: number;
}

export const ENTITIES = [
  UserTotals,
  User,
  ApiKey,
  Event,
  Participant,
  Connection,
  Achievement,
  UserAchievement,
  PlatformTotals,
];
