import { Column, Entity, ForeignKey, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';
import { User } from './user.entity.js';

@Entity('achievements')
export class Achievement {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'BY DEFAULT' })
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

  @Column('integer', { default: 0 })
  points: number;

  @Column('boolean', { default: false })
  is_hidden: boolean;

  @Column('text', { nullable: true })
  criteria: string | null;

  /** Steps until it is earned; NULL if it has none. */
  @Column('integer', { nullable: true })
  target: number | null;

  @Column('integer', { default: 0 })
  position: number;

  @Column('timestamptz', { nullable: true })
  retired_at: Date | null;

  /** Active members who earned it, as of the last fold; made by the database. */
  @Column({ type: 'bigint', default: 0, insert: false, update: false })
  earners_count: number;

  /** What a hidden achievement conceals until it is earned, as JSON text without braces; made by the database. */
  @Column({ type: 'text', insert: false, update: false, select: false })
  revealed: string;
}

/** A member's progress towards an achievement. */
@Entity('user_achievements')
@ForeignKey(() => User, ['user_id', 'user_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
export class UserAchievement {
  @PrimaryColumn('bigint')
  user_id: number;

  /** A copy of the member's `is_disabled`, filled in by a trigger and kept true by the foreign key. */
  @Column('boolean')
  user_is_disabled: boolean;

  @PrimaryColumn('bigint')
  @ForeignKey(() => Achievement)
  achievement_id: number;

  @Column('integer', { default: 0 })
  progress: number;

  @Column('timestamptz', { nullable: true })
  earned_at: Date | null;

  @Column('smallint', { nullable: true })
  pin_position: number | null;
}
