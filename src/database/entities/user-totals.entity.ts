import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { User } from './user.entity.js';

/** What each default list of a member counts; maintained by triggers, never written by code. */
@Entity('user_totals')
export class UserTotals {
  @PrimaryColumn('bigint')
  user_id: number;

  @OneToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id' })
  user: Relation<User>;

  @Column('bigint', { default: 0 })
  events_count: number;

  @Column('bigint', { default: 0 })
  connections_count: number;

  @Column('bigint', { default: 0 })
  achievements_count: number;
}

/** One row: how many members are active, which is what every rarity is a share of; maintained by triggers. */
@Entity('platform_totals')
export class PlatformTotals {
  @PrimaryColumn('boolean', { default: true })
  id: boolean;

  @Column('bigint', { default: 0 })
  active_users_count: number;
}
