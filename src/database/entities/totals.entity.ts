import { Column, Entity, PrimaryColumn } from 'typeorm';

// The base of every maintained total. What has changed since stands in the tables `*_total_deltas`: the total is the sum of
// both. Written by the database alone; a row stands where something was counted.

/** What each default list of a member counts. */
@Entity('user_totals')
export class UserTotals {
  @PrimaryColumn('bigint')
  user_id: number;

  @Column('bigint', { default: 0 })
  events_count: number;

  @Column('bigint', { default: 0 })
  connections_count: number;

  @Column('bigint', { default: 0 })
  achievements_count: number;
}

/** Of an event. */
@Entity('event_totals')
export class EventTotals {
  @PrimaryColumn('bigint')
  event_id: number;

  /** All whose rsvp is going. */
  @Column('bigint', { default: 0 })
  attendees_count: number;
}

/** Of an achievement. */
@Entity('achievement_totals')
export class AchievementTotals {
  @PrimaryColumn('bigint')
  achievement_id: number;

  /** Active members who earned it. */
  @Column('bigint', { default: 0 })
  earners_count: number;
}

/** One row: how many members are active, which is what every rarity is a share of. */
@Entity('platform_totals')
export class PlatformTotals {
  @PrimaryColumn('boolean', { default: true })
  id: boolean;

  @Column('bigint', { default: 0 })
  active_users_count: number;
}
