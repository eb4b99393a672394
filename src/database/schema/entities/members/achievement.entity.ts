import { Entity, ForeignKey } from 'typeorm';
import { bigint, boolean, identity, integer, row, smallint, text, timestamptz } from '../../../../model/column.js';
import { OfMember } from '../../../../model/declarations.js';
import { User } from './user.entity.js';

@Entity('achievements')
export class Achievement extends row({
  id: identity('BY DEFAULT'),
  key: text.nullable,
  name: text,
  description: text.nullable,
  icon_url: text.nullable,
  category: text,
  points: integer.default(0),
  is_hidden: boolean.default(false),
  criteria: text.nullable,
  /** Steps until it is earned; NULL if it has none. */
  target: integer.nullable,
  position: integer.default(0),
  retired_at: timestamptz.nullable,
  /** Active members who earned it, as of the last fold; made by the database. */
  earners_count: bigint.default(0).generated,
  /** What a hidden achievement conceals until it is earned, as JSON text without braces; made by the database. */
  revealed: text.generated.unselected,
}) {}

/** A member's progress towards an achievement. */
@Entity('user_achievements')
@ForeignKey(() => User, ['user_id', 'user_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
@OfMember<UserAchievement>({ export: { in: 'achievements' } })
export class UserAchievement extends row({
  user_id: bigint.primary,
  /** A copy of the member's `is_disabled`, filled in by a trigger and kept true by the foreign key. */
  user_is_disabled: boolean,
  achievement_id: bigint.primary.refersTo(() => Achievement),
  progress: integer.default(0),
  earned_at: timestamptz.nullable,
  pin_position: smallint.nullable,
}) {}
