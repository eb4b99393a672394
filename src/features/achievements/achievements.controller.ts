import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { pageOf, RespondsWithProblems, RespondsWithVariants } from '../../http/output/openapi.js';
import { refTo } from '../../http/output/schema.js';
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
import { AchievementsService, CATALOGUE_LIST, EARNED_LIST, PINNED_LIST } from './achievements.service.js';

@Controller('api/public/achievements')
@RequireScopes('achievements:read')
export class AchievementsController {
  constructor(
    private readonly achievements: AchievementsService,
    private readonly paging: Paging,
  ) {}

  @Get()
  @RespondsWithVariants(
    'List achievements',
    'Without `action`, the achievements that the member has earned. `action` selects another view: `all` achievements, `stats`, one achievement in `detail`, or the `pinned` ones. Each view has its own parameters, and refuses those of the others.',
    {
      '': {
        name: 'listAchievements',
        summary: 'List earned achievements',
        description: 'The achievements that the member has earned.',
        response: pageOf(AchievementItem),
      },
      all: {
        name: 'listAllAchievements',
        summary: 'List all achievements',
        description:
          'All achievements, with `earned` and the member’s progress. Hidden achievements that are not earned are masked; retired ones are listed only if the member has earned them.',
        response: pageOf(AchievementItem),
      },
      stats: {
        name: 'getAchievementStatistics',
        summary: 'Get statistics',
        description:
          'How many achievements there are, and how many the member has earned: in total, by category, and by rarity. Every category and rarity is listed, even if empty.',
        response: refTo(AchievementStatistics),
      },
      detail: {
        name: 'getAchievement',
        summary: 'Get an achievement',
        description: 'One achievement with its criteria and the number of members who have earned it.',
        response: refTo(AchievementDetail),
      },
      pinned: {
        name: 'listPinnedAchievements',
        summary: 'List pinned achievements',
        description:
          'The achievements that the member has pinned, at most six, by `pin_position`. There is only one page.',
        response: pageOf(AchievementItem),
      },
    },
  )
  @RespondsWithProblems('achievement_not_found')
  listAchievements(
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
