import { Schema } from '../../http/output/schema.js';
import { JsonFragment } from '../../database/json-text.js';
import {
  BooleanField,
  CountField,
  EnumField,
  IdField,
  IntegerField,
  NumberField,
  ObjectField,
  ObjectListField,
  PercentageField,
  TextField,
  TimestampField,
} from '../../http/output/fields.js';
import { PageQuery } from '../../http/paging.js';
import {
  Flag,
  ListOf,
  ListOfTexts,
  Moment,
  OneOf,
  RequiredInteger,
  Search,
} from '../../http/input/parameters.js';
import type { QueryVariants } from '../../http/input/query.js';
import { MAX_PINNED, RARITIES } from '../../values/vocabulary.js';
import type { Rarity } from '../../values/vocabulary.js';
import {
  ACTIVE_MEMBERS,
  COMPUTED_AT,
  EARNERS,
  HAS_PROGRESS,
  MASKED,
  PIN_POSITION,
  PROGRESS_PERCENTAGE,
  RARITY,
  RARITY_PERCENTAGE,
  REVEALED,
} from './achievement.sql.js';

const EARNED_SORTS = ['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage'] as const;
const ALL_SORTS = ['position', 'name', '-earned_at', 'rarity_percentage', '-progress'] as const;

const CATEGORIES = 'Only achievements in one of these categories';
const TIERS = 'Only achievements of one of these rarities';

/** No action: the achievements that the member has earned. */
export class EarnedQuery extends PageQuery {
  @OneOf(EARNED_SORTS, 'Order; ties by ascending id')
  sort: (typeof EARNED_SORTS)[number] = '-earned_at';

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];

  @Moment('Only achievements earned at this time or later')
  earned_after?: string;

  @Moment('Only achievements earned before this time')
  earned_before?: string;

  @Search(2, 50, 'Case-insensitive substring of the name')
  q?: string;
}

export class AllQuery extends PageQuery {
  @OneOf(['all'], 'Which view of the achievements to return; earned ones if absent')
  action: 'all';

  @OneOf(ALL_SORTS, 'Order; ties by ascending id')
  sort: (typeof ALL_SORTS)[number] = 'position';

  @Flag('Only achievements that the member has earned (`true`) or has not earned (`false`)')
  earned?: boolean;

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];
}

export class StatsQuery {
  @OneOf(['stats'], 'Which view of the achievements to return; earned ones if absent')
  action: 'stats';
}

export class DetailQuery {
  @OneOf(['detail'], 'Which view of the achievements to return; earned ones if absent')
  action: 'detail';

  @RequiredInteger('Id of the achievement; only with action=detail')
  id: string;
}

export class PinnedQuery {
  @OneOf(['pinned'], 'Which view of the achievements to return; earned ones if absent')
  action: 'pinned';
}

/** The only page of pinned achievements. */
export const PINNED = { action: 'pinned', limit: MAX_PINNED, sort: 'pin_position' } as const;
export type PinnedListQuery = typeof PINNED;

export const ACHIEVEMENT_QUERIES: QueryVariants = {
  by: 'action',
  absent: EarnedQuery,
  values: { all: AllQuery, stats: StatsQuery, detail: DetailQuery, pinned: PinnedQuery },
};

@Schema('AchievementProgress')
class AchievementProgress {
  @CountField({ from: 'COALESCE(ua.progress, 0)', description: 'What the member has reached so far' })
  current: number;

  @IntegerField({ from: 'a.target', minimum: 1, description: 'What is needed to earn it' })
  target: number;

  @PercentageField({ from: PROGRESS_PERCENTAGE })
  percentage: number;
}

/** The fields of a hidden achievement that are masked until it is earned. */
const TOLD = new JsonFragment(REVEALED);

/** An achievement `a`, the member’s progress towards it, `ua`, and the totals that its rarity is computed from, `n` and `t`. */
@Schema(
  'Achievement',
  'A hidden achievement that the member has not earned is masked: its name is replaced; key, description, icon and progress are null',
)
export class AchievementItem {
  @IdField({ from: 'a.id' })
  id: number;

  @TextField({
    from: TOLD,
    nullable: true,
    description: 'Stable name for programs; null if it has none or is masked',
  })
  key: string | null;

  @TextField({ from: TOLD })
  name: string;

  @TextField({ from: TOLD, nullable: true })
  description: string | null;

  @TextField({ from: TOLD, nullable: true, description: 'URL of an image' })
  icon_url: string | null;

  @TextField({ from: 'a.category', description: 'One of the platform’s categories' })
  category: string;

  @EnumField(RARITIES, {
    from: RARITY,
    description:
      'common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;

  @CountField({ from: 'a.points', description: 'Points for earning it' })
  points: number;

  @BooleanField({ from: 'a.is_hidden', description: 'Whether it is masked until the member earns it' })
  is_hidden: boolean;

  @BooleanField({ from: 'ua.earned_at IS NOT NULL' })
  earned: boolean;

  @TimestampField({
    from: 'ua.earned_at',
    nullable: true,
    description: 'null if the member has not earned it',
  })
  earned_at: string | null;

  @ObjectField(AchievementProgress, {
    when: HAS_PROGRESS,
    nullable: true,
    description: 'null if it has no target',
  })
  progress: AchievementProgress | null;

  @BooleanField({
    from: 'ua.pin_position IS NOT NULL',
    description: 'Whether the member has pinned it, to be shown first',
  })
  is_pinned: boolean;

  @IntegerField({
    from: PIN_POSITION,
    nullable: true,
    minimum: 1,
    maximum: MAX_PINNED,
    description: '1 is shown first; null if it is not pinned',
  })
  pin_position: number | null;
}

@Schema('AchievementDetail')
export class AchievementDetail extends AchievementItem {
  @TextField({
    from: `CASE WHEN NOT ${MASKED} THEN a.criteria END`,
    nullable: true,
    description: 'What a member has to do to earn it',
  })
  criteria: string | null;

  @CountField({ from: EARNERS, description: 'Number of active members who have earned it' })
  earned_by_count: number;

  @CountField({ from: ACTIVE_MEMBERS, description: 'Number of active members' })
  eligible_users_count: number;

  @TimestampField({ from: COMPUTED_AT, description: 'When the rarities were computed' })
  rarity_computed_at: string;
}

class Completion {
  @CountField()
  total: number;

  @CountField()
  earned: number;

  @PercentageField()
  completion_percentage: number;
}

@Schema('CategoryCompletion')
class CategoryCompletion extends Completion {
  @TextField({ description: 'One of the platform’s categories' })
  category: string;
}

@Schema('RarityCompletion')
class RarityCompletion extends Completion {
  @EnumField(RARITIES, {
    description:
      'common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @NumberField({ nullable: true, description: 'Inclusive' })
  min_percentage: number | null;

  @NumberField({ nullable: true, description: 'Exclusive, except 100' })
  max_percentage: number | null;
}

@Schema('RarestEarned')
export class RarestEarned {
  @IdField({ from: 'a.id' })
  id: number;

  @TextField({ from: 'a.name' })
  name: string;

  @EnumField(RARITIES, {
    from: RARITY,
    description:
      'common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;
}

@Schema('AchievementStatistics')
export class AchievementStatistics extends Completion {
  @CountField({ description: 'Points of all achievements that the member has earned' })
  points_earned: number;

  @CountField({ description: 'Points of all achievements' })
  points_total: number;

  @TimestampField({ nullable: true, description: 'null if the member has earned nothing' })
  last_earned_at: string | null;

  @ObjectListField(CategoryCompletion, { description: 'In alphabetical order' })
  by_category: CategoryCompletion[];

  @ObjectListField(RarityCompletion, { description: 'From common to legendary, then unrated' })
  by_rarity: RarityCompletion[];

  @ObjectField(RarestEarned, { nullable: true, description: 'null if the member has earned nothing' })
  rarest_earned: RarestEarned | null;

  @TimestampField({ description: 'When the rarities were computed' })
  rarity_computed_at: string;
}
