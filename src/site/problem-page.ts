import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Problem } from '../http/output/problems.js';
import { redirectTo } from '../http/output/responses.js';
import { prefersHtml } from '../http/pipeline/accept.guard.js';
import { isUnderApi } from '../http/pipeline/api-headers.js';
import { RouteTable } from '../http/route-table.js';
import type { Page } from '../member-pages/rendering/page-contents.js';
import { Pages } from '../member-pages/rendering/pages.js';

/** Paths of pages with a trailing slash, which people may type; the server redirects them. */
const TYPED = /^\/(docs(?:\/[\w-]{1,100})?|demo)\/$/;

/** Paths that only programs use: endpoints of the authorization server, and health checks. */
const FOR_PROGRAMS = /^\/(oauth\/(?!authorize|logout)|livez$|readyz$)/;

const FAULTS: Readonly<Record<number, Extract<Page, { name: 'error' }>['fault']>> = {
  404: 'unknownAddress',
  413: 'unreadableForm',
  415: 'unreadableForm',
  429: 'tooMany',
  500: 'failed',
  503: 'busy',
};

@Injectable()
export class ProblemPage {
  constructor(
    private readonly pages: Pages,
    private readonly routeTable: RouteTable,
  ) {}

  /** Responds with a page or a redirect instead of a problem. @returns false if the client must get the problem */
  answer(
    { definition: { code, status }, detail }: Problem,
    headers: Readonly<Record<string, string>>,
    request: Request,
    response: Response,
  ): boolean {
    const { path } = request.context;
    const isUnknown = code === 'not_found';
    if (isUnknown) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return false;
      const [, typed] = TYPED.exec(path) ?? [];
      if (typed !== undefined && this.routeTable.methodsAt(`/${typed}`).includes('GET')) {
        redirectTo(response, 308, `/${typed}`);
        return true;
      }
    } else if (FOR_PROGRAMS.test(path)) return false;
    if (isUnderApi(path) || !prefersHtml(request)) return false;
    request.context.problem = code;
    if (this.pages.switchLanguage(request, response)) return true;
    const page = {
      name: 'error',
      fault: FAULTS[status] ?? 'malformed',
      retryAfterSeconds: Number(headers['Retry-After'] ?? 1),
      next: { text: 'toFront', href: '/' },
      ...(isUnknown ? {} : { code, detail }),
      ...(status >= 500 ? { error_id: request.context.id } : {}),
    } as const;
    // Links to other languages must not contain an untrusted query.
    this.pages.send(response.set(headers), status, page, { query: new URLSearchParams() });
    return true;
  }
}
