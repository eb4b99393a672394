import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { prefersHtml } from '../http/pipeline/accept.guard.js';
import { API_PREFIX, isUnderApi } from '../http/pipeline/api-headers.js';
import { RouteTable } from '../http/route-table.js';
import { Site } from './site.js';

/** These are typed by hand, so a trailing slash is accepted; everything else must match exactly. */
const TYPED = /^\/(docs(?:\/[\w-]{1,100})?|demo)\/$/;

const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' };

@Injectable()
export class UnknownPage {
  #page: { readonly html: string; readonly headers: Readonly<Record<string, string>> } | undefined;

  constructor(
    private readonly site: Site,
    private readonly routeTable: RouteTable,
  ) {}

  /**
   * Responds to a reader's request for an unknown path.
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
    this.#page ??= this.site.render({ template: 'unknown', title: 'Nothing here', content: {} });
    const { html, headers } = this.#page;
    response.writeHead(404, { ...headers, 'Content-Length': Buffer.byteLength(html) });
    response.end(request.method === 'HEAD' ? undefined : html);
    return true;
  }
}

function redirect(response: Response, status: number, location: string): true {
  const headers = { Location: location, 'Cache-Control': 'no-cache', 'Content-Length': '0', ...NOSNIFF };
  response.writeHead(status, headers).end();
  return true;
}
