import { RARITIES } from '../../values/vocabulary.js';
import type { Rarity } from '../../values/vocabulary.js';
import type { AchievementStatistics } from './achievement.dto.js';

/** What READ_STATISTICS returns. */
export interface StatisticsRow extends Record<string, unknown> {
  /** One for each category and tier that has an achievement. */
  readonly groups: readonly Group[];
  /** In alphabetical order. */
  readonly categories: readonly string[];
  readonly rarest_earned: AchievementStatistics['rarest_earned'];
  readonly last_earned_at: string | null;
  readonly rarity_computed_at: string;
}

interface Group {
  readonly category: string;
  readonly rarity: string;
  readonly total: number;
  readonly earned: number;
  readonly points_total: number;
  readonly points_earned: number;
}

/** The shares that make a tier, in percent: from the first to below the second. */
const LIMITS: Record<Rarity, readonly [min: number | null, max: number | null]> = {
  common: [50, 100],
  uncommon: [20, 50],
  rare: [5, 20],
  epic: [1, 5],
  legendary: [0, 1],
  unrated: [null, null],
};

/** Makes the member's statistics as they are answered. Every category and every tier stands there, those with nothing too. */
export function statisticsOf(row: StatisticsRow): AchievementStatistics {
  const { groups, categories, rarest_earned, last_earned_at, rarity_computed_at } = row;
  return {
    ...completion(groups),
    points_earned: sum(groups, 'points_earned'),
    points_total: sum(groups, 'points_total'),
    last_earned_at,
    by_category: categories.map((category) => ({
      category,
      ...completion(groups.filter((group) => group.category === category)),
    })),
    by_rarity: RARITIES.map((rarity) => ({
      rarity,
      min_percentage: LIMITS[rarity][0],
      max_percentage: LIMITS[rarity][1],
      ...completion(groups.filter((group) => group.rarity === rarity)),
    })),
    rarest_earned,
    rarity_computed_at,
  };
}

function completion(groups: readonly Group[]) {
  const total = sum(groups, 'total');
  const earned = sum(groups, 'earned');
  return { total, earned, completion_percentage: percentage(earned, total) };
}

function sum(groups: readonly Group[], of: 'total' | 'earned' | 'points_total' | 'points_earned'): number {
  return groups.reduce((sum, group) => sum + group[of], 0);
}

/** Share in percent, two decimals, half up; of nothing: 0. As the function of this name in the database. */
function percentage(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;
}
