import { isId, RARITIES, type Rarity } from '../../values/vocabulary.js';
import { Injectable } from '@nestjs/common';
import { MemberReads } from '../../database/member-reads.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { Problem } from '../../http/output/problems.js';
import type { AchievementStatistics } from './achievement.dto.js';
import { READ_DETAIL, READ_STATISTICS } from './achievements.queries.js';

/** What READ_STATISTICS returns. */
interface StatisticsRow {
  /** JSON text: an array of {@link Group}, one for each category and tier that has an achievement. */
  readonly groups: string;
  readonly rarest_earned: AchievementStatistics['rarest_earned'];
  readonly last_earned_at: string | null;
  readonly rarity_computed_at: string;
}

/** Of one category and tier. */
type Group = [
  category: string,
  rarity: Rarity,
  total: number,
  earned: number,
  pointsTotal: number,
  pointsEarned: number,
];

/** The bounds of a tier, in percent: from the first (inclusive) to the second (exclusive, except 100). */
const LIMITS: Record<Rarity, readonly [min: number | null, max: number | null]> = {
  common: [50, 100],
  uncommon: [20, 50],
  rare: [5, 20],
  epic: [1, 5],
  legendary: [0, 1],
  unrated: [null, null],
};

@Injectable()
export class AchievementsService {
  constructor(private readonly reads: MemberReads) {}

  async statistics(userId: number): Promise<AchievementStatistics> {
    const [row] = await this.reads.of(userId).read<StatisticsRow>(READ_STATISTICS, [userId]);
    return statisticsOf(row!);
  }

  /**
   * @param id any integer, in decimal digits
   * @throws Problem achievement_not_found
   */
  async detail(userId: number, id: string): Promise<JsonResponse> {
    const number = Number(id);
    const [row] = isId(number)
      ? await this.reads.of(userId).read<{ json: string }>(READ_DETAIL, [userId, number])
      : [];
    if (!row) throw new Problem('achievement_not_found');
    return new JsonResponse(row.json);
  }
}

/** Makes the member's statistics as they are returned, with every category and tier, even those in which nothing is earned. */
function statisticsOf(row: StatisticsRow): AchievementStatistics {
  const { rarest_earned, last_earned_at, rarity_computed_at } = row;
  const groups = JSON.parse(row.groups) as Group[];
  return {
    ...completion(groups),
    points_earned: sum(groups, ([, , , , , pointsEarned]) => pointsEarned),
    points_total: sum(groups, ([, , , , pointsTotal]) => pointsTotal),
    last_earned_at,
    by_category: categoriesOf(groups).map((category) => ({
      category,
      ...completion(groups.filter(([of]) => of === category)),
    })),
    by_rarity: RARITIES.map((rarity) => ({
      rarity,
      min_percentage: LIMITS[rarity][0],
      max_percentage: LIMITS[rarity][1],
      ...completion(groups.filter(([, of]) => of === rarity)),
    })),
    rarest_earned,
    rarity_computed_at,
  };
}

/** In the order in which the database sorts texts regardless of case: by the code points of the folded text. */
function categoriesOf(groups: readonly Group[]): string[] {
  return [...new Set(groups.map(([category]) => category))]
    .map((category) => ({ category, key: Buffer.from(`${category.toLowerCase()}\0${category}`) }))
    .sort((a, b) => a.key.compare(b.key))
    .map(({ category }) => category);
}

function completion(groups: readonly Group[]) {
  const total = sum(groups, ([, , total]) => total);
  const earned = sum(groups, ([, , , earned]) => earned);
  return { total, earned, completion_percentage: percentage(earned, total) };
}

function sum(groups: readonly Group[], of: (group: Group) => number): number {
  return groups.reduce((sum, group) => sum + of(group), 0);
}

/** Share in percent, rounded half up to two decimals; 0 if the total is 0. Like the function of this name in the database. */
function percentage(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;
}
