import { isId } from '../../values/vocabulary.js';
import { Injectable } from '@nestjs/common';
import { MemberReads } from '../../database/member-reads.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { Problem } from '../../http/output/problems.js';
import type { AchievementStatistics } from './achievement.dto.js';
import { statisticsOf, type StatisticsRow } from './achievement-statistics.js';
import { READ_DETAIL, READ_STATISTICS } from './achievements.queries.js';

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
