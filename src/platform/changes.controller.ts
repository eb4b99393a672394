import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { RequireScopes } from '../auth/auth.decorators.js';
import { Parameters } from '../http/input/query.js';
import { RespondsWith, RespondsWithProblems } from '../http/output/openapi.js';
import { PlatformChangesAnswer, PlatformChangesQuery } from './changes.dto.js';
import { PlatformChangesService } from './changes.service.js';

/** Tells the platform's backend what members did through the API. */
@Controller('api/platform')
@RequireScopes('platform:read')
export class PlatformChangesController {
  constructor(private readonly changes: PlatformChangesService) {}

  @Get('changes')
  @RespondsWith(
    'List what members did',
    PlatformChangesAnswer,
    'Profiles that members edited, with the new values; consents that they gave and withdrew; sign-ins. Oldest first: store `next`, and pass it as `after` in the next call. With `wait`, the server waits up to 30 seconds for a change before it responds, so that calls in a loop learn of every change at once (long polling).',
  )
  @RespondsWithProblems('invalid_cursor', 'cursor_expired')
  listPlatformChanges(
    @Req() request: Request,
    @Parameters() query: PlatformChangesQuery,
  ): Promise<PlatformChangesAnswer> {
    return this.changes.list(query, request);
  }
}
