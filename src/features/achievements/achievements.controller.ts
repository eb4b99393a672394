import { Controller, Get, Req } from '@nestjs/common';
import { getSchemaPath } from '@nestjs/swagger';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { pageOf, RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import { Parameters } from '../../http/input/query.js';
import { Paging } from '../../http/paging.js';
import {
  ACHIEVEMENT_QUERIES,
  AchievementDetail,
  AchievementItem,
  AchievementStatistics,
  AllQuery,
  DetailQuery,
  EarnedQuery,
  PINNED,
  PinnedQuery,
} from './achievement.dto.js';
import { CATALOGUE_LIST, EARNED_LIST, PINNED_LIST } from './achievements.queries.js';
import { AchievementsService } from './achievements.service.js';

@Controller('api/public/achievements')
@RequireScopes('achievements:read')
export class AchievementsController {
  constructor(
    private readonly achievements: AchievementsService,
    private readonly paging: Paging,
  ) {}

  @Get()
  @RespondsWith(
    'Earned achievements; with an action all of them, statistics, one of them, or the pinned ones',
    {
      schema: {
        oneOf: [
          pageOf(AchievementItem),
          { $ref: getSchemaPath(AchievementStatistics) },
          { $ref: getSchemaPath(AchievementDetail) },
        ],
      },
      models: [AchievementItem, AchievementStatistics, AchievementDetail],
    },
  )
  @RespondsWithProblems('achievement_not_found')
  answer(
    @CurrentPrincipal() { userId }: Principal,
    @Req() request: Request,
    @Parameters(ACHIEVEMENT_QUERIES) query: object,
  ): Promise<JsonResponse | AchievementStatistics> {
    const { path } = request.context;
    if (query instanceof EarnedQuery) return this.paging.page(EARNED_LIST, userId, path, query);
    if (query instanceof AllQuery) return this.paging.page(CATALOGUE_LIST, userId, path, query);
    if (query instanceof DetailQuery) return this.achievements.detail(userId, query.id);
    if (query instanceof PinnedQuery)
      return this.paging.page(PINNED_LIST, userId, path, PINNED, { fixed: true });
    return this.achievements.statistics(userId);
  }
}
