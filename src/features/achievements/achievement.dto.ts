import { ApiSchema } from '@nestjs/swagger';
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
  @CountField({ from: 'COALESCE(ua.progress, 0)' })
  current: number;

  @IntegerField({ from: 'a.target', minimum: 1 })
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

  @TextField({ from: TOLD, nullable: true })
  key: string | null;

  @TextField({ from: TOLD })
  name: string;

  @TextField({ from: TOLD, nullable: true })
  description: string | null;

  @TextField({ from: TOLD, nullable: true })
  icon_url: string | null;

  @TextField({ from: 'a.category' })
  category: string;

  @EnumField(RARITIES, { from: RARITY })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;

  @CountField({ from: 'a.points' })
  points: number;

  @BooleanField({ from: 'a.is_hidden' })
  is_hidden: boolean;

  @BooleanField({ from: 'ua.earned_at IS NOT NULL' })
  earned: boolean;

  @TimestampField({ from: 'ua.earned_at', nullable: true })
  earned_at: string | null;

  @ObjectField(AchievementProgress, {
    when: HAS_PROGRESS,
    nullable: true,
    description: 'null where it has no target',
  })
  progress: AchievementProgress | null;

  @BooleanField({ from: 'ua.pin_position IS NOT NULL' })
  is_pinned: boolean;

  @IntegerField({ from: PIN_POSITION, nullable: true, minimum: 1, maximum: MAX_PINNED })
  pin_position: number | null;
}

@ApiSchema({ name: 'AchievementDetail' })
export class AchievementDetail extends AchievementItem {
  @TextField({ from: `CASE WHEN NOT ${MASKED} THEN a.criteria END`, nullable: true })
  criteria: string | null;

  @CountField({ from: EARNERS, description: 'Active members who earned it' })
  earned_by_count: number;

  @CountField({ from: ACTIVE_MEMBERS, description: 'Active members' })
  eligible_users_count: number;

  @TimestampField({ from: COMPUTED_AT })
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
  @TextField()
  category: string;
}

@ApiSchema({ name: 'RarityCompletion' })
class RarityCompletion extends Completion {
  @EnumField(RARITIES)
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

  @EnumField(RARITIES, { from: RARITY })
  rarity: Rarity;

  @PercentageField({ from: RARITY_PERCENTAGE, nullable: true })
  rarity_percentage: number | null;
}

@ApiSchema({ name: 'AchievementStatistics' })
export class AchievementStatistics extends Completion {
  @CountField()
  points_earned: number;

  @CountField()
  points_total: number;

  @TimestampField({ nullable: true })
  last_earned_at: string | null;

  @ObjectListField(CategoryCompletion, { description: 'Alphabetical' })
  by_category: CategoryCompletion[];

  @ObjectListField(RarityCompletion, { description: 'common … legendary, then unrated' })
  by_rarity: RarityCompletion[];

  @ObjectField(RarestEarned, { nullable: true })
  rarest_earned: RarestEarned | null;

  @TimestampField()
  rarity_computed_at: string;
}
