import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { PageQuery } from '../../http/paging.js';
import { Flag, ListOf, ListOfTexts, Moment, OneOf, RequiredInteger, Search } from '../../http/input/query.js';
import type { QueryVariants } from '../../http/input/query.js';

export const RARITIES = ['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated'] as const;
export const EARNED_SORTS = [
  '-earned_at',
  'earned_at',
  'name',
  'rarity_percentage',
  '-rarity_percentage',
] as const;
export const ALL_SORTS = ['position', 'name', '-earned_at', 'rarity_percentage', '-progress'] as const;
/** As many as a member can pin. */
export const MOST_PINNED = 6;

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

export const ACHIEVEMENT_QUERIES: QueryVariants = {
  by: 'action',
  absent: EarnedQuery,
  values: { all: AllQuery, stats: StatsQuery, detail: DetailQuery, pinned: PinnedQuery },
};

const textOrNull = { type: String, nullable: true };
const momentOrNull = { type: String, nullable: true, pattern: TIMESTAMP_PATTERN };
const percentage = { type: Number, minimum: 0, maximum: 100, description: '2 decimals' };
const count = { type: 'integer', minimum: 0 } as const;

@ApiSchema({ name: 'AchievementProgress' })
class AchievementProgress {
  @ApiProperty(count)
  current: number;

  @ApiProperty({ type: 'integer', minimum: 1 })
  target: number;

  @ApiProperty(percentage)
  percentage: number;
}

@ApiSchema({
  name: 'Achievement',
  description: 'A hidden one that is not earned has its name, key, description, icon and progress masked',
})
export class AchievementItem {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty(textOrNull)
  key: string | null;

  @ApiProperty()
  name: string;

  @ApiProperty(textOrNull)
  description: string | null;

  @ApiProperty(textOrNull)
  icon_url: string | null;

  @ApiProperty()
  category: string;

  @ApiProperty({ enum: RARITIES })
  rarity: string;

  @ApiProperty({ ...percentage, nullable: true })
  rarity_percentage: number | null;

  @ApiProperty(count)
  points: number;

  @ApiProperty()
  is_hidden: boolean;

  @ApiProperty()
  earned: boolean;

  @ApiProperty(momentOrNull)
  earned_at: string | null;

  @ApiProperty({ type: AchievementProgress, nullable: true, description: 'null where it has no target' })
  progress: AchievementProgress | null;

  @ApiProperty()
  is_pinned: boolean;

  @ApiProperty({ type: 'integer', nullable: true, minimum: 1, maximum: MOST_PINNED })
  pin_position: number | null;
}

@ApiSchema({ name: 'AchievementDetail' })
export class AchievementDetail extends AchievementItem {
  @ApiProperty(textOrNull)
  criteria: string | null;

  @ApiProperty({ ...count, description: 'Active members who earned it' })
  earned_by_count: number;

  @ApiProperty({ ...count, description: 'Active members' })
  eligible_users_count: number;

  @ApiProperty({ pattern: TIMESTAMP_PATTERN })
  rarity_computed_at: string;
}

class Completion {
  @ApiProperty(count)
  total: number;

  @ApiProperty(count)
  earned: number;

  @ApiProperty(percentage)
  completion_percentage: number;
}

@ApiSchema({ name: 'CategoryCompletion' })
class CategoryCompletion extends Completion {
  @ApiProperty()
  category: string;
}

@ApiSchema({ name: 'RarityCompletion' })
class RarityCompletion extends Completion {
  @ApiProperty({ enum: RARITIES })
  rarity: string;

  @ApiProperty({ type: Number, nullable: true, description: 'Inclusive' })
  min_percentage: number | null;

  @ApiProperty({ type: Number, nullable: true, description: 'Exclusive, but for 100' })
  max_percentage: number | null;
}

@ApiSchema({ name: 'RarestEarned' })
class RarestEarned {
  @ApiProperty({ type: 'integer', minimum: 1 })
  id: number;

  @ApiProperty()
  name: string;

  @ApiProperty({ enum: RARITIES })
  rarity: string;

  @ApiProperty({ ...percentage, nullable: true })
  rarity_percentage: number | null;
}

@ApiSchema({ name: 'AchievementStatistics' })
export class AchievementStatistics extends Completion {
  @ApiProperty(count)
  points_earned: number;

  @ApiProperty(count)
  points_total: number;

  @ApiProperty(momentOrNull)
  last_earned_at: string | null;

  @ApiProperty({ type: [CategoryCompletion], description: 'Alphabetical' })
  by_category: CategoryCompletion[];

  @ApiProperty({ type: [RarityCompletion], description: 'common … legendary, then unrated' })
  by_rarity: RarityCompletion[];

  @ApiProperty({ type: RarestEarned, nullable: true })
  rarest_earned: RarestEarned | null;

  @ApiProperty({ pattern: TIMESTAMP_PATTERN })
  rarity_computed_at: string;
}
