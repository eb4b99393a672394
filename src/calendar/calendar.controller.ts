import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { noneMatch } from '../http/output/responses.js';
import { Problem } from '../http/output/problems.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { leaveSlot } from '../http/pipeline/request-context.js';
import { extendDeadline } from '../http/pipeline/response-deadline.js';
import { addressOf } from '../values/network.js';
import { CalendarFiles, PATIENCE_MS } from './calendar-files.js';
import { CalendarLinks, type ReadableLink } from './calendar-links.js';

/** Serves calendar files at secret URLs: calendar apps cannot send credentials. Unknown links count as rejected credentials. */
@Controller('calendar')
@Public()
@OutsideApi()
export class CalendarController {
  constructor(
    private readonly links: CalendarLinks,
    private readonly files: CalendarFiles,
    private readonly rateLimits: RateLimits,
  ) {}

  @Get(':secret.ics')
  async read(
    @Req() request: Request,
    @Res() response: Response,
    @Param('secret') secret: string,
  ): Promise<void> {
    const link = await this.#find(secret, request);
    const credentialId = `calendar-${link.id}`;
    request.context.userId = link.user_id;
    request.context.credentialId = credentialId;
    const caller = { kind: 'calendar_link', userId: link.user_id, credentialId } as const;
    const overLimit = this.rateLimits.countCall('read', caller, response);
    if (overLimit) throw overLimit;
    extendDeadline(request, PATIENCE_MS);
    leaveSlot(request.context); // a waiting request needs no slot
    const { bytes, etag } = await this.files.of(link.user_id);
    if (response.headersSent) return; // the deadline passed first
    await this.#find(secret, request); // the link may have been revoked during the wait
    this.links.uses.count(String(link.id));
    response.gather('ETag', etag);
    if (noneMatch(request.headers['if-none-match'], etag)) {
      response.writeHead(304).end();
      return;
    }
    response.gather('Content-Type', 'text/calendar; charset=utf-8');
    response.gather('Content-Disposition', 'inline; filename="events.ics"');
    response.gather('Content-Length', String(bytes.length));
    response.writeHead(200).end(request.method === 'HEAD' ? undefined : bytes);
  }

  /** @throws Problem not_found; rate_limited after too many unknown links */
  async #find(secret: string, request: Request): Promise<ReadableLink> {
    const link = await this.links.find(secret);
    if (link) return link;
    throw this.rateLimits.countRefused('calendar_link', addressOf(request)) ?? new Problem('not_found');
  }
}
