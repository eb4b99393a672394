import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { Layout } from './layout.js';

/** The style sheet of all pages, kept by browsers for a year, since its address changes with it. */
@Controller('style.css')
@Public()
@OutsideApi()
export class StyleController {
  readonly #current: UnchangingDocument;
  readonly #other: UnchangingDocument;

  constructor(private readonly layout: Layout) {
    const document = (cacheControl: string) =>
      new UnchangingDocument(layout.style, {
        'Content-Type': 'text/css; charset=utf-8',
        'X-Content-Type-Options': 'nosniff',
        'Cache-Control': cacheControl,
      });
    this.#current = document('public, max-age=31536000, immutable');
    this.#other = document('no-cache');
  }

  /** A page of another version of the server, as during an upgrade, gets this one's style sheet for that once. */
  @Get()
  style(@Req() request: Request): UnchangingDocument {
    return request.url === this.layout.styleAddress ? this.#current : this.#other;
  }
}
