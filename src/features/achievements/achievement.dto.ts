import { ApiSchema } from '../../http/output/swagger.js';
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

/** No action: what the member earned. */
export class EarnedQuery extends PageQuery {
  @OneOf(EARNED_SORTS, 'Order; ties by ascending id')
  sort: (typeof EARNED_SORTS)[number] = '-earned_at';

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];

  @Moment('Earned at this moment or later')
  earned_after?: string;

  @Moment('Earned before this moment')
  earned_before?: string;

  @Search(2, 50, 'Case-insensitive substring of the name')
  q?: string;
}

export class AllQuery extends PageQuery {
  @OneOf(['all'], 'What is asked of the achievements')
  action: 'all';

  @OneOf(ALL_SORTS, 'Order; ties by ascending id')
  sort: (typeof ALL_SORTS)[number] = 'position';

  @Flag('Only what the member has earned, or has not')
  earned?: boolean;

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];
}

export class StatsQuery {
  @OneOf(['stats'], 'What is asked of the achievements')
  action: 'stats';
}

export class DetailQuery {
  @OneOf(['detail'], 'What is asked of the achievements')
  action: 'detail';

  @RequiredInteger('With action=detail: the achievement')
  id: string;
}

export class PinnedQuery {
  @OneOf(['pinned'], 'What is asked of the achievements')
  action: 'pinned';
}

/** The one page of pinned ones that there is. */
export const PINNED = { action: 'pinned', limit: MAX_PINNED, sort: 'pin_position' } as const;
export type PinnedListQuery = typeof PINNED;

export const ACHIEVEMENT_QUERIES: QueryVariants = {
  by: 'action',
  absent: EarnedQuery,
  values: { all: AllQuery, stats: StatsQuery, detail: DetailQuery, pinned: PinnedQuery },
};

@ApiSchema({ name: 'AchievementProgress' })
class AchievementProgress {
  @CountField({ from: 'COALESCE(ua.progress, 0)', description: 'How far the member is' })
  current: number;

  @IntegerField({ from: 'a.target', minimum: 1, description: 'What it takes' })
  target: number;

  @PercentageField({ from: PROGRESS_PERCENTAGE })
  percentage: number;
}

/** What a hidden one does not tell before it is earned. */
const TOLD = new JsonFragment(REVEALED);

/** An achievement `a`, what the member did towards it, `ua`, and the totals that rarity is made of, `n` and `t`. */
@ApiSchema({
  name: 'Achievement',
  description: 'A hidden one that is not earned has its name, key, description, icon and progress masked',
})
export class AchievementItem {
  @IdField({ from: 'a.id' })
  id: number;

  @TextField({
    from: TOLD,
    nullable: true,
    description: 'Its name for programs; null where it has none, or is masked',
  })
  key: string | null;

  @TextField({ from: TOLD })
  name: string;

  @TextField({ from: TOLD, nullable: true })
  description: string | null;

  @TextField({ from: TOLD, nullable: true, description: 'Address of an image' })
  icon_url: string | null;

  @TextField({ from: 'a.category', description: 'A word of the platform' })
  category: string;

  @EnumField(RARITIES, {
    from: RARITY,
    description:
      'common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;

  @CountField({ from: 'a.points', description: 'What it is worth' })
  points: number;

  @BooleanField({ from: 'a.is_hidden', description: 'Masked until it is earned' })
  is_hidden: boolean;

  @BooleanField({ from: 'ua.earned_at IS NOT NULL' })
  earned: boolean;

  @TimestampField({ from: 'ua.earned_at', nullable: true, description: 'null where it is not earned' })
  earned_at: string | null;

  @ObjectField(AchievementProgress, {
    when: HAS_PROGRESS,
    nullable: true,
    description: 'null where it has no target',
  })
  progress: AchievementProgress | null;

  @BooleanField({
    from: 'ua.pin_position IS NOT NULL',
    description: 'Among those that the member shows first',
  })
  is_pinned: boolean;

  @IntegerField({
    from: PIN_POSITION,
    nullable: true,
    minimum: 1,
    maximum: MAX_PINNED,
    description: '1 is shown first; null where it is not pinned',
  })
  pin_position: number | null;
}

@ApiSchema({ name: 'AchievementDetail' })
export class AchievementDetail extends AchievementItem {
  @TextField({
    from: `CASE WHEN NOT ${MASKED} THEN a.criteria END`,
    nullable: true,
    description: 'What has to be done',
  })
  criteria: string | null;

  @CountField({ from: EARNERS, description: 'Active members who earned it' })
  earned_by_count: number;

  @CountField({ from: ACTIVE_MEMBERS, description: 'Active members' })
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

@ApiSchema({ name: 'CategoryCompletion' })
class CategoryCompletion extends Completion {
  @TextField({ description: 'A word of the platform' })
  category: string;
}

@ApiSchema({ name: 'RarityCompletion' })
class RarityCompletion extends Completion {
  @EnumField(RARITIES, {
    description:
      'common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @NumberField({ nullable: true, description: 'Inclusive' })
  min_percentage: number | null;

  @NumberField({ nullable: true, description: 'Exclusive, but for 100' })
  max_percentage: number | null;
}

@ApiSchema({ name: 'RarestEarned' })
export class RarestEarned {
  @IdField({ from: 'a.id' })
  id: number;

  @TextField({ from: 'a.name' })
  name: string;

  @EnumField(RARITIES, {
    from: RARITY,
    description:
      'common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members',
  })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;
}

@ApiSchema({ name: 'AchievementStatistics' })
export class AchievementStatistics extends Completion {
  @CountField({ description: 'Of all that the member has earned' })
  points_earned: number;

  @CountField({ description: 'Of all that there are' })
  points_total: number;

  @TimestampField({ nullable: true, description: 'null where nothing is earned' })
  last_earned_at: string | null;

  @ObjectListField(CategoryCompletion, { description: 'Alphabetical' })
  by_category: CategoryCompletion[];

  @ObjectListField(RarityCompletion, { description: 'common … legendary, then unrated' })
  by_rarity: RarityCompletion[];

  @ObjectField(RarestEarned, { nullable: true, description: 'null where nothing is earned' })
  rarest_earned: RarestEarned | null;

  @TimestampField({ description: 'When the rarities were computed' })
  rarity_computed_at: string;
}
