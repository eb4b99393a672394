import { Entity, ForeignKey } from 'typeorm';
import { bigint, identity, row, stored } from '../../model/column.js';
import { OfMember } from '../../model/declarations.js';
import { boolean, id, integer, text, timestamp } from '../../model/field.js';
import { LENGTHS, MAX_PINNED } from '../../values/vocabulary.js';
import { User } from '../profile/table.js';

@Entity('achievements')
export class Achievement extends row({
  id: identity('BY DEFAULT'),
  key: text(LENGTHS.achievements.key).about('Stable name for programs; null if it has none or is masked')
    .nullable,
  name: text(LENGTHS.achievements.name),
  description: text(LENGTHS.achievements.description).nullable,
  icon_url: text(LENGTHS.achievements.icon_url).about('URL of an image').nullable,
  category: text(LENGTHS.achievements.category).about('One of the platform’s categories'),
  points: stored(integer(0).about('Points for earning it')).default(0),
  is_hidden: stored(boolean.about('Whether it is masked until the member earns it')).default(false),
  criteria: text(LENGTHS.achievements.criteria).nullable,
  /** Steps until it is earned; NULL if it has none. */
  target: integer(1).nullable,
  position: stored(integer(-(2 ** 31))).default(0),
  retired_at: timestamp.nullable,
  /** Active members who earned it, as of the last fold; made by the database. */
  earners_count: bigint.default(0).generated,
  /** What a hidden achievement conceals until it is earned, as JSON text without braces; made by the database. */
  revealed: stored(text()).generated.unselected,
}) {}

/** A member's progress towards an achievement. */
@Entity('user_achievements')
@ForeignKey(() => User, ['user_id', 'user_is_disabled'], ['id', 'is_disabled'], { onUpdate: 'CASCADE' })
@OfMember<UserAchievement>({ export: { in: 'achievements' } })
export class UserAchievement extends row({
  user_id: stored(id).primary,
  /** A copy of the member's `is_disabled`, filled in by a trigger and kept true by the foreign key. */
  user_is_disabled: boolean,
  achievement_id: stored(id).primary.refersTo(() => Achievement),
  progress: stored(integer(0)).default(0),
  earned_at: timestamp.about('null if the member has not earned it').nullable,
  pin_position: integer(1, MAX_PINNED).nullable,
}) {}
