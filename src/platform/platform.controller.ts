import { Controller, Get, Headers, HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../auth/auth.decorators.js';
import type { PlatformPrincipal } from '../auth/principal.js';
import { NdjsonBody } from '../http/input/body.js';
import { invalidParameter, Parameters } from '../http/input/query.js';
import { RequestHeader, RespondsWith, RespondsWithProblems } from '../http/output/openapi.js';
import { confirmCredential, withoutSlot } from '../http/pipeline/request-context.js';
import { extendDeadline } from '../http/pipeline/response-deadline.js';
import { PlatformChangesAnswer, PlatformChangesQuery } from './changes.dto.js';
import { PlatformChangesService } from './changes.service.js';
import { FEED_LINE_FORMS, FeedCounts, FeedLine } from './feed.dto.js';
import { FEED_PATIENCE_MS, FeedService, MAX_FEED_BYTES } from './feed.service.js';

const IDEMPOTENCY_KEY = /^[!-~]{1,200}$/;

/** Routes for the platform's backend: feeds, and members' changes. */
@Controller('api/platform')
export class PlatformController {
  constructor(
    private readonly feeds: FeedService,
    private readonly changes: PlatformChangesService,
  ) {}

  @Post('records')
  @RequireScopes('platform:write')
  @HttpCode(200)
  @RespondsWith(
    'Feed records',
    FeedCounts,
    'At most 5,000 lines of JSON (8 MB), each with one record, in the format of an import (`docs/operators/import.md`). The server applies them in order, all or none: if any line is invalid, it changes nothing, and names the first 100 invalid lines. If a line deletes a member, the server erases all of the member’s data. If a request with an `Idempotency-Key` is repeated within 24 hours, it has no effect and gets the same response.',
  )
  @RequestHeader(
    'Idempotency-Key',
    'A key of your choice, in visible ASCII characters: the same key and body get the same response for 24 hours',
    { minLength: 1, maxLength: 200, pattern: '^[!-~]+$' },
  )
  @RespondsWithProblems('idempotency_conflict')
  feedRecords(
    @CurrentPrincipal() { keyId }: PlatformPrincipal,
    @Req() request: Request,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @NdjsonBody(FeedLine, FEED_LINE_FORMS, MAX_FEED_BYTES) body: Buffer,
  ): Promise<FeedCounts> {
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) {
      const detail = 'Idempotency-Key must have 1 to 200 visible ASCII characters.';
      throw invalidParameter('Idempotency-Key', detail);
    }
    extendDeadline(request, FEED_PATIENCE_MS);
    // Feeds release their request slot: their own limit (two at a time) replaces it.
    const confirm = () => confirmCredential(request);
    return withoutSlot(request, () => this.feeds.feed(keyId, body, idempotencyKey, confirm));
  }

  @Get('changes')
  @RequireScopes('platform:read')
  @RespondsWith(
    'List the actions of members',
    PlatformChangesAnswer,
    'Profiles that members edited, with the new values; consents that they gave and withdrew; sign-ins; notices to members. Oldest first: store `next`, and pass it as `after` in the next request. With `wait`, the server waits up to 30 seconds for a change before it responds: send requests in a loop to get each change immediately (long polling).',
  )
  @RespondsWithProblems('invalid_cursor', 'cursor_expired')
  listPlatformChanges(
    @Req() request: Request,
    @Parameters() query: PlatformChangesQuery,
  ): Promise<PlatformChangesAnswer> {
    return this.changes.list(query, request);
  }
}
