import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { prefersHtml } from '../http/pipeline/accept.guard.js';
import { API_PREFIX, isUnderApi } from '../http/pipeline/api-headers.js';
import { RouteTable } from '../http/route-table.js';
import { LanguageChoice } from '../member-pages/rendering/language-choice.js';
import { Pages } from '../member-pages/rendering/pages.js';

/** These are typed by hand, so a trailing slash is accepted; everything else must match exactly. */
const TYPED = /^\/(docs(?:\/[\w-]{1,100})?|demo)\/$/;

const PAGE = { name: 'error', fault: 'unknownAddress', next: { text: 'toFront', href: '/' } } as const;

const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' };

@Injectable()
export class UnknownPage {
  constructor(
    private readonly pages: Pages,
    private readonly language: LanguageChoice,
    private readonly routeTable: RouteTable,
  ) {}

  /**
   * Responds to a reader's request for an unknown path, in their language.
   *
   * @returns whether it did: programs, and all requests below /api/public, get the problem instead
   */
  answer(request: Request, response: Response): boolean {
    const { path } = request.context;
    if (request.method !== 'GET' && request.method !== 'HEAD') return false;
    if (path === API_PREFIX && prefersHtml(request)) return redirect(response, 303, '/docs');
    if (isUnderApi(path)) return false;
    const [, typed] = TYPED.exec(path) ?? [];
    if (typed !== undefined && this.routeTable.methodsAt(`/${typed}`).includes('GET'))
      return redirect(response, 308, `/${typed}`);
    if (!prefersHtml(request)) return false;
    request.context.problem = 'not_found';
    if (this.language.choose(request, response)) return true;
    // What a stranger put behind the address leads nowhere: the links to other languages leave it out.
    this.pages.send(response, 404, PAGE, { query: new URLSearchParams() });
    return true;
  }
}

function redirect(response: Response, status: number, location: string): true {
  const headers = { Location: location, 'Cache-Control': 'no-cache', 'Content-Length': '0', ...NOSNIFF };
  response.writeHead(status, headers).end();
  return true;
}
