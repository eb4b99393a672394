import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { Public } from '../auth/auth.decorators.js';
import { Layout } from './layout.js';

const HEADERS = { 'Content-Type': 'text/css; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };

/** The style sheet of all pages, kept by browsers for a year, since its address changes with it. */
@Controller('style.css')
@Public()
@OutsideApi()
export class StyleController {
  readonly #current: UnchangingDocument;
  readonly #other: UnchangingDocument;

  constructor(private readonly layout: Layout) {
    const { style } = layout;
    this.#current = new UnchangingDocument(style, {
      ...HEADERS,
      'Cache-Control': 'public, max-age=31536000, immutable',
    });
    this.#other = new UnchangingDocument(style, { ...HEADERS, 'Cache-Control': 'no-cache' });
  }

  /** A page of another version of the server, as during an upgrade, gets this one's style sheet for that once. */
  @Get()
  style(@Req() request: Request, @Res() response: Response): void {
    const isCurrent = request.url === this.layout.styleAddress;
    (isCurrent ? this.#current : this.#other).send(request, response);
  }
}
