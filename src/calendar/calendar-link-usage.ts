import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Request } from 'express';
import { UsageTally } from '../auth/usage/usage-tally.js';
import { Usage } from '../auth/usage/usage.js';
import { Database } from '../database/database.js';
import { Logger } from '../http/logger.js';

declare module 'express-serve-static-core' {
  interface Request {
    /** Id of the calendar link that it came by. */
    calendarLink?: number;
  }
}

interface LinkUse {
  readonly link_id: number;
}

/** Remembers when calendar links were used. */
@Injectable()
export class CalendarLinkUsage extends UsageTally<LinkUse> implements OnModuleInit {
  constructor(
    database: Database,
    logger: Logger,
    private readonly usage: Usage,
  ) {
    super(
      database,
      logger,
      'a calendar link',
      `UPDATE calendar_links l SET last_used_at = GREATEST(l.last_used_at, r.at)
FROM (SELECT l.id, r.at FROM jsonb_to_recordset($1) AS r (link_id bigint, at timestamptz) JOIN calendar_links l ON l.id = r.link_id
  ORDER BY l.id FOR NO KEY UPDATE OF l) r WHERE l.id = r.id`,
    );
  }

  onModuleInit(): void {
    this.usage.listen(this);
  }

  finished({ calendarLink }: Request, status: number): void {
    if (calendarLink === undefined || status >= 400) return;
    const name = String(calendarLink);
    if (!this.again(name)) this.begin(name, { link_id: calendarLink });
  }
}
