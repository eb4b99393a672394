import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { RespondsWithProblems, RespondsWithVariants } from '../../http/output/openapi.js';
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
  @RespondsWithVariants(
    'List achievements',
    'Without `action`, the achievements that the member has earned. `action` asks for something else: `all` of them, `stats`, one of them in `detail`, or the `pinned` ones. Each takes parameters of its own, and refuses those of another.',
    {
      '': {
        name: 'listAchievements',
        summary: 'List earned achievements',
        description: 'What the member has earned.',
        item: AchievementItem,
        isList: true,
      },
      all: {
        name: 'listAllAchievements',
        summary: 'List all achievements',
        description:
          'Every achievement that there is for the member, with `earned` and progress. Hidden ones that are not earned are masked; retired ones are shown to those who earned them.',
        item: AchievementItem,
        isList: true,
      },
      stats: {
        name: 'getAchievementStatistics',
        summary: 'Get statistics',
        description:
          'How many there are, and how many of them the member has earned: together, by category, and by rarity. Every category and rarity is there, zeros too.',
        item: AchievementStatistics,
        isList: false,
      },
      detail: {
        name: 'getAchievement',
        summary: 'Get an achievement',
        description: 'One achievement with its criteria, and how many members have earned it.',
        item: AchievementDetail,
        isList: false,
      },
      pinned: {
        name: 'listPinnedAchievements',
        summary: 'List pinned achievements',
        description: 'What the member shows first, six at most, by `pin_position`. There is one page.',
        item: AchievementItem,
        isList: true,
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
