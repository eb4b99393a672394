import { Controller, Get, Param } from '@nestjs/common';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import { Parameters } from '../../http/input/query.js';
import {
  ID,
  describePage,
  PathParameter,
  RespondsWith,
  RespondsWithPage,
  RespondsWithProblems,
} from '../../http/output/openapi.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { refTo } from '../../model/json-schema.js';
import { Paging } from '../../http/paging.js';
import { idInPath } from '../../values/vocabulary.js';
import {
  ACHIEVEMENT_VIEWS,
  AchievementDetail,
  AchievementItem,
  AchievementStatistics,
  AllQuery,
  DetailQuery,
  EarnedQuery,
  PinnedQuery,
} from './achievement.dto.js';
import { AchievementsService, CATALOGUE_LIST, EARNED_LIST, PINNED_LIST } from './achievements.service.js';

const PATH = 'api/public/achievements';

/** Each view has its own route; the root route also returns the view that `action` selects. */
@Controller(PATH)
@RequireScopes('achievements:read')
export class AchievementsController {
  constructor(
    private readonly achievements: AchievementsService,
    private readonly paging: Paging,
  ) {}

  @Get()
  @RespondsWith(
    'List achievements',
    { anyOf: [describePage(AchievementItem), AchievementStatistics, AchievementDetail].map(refTo) },
    'The view that `action` selects. Each view has its own parameters, defaults and response, and rejects the parameters of other views. Each view also has its own path, which is easier to use in generated clients.',
  )
  @RespondsWithProblems('achievement_not_found')
  listAchievements(
    @CurrentPrincipal() principal: Principal,
    @Parameters(ACHIEVEMENT_VIEWS) query: object,
  ): Promise<JsonResponse | AchievementStatistics> {
    if (query instanceof EarnedQuery) return this.listEarnedAchievements(principal, query);
    if (query instanceof AllQuery) return this.listAllAchievements(principal, query);
    if (query instanceof DetailQuery) return this.achievements.detail(principal.userId, Number(query.id));
    if (query instanceof PinnedQuery) return this.listPinnedAchievements(principal, query);
    return this.getAchievementStatistics(principal);
  }

  @Get('earned')
  @RespondsWithPage(
    'List earned achievements',
    AchievementItem,
    'The achievements that the member has earned.',
  )
  listEarnedAchievements(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: EarnedQuery,
  ): Promise<JsonResponse> {
    return this.paging.page(EARNED_LIST, userId, `/${PATH}`, query, { recent: true });
  }

  @Get('all')
  @RespondsWithPage(
    'List all achievements',
    AchievementItem,
    'All achievements, with `earned` and the member’s progress. Hidden achievements that are not earned are masked; retired ones are listed only if the member has earned them.',
  )
  listAllAchievements(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: AllQuery,
  ): Promise<JsonResponse> {
    return this.paging.page(CATALOGUE_LIST, userId, `/${PATH}`, query, { recent: true });
  }

  @Get('stats')
  @RespondsWith(
    'Get statistics',
    AchievementStatistics,
    'The numbers of all and of earned achievements: in total, by category, and by rarity. Every category and rarity is listed, even if empty.',
  )
  getAchievementStatistics(@CurrentPrincipal() { userId }: Principal): Promise<AchievementStatistics> {
    return this.achievements.statistics(userId);
  }

  @Get('pinned')
  @RespondsWithPage(
    'List pinned achievements',
    AchievementItem,
    'The achievements that the member has pinned, at most six, by `pin_position`. There is only one page.',
  )
  listPinnedAchievements(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: PinnedQuery,
  ): Promise<JsonResponse> {
    return this.paging.page(PINNED_LIST, userId, `/${PATH}`, query, { fixed: true });
  }

  @Get(':id')
  @PathParameter('id', 'Id of the achievement', { ...ID, examples: [900_000_001] })
  @RespondsWith(
    'Get an achievement',
    AchievementDetail,
    'One achievement with its criteria and the number of members who have earned it.',
  )
  @RespondsWithProblems('achievement_not_found')
  getAchievement(@CurrentPrincipal() { userId }: Principal, @Param('id') id: string): Promise<JsonResponse> {
    return this.achievements.detail(userId, idInPath(id));
  }
}
