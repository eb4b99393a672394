import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { contains, foldedText, totalOfMember } from '../../database/sql.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { WhereBuilder } from '../../database/where-builder.js';
import { filtersOf, pageStatement, Paging, readPage } from '../../http/paging.js';
import type { ListIdentity, PageParts } from '../../http/paging.js';
import { Problem } from '../../http/output/problems.js';
import { MOST_PINNED } from './achievement.dto.js';
import type { AchievementStatistics, AllQuery, EarnedQuery } from './achievement.dto.js';
import { statisticsOf } from './achievement-statistics.js';
import type { StatisticsRow } from './achievement-statistics.js';
import {
  CATALOGUE,
  EARNED,
  EARNED_CATALOGUE,
  LIST_ITEM,
  OF_MEMBER,
  READ_DETAIL,
  READ_STATISTICS,
  SORT_OF_PINNED,
  SORTS_OF_ALL,
  SORTS_OF_EARNED,
  TIER,
  VISIBLE,
} from './achievements.queries.js';

@Injectable()
export class AchievementsService {
  constructor(
    private readonly database: Database,
    private readonly paging: Paging,
  ) {}

  /** What the member earned. */
  listEarned(userId: number, path: string, query: EarnedQuery): Promise<JsonResponse> {
    const conditions = new WhereBuilder([EARNED], [userId]);
    this.#filter(conditions, query);
    conditions.whereGiven(query.earned_after, (at) => `ua.earned_at >= ${at}::timestamptz`);
    conditions.whereGiven(query.earned_before, (at) => `ua.earned_at < ${at}::timestamptz`);
    conditions.whereGiven(query.q, (at) => contains(foldedText('a.name'), at));
    return this.#list({ userId, path, sort: query.sort, filters: filtersOf(query) }, query, conditions, {
      rows: EARNED_CATALOGUE,
      own: OF_MEMBER,
      sort: SORTS_OF_EARNED[query.sort],
      ...(conditions.unfiltered
        ? { name: `list-earned-achievements:${query.sort}`, total: totalOfMember('achievements_count') }
        : {}),
    });
  }

  /** All that the member can see, each with its earned status. */
  listAll(userId: number, path: string, query: AllQuery): Promise<JsonResponse> {
    const conditions = new WhereBuilder([VISIBLE], [userId]);
    this.#filter(conditions, query);
    if (query.earned !== undefined) conditions.where(`ua.earned_at IS ${query.earned ? 'NOT ' : ''}NULL`);
    return this.#list({ userId, path, sort: query.sort, filters: filtersOf(query) }, query, conditions, {
      rows: CATALOGUE,
      own: 'true',
      sort: SORTS_OF_ALL[query.sort],
      ...(conditions.unfiltered ? { name: `list-all-achievements:${query.sort}` } : {}),
    });
  }

  /** What the member shows off: earned ones, in the member's order. */
  listPinned(userId: number, path: string): Promise<JsonResponse> {
    const conditions = new WhereBuilder([EARNED, 'ua.pin_position IS NOT NULL'], [userId]);
    const list = { userId, path, sort: 'pin_position', filters: { action: 'pinned' }, fixed: true };
    return this.#list(list, { limit: MOST_PINNED }, conditions, {
      name: 'list-pinned-achievements',
      rows: EARNED_CATALOGUE,
      own: OF_MEMBER,
      sort: SORT_OF_PINNED,
    });
  }

  async statistics(userId: number): Promise<AchievementStatistics> {
    const [row] = await this.database.read<StatisticsRow>(READ_STATISTICS, [userId]);
    return statisticsOf(row!);
  }

  /**
   * @param id any integer, in decimal digits
   * @throws Problem achievement_not_found
   */
  async detail(userId: number, id: string): Promise<JsonResponse> {
    const number = Number(id);
    const [row] = Number.isSafeInteger(number)
      ? await this.database.read<{ json: string }>(READ_DETAIL, [userId, number])
      : [];
    if (!row) throw new Problem('achievement_not_found');
    return new JsonResponse(row.json);
  }

  #filter(conditions: WhereBuilder, { category, rarity }: { category?: string[]; rarity?: string[] }): void {
    conditions.whereGiven(category, (at) => `a.category = ANY (${at})`);
    conditions.whereGiven(rarity, (at) => `${TIER} = ANY (${at})`);
  }

  async #list(
    list: ListIdentity,
    { limit, cursor }: { limit: number; cursor?: string },
    conditions: WhereBuilder,
    parts: Pick<PageParts, 'rows' | 'own' | 'sort' | 'name' | 'total'>,
  ): Promise<JsonResponse> {
    const place = this.paging.place(list, cursor);
    const statement = pageStatement(
      {
        ...parts,
        where: conditions.sql,
        values: conditions.values,
        id: 'a.id',
        few: true,
        item: LIST_ITEM,
      },
      place,
      limit,
    );
    return this.paging.answer(list, place, limit, await readPage(this.database, statement));
  }
}
