import { Controller, Headers, HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../auth/auth.decorators.js';
import type { PlatformPrincipal } from '../auth/principal.js';
import { NdjsonBody } from '../http/input/body.js';
import { RespondsWith, RespondsWithProblems } from '../http/output/openapi.js';
import { Problem } from '../http/output/problems.js';
import { extendDeadline } from '../http/pipeline/response-deadline.js';
import { FeedCounts, FeedLine } from './feed.dto.js';
import { FEED_PATIENCE_MS, FeedService, MOST_FEED_BYTES } from './feed.service.js';

const IDEMPOTENCY_KEY = /^[!-~]{1,200}$/;

/** Takes the platform's changes, by which its backend keeps the data here up to date. */
@Controller('api/platform')
@RequireScopes('platform:write')
export class FeedController {
  constructor(private readonly feeds: FeedService) {}

  @Post('records')
  @HttpCode(200)
  @RespondsWith(
    'Feed records',
    FeedCounts,
    'Lines of JSON, at most 5,000 of them and 8 MB, each with a record as the files of an import hold it (`docs/import.md`). They take effect in their order, all of them or none: where a line is bad, the response names the first 100 bad ones, and nothing was changed. Deleting a member erases everything of theirs. With an `Idempotency-Key` the same request, sent again within 24 hours, gets the same response and does nothing.',
  )
  @RespondsWithProblems('idempotency_conflict')
  feedRecords(
    @CurrentPrincipal() { keyId }: PlatformPrincipal,
    @Req() request: Request,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @NdjsonBody(FeedLine, MOST_FEED_BYTES) body: Buffer,
  ): Promise<FeedCounts> {
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey))
      throw new Problem('invalid_parameter', {
        errors: [
          {
            parameter: 'Idempotency-Key',
            code: 'invalid_parameter',
            detail: 'Idempotency-Key must have 1 to 200 visible ASCII characters.',
          },
        ],
      });
    extendDeadline(request, FEED_PATIENCE_MS);
    return this.feeds.feed(keyId, body, idempotencyKey);
  }
}
