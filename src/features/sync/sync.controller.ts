import { Controller, Get } from '@nestjs/common';
import { CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import { RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
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
    'What changed of the member’s data since a cursor, so that a copy of it stays the same as what the API shows. Start with a cursor of a call without one, read everything, then ask for changes again and again. Resources for which the credential lacks the scope are left out. Not a change: what is counted of others, such as `attendees_count` and rarities.',
  )
  @RespondsWithProblems('cursor_expired')
  listChanges(@CurrentPrincipal() principal: Principal, @Parameters() query: SyncQuery): Promise<SyncAnswer> {
    return this.syncs.changes(principal, query);
  }
}
