import { Injectable } from '@nestjs/common';
import { List, type Filter, type ListDeclaration, type SortOf } from '../../database/list.js';
import { MemberReads } from '../../database/member-reads.js';
import { contains, foldedText, totalOfMember } from '../../database/sql.js';
import { UserAchievement } from './table.js';
import { writeColumns, writeJson, relation } from '../../model/response.js';
import { JsonResponse } from '../../http/output/responses.js';
import { Problem } from '../../http/output/problems.js';
import { accessTo, changedSince, committedSince } from '../resources.js';
import { isId, RARITIES, type Rarity } from '../../values/vocabulary.js';
import {
  AchievementDetail,
  AchievementItem,
  COMPUTED_AT,
  HAS_PROGRESS,
  NAME,
  PROGRESS_PERCENTAGE,
  RARITY,
  RARITY_PERCENTAGE,
  RarestEarned,
  type AchievementStatistics,
  type AllQuery,
  type EarnedQuery,
  type PinnedQuery,
} from './achievement.dto.js';

const ua = relation(UserAchievement, 'ua');

/** Number of active members, in `t`. WHERE and LIMIT make PostgreSQL expect one row even if the table has no statistics. */
const ACTIVE_USERS = '(SELECT active_users_count FROM platform_totals WHERE id LIMIT 1) t';

/** All achievements `a`, with the member's ($1) progress `ua` if there is any, and the number of active members in `t`. */
const CATALOGUE = `achievements a LEFT JOIN user_achievements ua ON ua.user_id = $1 AND ua.achievement_id = a.id
  CROSS JOIN ${ACTIVE_USERS}`;
/** Retired achievements are visible only to members who earned them. */
const VISIBLE = '(a.retired_at IS NULL OR ua.earned_at IS NOT NULL)';

/** The progress `ua` of all members, with the achievement `a`; each list adds the member as a condition. */
const EARNED = `user_achievements ua JOIN achievements a ON a.id = ua.achievement_id CROSS JOIN ${ACTIVE_USERS}`;
const OF_MEMBER = accessTo('achievements');

const ITEMS = { item: writeJson(AchievementItem), id: 'a.id', few: true };

const byRarity: SortOf<unknown> = { key: RARITY_PERCENTAGE, type: 'numeric', nullable: true };
const inCategory: Filter<string[]> = (at) => `a.category = ANY (${at})`;
const ofRarity: Filter<string[]> = (at) => `${RARITY} = ANY (${at})`;

const EARNED_DECLARATION: ListDeclaration<EarnedQuery> = {
  ...ITEMS,
  name: 'earned-achievements',
  rows: EARNED,
  ...OF_MEMBER,
  sorts: {
    earned_at: { key: ua.earned_at.from, type: 'timestamptz' },
    name: { key: foldedText('a.name'), type: 'text' },
    rarity_percentage: byRarity,
  },
  filters: {
    category: inCategory,
    rarity: ofRarity,
    earned_after: (at) => `ua.earned_at >= ${at}::timestamptz`,
    earned_before: (at) => `ua.earned_at < ${at}::timestamptz`,
    q: (at) => contains(foldedText('a.name'), at),
    updated_since: changedSince('achievements', 'a.id'),
  },
  total: totalOfMember('achievements_count'),
};

export const EARNED_LIST = new List(EARNED_DECLARATION);
export const WHOLE_EARNED_LIST = new List({
  ...EARNED_DECLARATION,
  name: 'whole-earned-achievements',
  item: writeJson(AchievementDetail),
});

/** Achievements that the member can see, earned or not. */
export const CATALOGUE_LIST = new List<AllQuery>({
  ...ITEMS,
  name: 'all-achievements',
  rows: CATALOGUE,
  own: 'true',
  access: VISIBLE,
  sorts: {
    position: { key: 'a.position::bigint', type: 'bigint' },
    name: { key: foldedText(NAME), type: 'text' },
    earned_at: { key: ua.earned_at.from, type: 'timestamptz', nullable: true },
    rarity_percentage: byRarity,
    progress: {
      key: `CASE WHEN ${HAS_PROGRESS} THEN ${PROGRESS_PERCENTAGE} END`,
      type: 'numeric',
      nullable: true,
    },
  },
  filters: {
    action: { all: null },
    category: inCategory,
    rarity: ofRarity,
    // Includes changed achievements for which the member has no row in `user_achievements`.
    updated_since: (at) => `${changedSince('achievements', 'a.id')(at)} OR a.id IN (
      SELECT id FROM changes WHERE user_id IS NULL AND resource = 'achievements' AND ${committedSince('changed_in', at)})`,
    earned: { true: 'ua.earned_at IS NOT NULL', false: 'ua.earned_at IS NULL' },
  },
});

export const PINNED_LIST = new List<PinnedQuery>({
  ...ITEMS,
  name: 'pinned-achievements',
  rows: EARNED,
  own: OF_MEMBER.own,
  access: `${OF_MEMBER.access} AND ua.pin_position IS NOT NULL`,
  sorts: { pin_position: { key: 'ua.pin_position::bigint', type: 'bigint' } },
  filters: { action: { pinned: null } },
});

const READ_DETAIL = {
  name: 'read-achievement',
  text: `SELECT ${writeJson(AchievementDetail)} AS json FROM ${CATALOGUE} WHERE a.id = $2 AND ${VISIBLE}`,
};

/** Reads the member's ($1) statistics as one {@link StatisticsRow}, by category and tier; Node adds up these groups. */
const READ_STATISTICS = {
  name: 'read-achievement-statistics',
  text: `SELECT COALESCE('[' || string_agg('[' || json_text(category) || ',"' || rarity || '",' || total || ',' || earned || ','
    || points_total || ',' || points_earned || ']', ',') || ']', '[]') AS groups,
  (SELECT to_json(r) FROM (
    SELECT ${writeColumns(RarestEarned)} FROM achievements a CROSS JOIN ${ACTIVE_USERS} WHERE a.id = (min(rarest))[2]::bigint
  ) r) AS rarest_earned,
  api_time(max(last_earned_at)) AS last_earned_at, api_time(${COMPUTED_AT}) AS rarity_computed_at
FROM (
  SELECT a.category, ${RARITY} AS rarity, count(*) FILTER (WHERE ${VISIBLE}) AS total, count(ua.earned_at) AS earned,
    COALESCE(sum(a.points) FILTER (WHERE ${VISIBLE}), 0) AS points_total,
    COALESCE(sum(a.points) FILTER (WHERE ua.earned_at IS NOT NULL), 0) AS points_earned, max(ua.earned_at) AS last_earned_at,
    min(ARRAY[${RARITY_PERCENTAGE}, a.id]) FILTER (WHERE ua.earned_at IS NOT NULL) AS rarest
  FROM ${CATALOGUE} GROUP BY 1, 2
) groups`,
};

interface StatisticsRow {
  /** JSON text: an array of {@link Group}, one per combination of category and tier that has achievements. */
  readonly groups: string;
  readonly rarest_earned: AchievementStatistics['rarest_earned'];
  readonly last_earned_at: string | null;
  readonly rarity_computed_at: string;
}

type Group = [
  category: string,
  rarity: Rarity,
  total: number,
  earned: number,
  pointsTotal: number,
  pointsEarned: number,
];

/** Bounds of a tier in percent: minimum (inclusive) and maximum (exclusive, except 100). */
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
    const { rarest_earned, last_earned_at, rarity_computed_at } = row!;
    const groups = JSON.parse(row!.groups) as Group[];
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

  /** @throws Problem achievement_not_found */
  async detail(userId: number, id: number): Promise<JsonResponse> {
    if (!isId(id)) throw new Problem('achievement_not_found');
    const [row] = await this.reads.of(userId).read<{ json: string }>(READ_DETAIL, [userId, id]);
    if (!row) throw new Problem('achievement_not_found');
    return new JsonResponse(row.json);
  }
}

/** Lists the categories in the database's case-insensitive order: by code points of the lower-case text. */
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

/** Returns a percentage, rounded half up to two decimals; 0 if `whole` is 0. The database function `percentage` does the same. */
function percentage(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;
}
