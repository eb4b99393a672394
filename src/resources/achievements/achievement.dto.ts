import { Model } from '../../model/json-schema.js';
import { JsonFragment } from '../../model/json-text.js';
import { Achievement, UserAchievement } from './table.js';
import {
  booleanField,
  countField,
  enumField,
  IN_NODE,
  integerField,
  numberField,
  objectField,
  objectListField,
  percentageField,
  relation,
  textField,
  timestampField,
  type ValueOf,
} from '../../model/response.js';
import { PageQuery } from '../../http/paging.js';
import {
  Flag,
  ListOf,
  ListOfTexts,
  DateTime,
  OneOf,
  RequiredInteger,
  Search,
  type QueryVariants,
} from '../../http/input/parameters.js';
import { MAX_PINNED, RARITIES } from '../../values/vocabulary.js';

const EARNED_SORTS = ['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage'] as const;
const ALL_SORTS = ['position', 'name', '-earned_at', 'rarity_percentage', '-progress'] as const;

const CATEGORIES = 'Only achievements in one of these categories';
const TIERS = 'Only achievements of one of these rarities';
const UPDATED =
  'Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response';

export class EarnedQuery extends PageQuery {
  @OneOf(EARNED_SORTS, 'Order; ties by ascending id')
  sort: (typeof EARNED_SORTS)[number] = '-earned_at';

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];

  @DateTime('Only achievements earned at this time or later')
  earned_after?: string;

  @DateTime('Only achievements earned before this time')
  earned_before?: string;

  @Search(2, 50, 'Case-insensitive substring of the name')
  q?: string;

  @DateTime(UPDATED)
  updated_since?: string;
}

export class AllQuery extends PageQuery {
  readonly action = 'all';

  @OneOf(ALL_SORTS, 'Order; ties by ascending id')
  sort: (typeof ALL_SORTS)[number] = 'position';

  @Flag('Only achievements that the member has earned (`true`) or has not earned (`false`)')
  earned?: boolean;

  @ListOfTexts(CATEGORIES)
  category?: string[];

  @ListOf(RARITIES, TIERS)
  rarity?: string[];

  @DateTime(UPDATED)
  updated_since?: string;
}

class StatisticsQuery {}

export class DetailQuery {
  @RequiredInteger('Id of the achievement; only with action=detail')
  id: string;
}

/** The view has one page, without the parameters limit and sort. */
export class PinnedQuery {
  readonly action = 'pinned';
  readonly limit = MAX_PINNED;
  readonly sort = 'pin_position';
}

const [a, ua] = [relation(Achievement, 'a'), relation(UserAchievement, 'ua')];

// In the SQL below, `a` is an achievement, `ua` the member's progress, and `t` the platform's totals.

/** SQL: whether the achievement is hidden and not earned, so that responses mask key, name, description, icon, criteria and progress. */
const MASKED = '(a.is_hidden AND ua.earned_at IS NULL)';
const HIDDEN_NAME = 'Hidden achievement';
export const NAME = `CASE WHEN ${MASKED} THEN '${HIDDEN_NAME}' ELSE a.name END`;

/** SQL: JSON text of key, name, description and icon, masked if necessary. */
const REVEALED = `CASE WHEN ${MASKED} THEN '"key":null,"name":"${HIDDEN_NAME}","description":null,"icon_url":null'
  ELSE a.revealed END`;

/** SQL: counts of active members and of the earners among them, limited to possible values, since the counts can briefly disagree. */
const ACTIVE_MEMBERS = 'GREATEST(t.active_users_count, 0)';
const EARNERS = `LEAST(GREATEST(a.earners_count, 0), ${ACTIVE_MEMBERS})`;
export const RARITY = 'rarity_tier(a.earners_count, t.active_users_count)';
export const RARITY_PERCENTAGE = `CASE WHEN t.active_users_count >= 10 THEN percentage(${EARNERS}, t.active_users_count) END`;
export const HAS_PROGRESS = `a.target IS NOT NULL AND NOT ${MASKED}`;
export const PROGRESS_PERCENTAGE = 'percentage(LEAST(COALESCE(ua.progress, 0), a.target), a.target)';

/** SQL: rank among the member's pinned achievements, from 1 without gaps. */
const PIN_POSITION = `CASE WHEN ua.pin_position IS NOT NULL THEN (SELECT count(*) FROM user_achievements o
      WHERE o.user_id = $1 AND o.pin_position <= ua.pin_position) END`;

/** SQL: the time, rounded down to half a minute, so that a response keeps its ETag for a while. */
export const COMPUTED_AT = `date_bin('30 seconds', now(), 'epoch')`;

const AchievementProgress = new Model('AchievementProgress', {
  current: countField('COALESCE(ua.progress, 0)', 'Number that the member has reached so far'),
  target: integerField(a.target.from, {
    minimum: 1,
    description: 'Number that the member must reach to earn the achievement',
  }),
  percentage: percentageField(PROGRESS_PERCENTAGE),
});

const TIER =
  'common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members';
const NO_EARNED = 'null if the member has earned nothing';
const COMPUTED = 'Time of the rarity computation';

const RATED = {
  rarity: enumField(RARITIES, RARITY, TIER),
  rarity_percentage: percentageField(RARITY_PERCENTAGE).nullable,
};

/** Fields that a hidden achievement masks until the member earns it. */
const told = relation(Achievement, new JsonFragment(REVEALED));

/** An achievement, with its rarity and the member’s progress. */
export const AchievementItem = new Model(
  'Achievement',
  {
    id: a.id,
    key: told.key,
    name: told.name,
    description: told.description,
    icon_url: told.icon_url,
    category: a.category,
    ...RATED,
    points: a.points,
    is_hidden: a.is_hidden,
    earned: booleanField('ua.earned_at IS NOT NULL'),
    earned_at: ua.earned_at,
    progress: objectField(AchievementProgress, { when: HAS_PROGRESS }, 'null without a target').nullable,
    is_pinned: booleanField(
      'ua.pin_position IS NOT NULL',
      'Whether the member has pinned the achievement, so that it is shown first',
    ),
    pin_position: integerField(PIN_POSITION, {
      minimum: 1,
      maximum: MAX_PINNED,
      description: '1 is shown first; null if the achievement is not pinned',
    }).nullable,
  },
  'A hidden achievement that the member has not earned is masked: its name is replaced; key, description, icon and progress are null',
);

export const AchievementDetail = new Model('AchievementDetail', {
  ...AchievementItem.properties,
  criteria: textField(`CASE WHEN NOT ${MASKED} THEN a.criteria END`, 'Condition for earning it').nullable,
  earned_by_count: countField(EARNERS, 'Number of active members who have earned it'),
  eligible_users_count: countField(ACTIVE_MEMBERS, 'Number of active members'),
  rarity_computed_at: timestampField(COMPUTED_AT, COMPUTED),
});

const COMPLETION = { total: countField(), earned: countField(), completion_percentage: percentageField() };

const CategoryCompletion = new Model('CategoryCompletion', {
  ...COMPLETION,
  category: textField(IN_NODE, Achievement.fields.category.description),
});

const RarityCompletion = new Model('RarityCompletion', {
  ...COMPLETION,
  rarity: enumField(RARITIES, IN_NODE, TIER),
  min_percentage: numberField(IN_NODE, 'Lower bound, inclusive').nullable,
  max_percentage: numberField(IN_NODE, 'Upper bound, exclusive except 100').nullable,
});

export const RarestEarned = new Model('RarestEarned', {
  id: a.id,
  name: a.name,
  ...RATED,
});

export const AchievementStatistics = new Model('AchievementStatistics', {
  ...COMPLETION,
  points_earned: countField(IN_NODE, 'Points of all achievements that the member has earned'),
  points_total: countField(IN_NODE, 'Points of all achievements'),
  last_earned_at: timestampField(IN_NODE, NO_EARNED).nullable,
  by_category: objectListField(CategoryCompletion, IN_NODE, 'In alphabetical order'),
  by_rarity: objectListField(RarityCompletion, IN_NODE, 'From common to legendary, then unrated'),
  rarest_earned: objectField(RarestEarned, IN_NODE, NO_EARNED).nullable,
  rarity_computed_at: timestampField(IN_NODE, COMPUTED),
});
export type AchievementStatistics = ValueOf<typeof AchievementStatistics>;

/** The views that the parameter `action` selects, each with its handler in {@link AchievementsController}. */
export const ACHIEVEMENT_VIEWS: QueryVariants = {
  by: 'action',
  description: 'View of the achievements to return; if absent, the earned ones',
  absent: { query: EarnedQuery, handler: 'listEarnedAchievements' },
  values: {
    all: { query: AllQuery, handler: 'listAllAchievements' },
    stats: { query: StatisticsQuery, handler: 'getAchievementStatistics' },
    detail: { query: DetailQuery, handler: 'getAchievement' },
    pinned: { query: PinnedQuery, handler: 'listPinnedAchievements' },
  },
};
