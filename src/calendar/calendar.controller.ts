import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '../http/output/swagger.js';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Usage } from '../auth/usage/usage.js';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { etagOf, noneMatch } from '../http/output/etag.js';
import { Problem } from '../http/output/problems.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { addressOf } from '../values/network.js';
import { readCalendar } from './calendar-events.js';
import { calendarFile } from './calendar-file.js';
import type { CalendarSource } from './calendar-file.js';
import { CalendarLinks } from './calendar-links.js';

/**
 * A member's events for calendar programs, which cannot send a credential: the link is one. Each link has the API's limit of reads to
 * itself, and counts as a refused credential if it opens nothing.
 */
@Controller('calendar')
@Public()
@OutsideApi()
@ApiExcludeController()
export class CalendarController {
  readonly #source: CalendarSource;

  constructor(
    config: Config,
    private readonly links: CalendarLinks,
    private readonly database: Database,
    private readonly rateLimits: RateLimits,
    private readonly usage: Usage,
  ) {
    this.#source = { name: config.platformName ?? 'Events', host: new URL(config.publicUrl).hostname };
  }

  @Get(':secret.ics')
  async read(
    @Req() request: Request,
    @Res() response: Response,
    @Param('secret') secret: string,
  ): Promise<void> {
    const link = await this.links.find(secret);
    if (!link)
      throw this.rateLimits.countRefused('calendar_link', addressOf(request)) ?? new Problem('not_found');
    const credentialId = `calendar-${link.id}`;
    request.context.userId = link.user_id;
    request.context.credentialId = credentialId;
    request.calendarLink = link.id;
    this.usage.watch(request, null);
    const caller = { kind: 'calendar_link', userId: link.user_id, credentialId } as const;
    const overLimit = this.rateLimits.countCall('read', caller, response);
    if (overLimit) throw overLimit;
    const events = await readCalendar(this.database, link.user_id);
    const file = await calendarFile(events, this.#source, () => !response.headersSent && !response.destroyed);
    if (file === undefined || response.headersSent) return; // the deadline was first
    const etag = etagOf(file);
    response.gather('ETag', etag);
    const known = request.headers['if-none-match'];
    if (known !== undefined && noneMatch(known, etag)) {
      response.writeHead(304).end();
      return;
    }
    response.gather('Content-Type', 'text/calendar; charset=utf-8');
    response.gather('Content-Disposition', 'inline; filename="events.ics"');
    response.gather('Content-Length', String(file.length));
    response.writeHead(200).end(request.method === 'HEAD' ? undefined : file);
  }
}
