import { Injectable } from '@nestjs/common';
import type { RequestHandler } from 'express';
import { ProblemFilter } from '../../http/output/problem.filter.js';
import { Problem } from '../../http/output/problems.js';
import { pathPattern, RouteTable } from '../../http/route-table.js';
import { OauthDatabase, OauthRequest } from '../../authorization-server/requests/oauth-database.js';
import { servesPages } from './page.decorator.js';
import { redirect } from '../rendering/pages.js';
import { SECURITY_HEADERS } from '../../layout/layout.js';

/** The form that a path parameter must have: anything else matches no page. */
const PARAMETER = '[\\w-]{1,100}';

interface PagePath {
  /** The route's template. The log uses it to name the page, since the path may contain the id of a sign-in. */
  readonly route: string;
  readonly methods: readonly string[];
  /** Matches every path that Express, which decodes paths, would route here. */
  readonly any: RegExp;
  readonly plain: RegExp;
}

/** Handles requests for pages before their controllers do. */
@Injectable()
export class PageRoutes {
  #paths: readonly PagePath[] | undefined;

  constructor(
    private readonly routeTable: RouteTable,
    private readonly database: OauthDatabase,
    private readonly problems: ProblemFilter,
  ) {}

  handler(): RequestHandler {
    return (request, response, next) => {
      const { context, method } = request;
      const found = this.#all().filter(({ any }) => any.test(context.path));
      if (found.length === 0) {
        next();
        return;
      }
      const page = found.find(({ plain }) => plain.test(context.path));
      if (page === undefined) {
        this.problems.answer(new Problem('not_found'), request, response);
        return;
      }
      if (!page.methods.includes(method)) {
        // The address of a form, from the history or a reload: its page is the nearest one above it.
        const above = method === 'GET' || method === 'HEAD' ? this.#pageAbove(context.path) : undefined;
        if (above !== undefined) {
          context.route = page.route;
          redirect(response.set(SECURITY_HEADERS), above);
          return;
        }
        this.problems.answerMethod(page.methods, request, response);
        return;
      }
      context.route = page.route;
      response.set(SECURITY_HEADERS);
      void this.database.serve(OauthRequest.from(request), () => Promise.resolve(next()));
    };
  }

  /** @returns the path of the nearest page above */
  #pageAbove(path: string): string | undefined {
    const above = path.slice(0, path.lastIndexOf('/'));
    if (above === '') return undefined;
    const isRead = this.#all().some(({ methods, plain }) => methods.includes('GET') && plain.test(above));
    return isRead ? above : this.#pageAbove(above);
  }

  #all(): readonly PagePath[] {
    if (this.#paths) return this.#paths;
    const pages = this.routeTable.routes.filter(({ controller }) => servesPages(controller));
    const methods = Map.groupBy(pages, ({ path }) => path);
    this.#paths = [...methods].map(([route, ofPath]) => ({
      route,
      methods: ofPath.flatMap(({ method }) => (method === 'GET' ? [method, 'HEAD'] : [method])),
      any: pathPattern(route),
      plain: pathPattern(route, PARAMETER),
    }));
    return this.#paths;
  }
}
