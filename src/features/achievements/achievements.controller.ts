import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes, ServedByReplicas } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import { anyResponse, Parameters } from '../../http/input/query.js';
import { Paging } from '../../http/paging.js';
import {
  ACHIEVEMENT_VIEWS,
  type AchievementStatistics,
  AllQuery,
  DetailQuery,
  EarnedQuery,
  PinnedQuery,
} from './achievement.dto.js';
import { AchievementsService, CATALOGUE_LIST, EARNED_LIST, PINNED_LIST } from './achievements.service.js';

@Controller('api/public/achievements')
@RequireScopes('achievements:read')
export class AchievementsController {
  constructor(
    private readonly achievements: AchievementsService,
    private readonly paging: Paging,
  ) {}

  @Get()
  @ServedByReplicas()
  @RespondsWith(
    'List achievements',
    anyResponse(ACHIEVEMENT_VIEWS),
    'Without `action`, the achievements that the member has earned. `action` selects another view: `all` achievements, `stats`, one achievement in `detail`, or the `pinned` ones. Each view has its own parameters, and refuses those of the others.',
  )
  @RespondsWithProblems('achievement_not_found')
  listAchievements(
    @CurrentPrincipal() { userId }: Principal,
    @Req() request: Request,
    @Parameters(ACHIEVEMENT_VIEWS) query: object,
  ): Promise<JsonResponse | AchievementStatistics> {
    const { path } = request.context;
    if (query instanceof EarnedQuery) return this.paging.page(EARNED_LIST, userId, path, query);
    if (query instanceof AllQuery) return this.paging.page(CATALOGUE_LIST, userId, path, query);
    if (query instanceof DetailQuery) return this.achievements.detail(userId, query.id);
    if (query instanceof PinnedQuery)
      return this.paging.page(PINNED_LIST, userId, path, query, { fixed: true });
    return this.achievements.statistics(userId);
  }
}
