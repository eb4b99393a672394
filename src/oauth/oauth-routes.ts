import { Injectable } from '@nestjs/common';
import type { RequestHandler } from 'express';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { apiHeaders } from '../http/pipeline/api-headers.js';
import { compose } from '../http/pipeline/compose.js';
import { PageRoutes } from './pages/page-routes.js';
import { Pages, redirect, SECURITY_HEADERS } from './pages/pages.js';
import { AuthorizationServer } from './provider/authorization-server.js';
import { readParameters } from './provider/parameters.js';
import { ROUTES } from './provider/provider.js';
import { Refusals } from './provider/refusals.js';
import { limitRequests, refuseParameters } from './rate-limit.js';
import { OauthDatabase } from './storage/oauth-database.js';
import { OauthRequest } from './storage/request-context.js';
import { Config } from '../config/config.js';

/**
 * Handles requests other than those to the API before they reach the controllers: limits, everything that the library serves, and
 * the checks before each page. Paths have to match exactly: no other spelling reaches the library or a page, so none gets past a
 * limit.
 */
@Injectable()
export class OauthRoutes {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly database: OauthDatabase,
    private readonly limits: RateLimits,
    private readonly pages: Pages,
    private readonly refusals: Refusals,
    private readonly pageRoutes: PageRoutes,
  ) {}

  handler(): RequestHandler {
    return compose(
      this.#pinOrigin(),
      limitRequests(this.server, this.limits, this.pages, this.refusals),
      this.#library(),
      (request, response, next) => {
        if (request.context.path === ROUTES.userinfo) apiHeaders(request, response, next);
        else next();
      },
      this.pageRoutes.handler(),
    );
  }

  /** Replaces the request's host with that of PUBLIC_URL, since the library builds every URL from it. */
  #pinOrigin(): RequestHandler {
    const { host, protocol } = new URL(this.config.publicUrl);
    return (request, _response, next) => {
      const { headers } = request;
      headers.host = host;
      headers['x-forwarded-proto'] = protocol.slice(0, -1);
      delete headers['x-forwarded-host'];
      next();
    };
  }

  /** Passes on the requests that oidc-provider handles. */
  #library(): RequestHandler {
    const { server, database, pages, refusals } = this;
    return async (request, response, next) => {
      const { context, headers, method } = request;
      const { path } = context;
      const methods = server.methodsAt(path);
      if (!methods) {
        next();
        return;
      }
      context.route = path.startsWith(`${ROUTES.authorization}/`) ? `${ROUTES.authorization}/:uid` : path;
      const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
      if (!methods.includes(method) || (method === 'OPTIONS' && !isPreflight)) {
        this.pageRoutes.answerMethod(methods, request, response);
        return;
      }
      const { text, fault, isPassedOn } = await readParameters(request);
      if (fault !== undefined && !isPassedOn) {
        await refuseParameters(pages, refusals, request, response, fault);
        return;
      }
      if (method === 'POST' && methods.includes('GET')) {
        // Of a form on another site the browser sends no cookies: it does where that leads on.
        response.set(SECURITY_HEADERS);
        redirect(response, `${path}?${new URLSearchParams(text)}`);
        return;
      }
      await database.serve(OauthRequest.from(request, fault), () => server.handle(request, response));
    };
  }
}
