import { Controller, Get } from '@nestjs/common';
import { CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import { RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { Parameters } from '../../http/input/query.js';
import { SyncAnswer, SyncQuery } from './sync.dto.js';
import { SyncService } from './sync.service.js';

@Controller('api/public/sync')
export class SyncController {
  constructor(private readonly syncs: SyncService) {}

  @Get()
  @RequireCredential()
  @RespondsWith(
    'List changes',
    SyncAnswer,
    'The changes of the member’s data since a cursor, to keep a copy up to date. First send this request without a cursor to get one, then read everything, then keep requesting changes. The response omits resources whose scope the credential lacks. Changes of numbers that depend on other people, such as `attendees_count` and rarities, are not listed. With `include=data`, each change includes its record.',
  )
  @RespondsWithProblems('cursor_expired')
  listChanges(
    @CurrentPrincipal() principal: Principal,
    @Parameters() query: SyncQuery,
  ): Promise<SyncAnswer | JsonResponse> {
    return this.syncs.changes(principal, query);
  }
}
