import { Controller, Get } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { TtlMemo } from '../operations/health/database-check.js';
import { StatusHistory, type Status } from '../operations/status/status-history.js';
import { Site } from './site.js';

/** However many ask. Callers and proxies keep it for a minute. */
const MAX_AGE_MS = 1_000;
const CACHED = { 'Cache-Control': 'public, max-age=60' };

/** Whether the service works, and how well it did for 90 days: a page, and the same for programs. */
@Controller()
@Public()
@OutsideApi()
export class StatusController {
  readonly #recent = new TtlMemo(MAX_AGE_MS, async () => this.#documentsOf(await this.history.read()));

  constructor(
    private readonly history: StatusHistory,
    private readonly site: Site,
  ) {}

  @Get('status')
  async page(): Promise<UnchangingDocument> {
    return (await this.#recent.find()).page;
  }

  @Get('status.json')
  async json(): Promise<UnchangingDocument> {
    return (await this.#recent.find()).json;
  }

  #documentsOf(status: Status) {
    const slowest = Math.max(1, ...status.days.map(({ p95_ms }) => p95_ms ?? 0));
    const { html, headers } = this.site.render({
      template: 'status',
      title: 'Status',
      content: { ...status, slowest },
    });
    const json = {
      'Content-Type': 'application/json; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
      'Access-Control-Allow-Origin': '*',
    };
    return {
      page: new UnchangingDocument(html, { ...headers, ...CACHED }),
      json: new UnchangingDocument(JSON.stringify(status), { ...json, ...CACHED }),
    };
  }
}
