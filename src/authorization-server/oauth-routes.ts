import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Config } from '../config/config.js';
import { apiHeaders } from '../http/pipeline/api-headers.js';
import { compose } from '../http/pipeline/compose.js';
import { ProblemFilter } from '../http/output/problem.filter.js';
import { SECURITY_HEADERS } from '../layout/layout.js';
import { addressOf } from '../values/network.js';
import { AuthorizationServer } from './authorization-server.js';
import { PageFault } from './failures/page-fault.js';
import type { RefusalWords } from './failures/refusal-reasons.js';
import { Refusals } from './failures/refusals.js';
import { readParameters } from './parameters.js';
import { ShownPages, type ShownPage } from './ports/shown-pages.js';
import { isForPrograms, methodsAt, routeOf, ROUTES } from './provider/provider.js';
import { OauthDatabase, OauthRequest } from './requests/oauth-database.js';

/**
 * Handles requests other than those to the API first: limits, and everything that the library serves. Paths have to match exactly: no
 * other spelling reaches the library, so none gets past a limit.
 */
@Injectable()
export class OauthRoutes {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly database: OauthDatabase,
    private readonly limits: RateLimits,
    private readonly pages: ShownPages,
    private readonly refusals: Refusals,
    private readonly problems: ProblemFilter,
  ) {}

  handler(): RequestHandler {
    const { host, protocol } = new URL(this.config.publicUrl);
    const pinOrigin: RequestHandler = ({ headers }, _response, next) => {
      // The library builds every URL from these.
      headers.host = host;
      headers['x-forwarded-proto'] = protocol.slice(0, -1);
      delete headers['x-forwarded-host'];
      next();
    };
    return compose(
      pinOrigin,
      (request, response, next) => this.#limit(request, response, next),
      (request, response, next) => this.#serve(request, response, next),
    );
  }

  /**
   * Responds 429 to an address that sends too many requests, before doing any work for them: most of these routes need no credential,
   * and many store something. Metadata and keys are cheap and not limited; userinfo has the API's limits.
   */
  async #limit(request: Request, response: Response, next: NextFunction): Promise<void> {
    const { context } = request;
    const route = limitedRoute(context.path);
    const seconds = route === undefined ? undefined : this.limits.countOauthRequest(addressOf(request));
    if (seconds === undefined) {
      next();
      return;
    }
    context.route = route;
    context.problem = 'rate_limited';
    response.set({ 'Retry-After': String(seconds), 'Access-Control-Expose-Headers': 'Retry-After' });
    await this.#refuse(request, response, {
      status: 429,
      words: { error: 'temporarily_unavailable', reason: 'too_many_requests' }, // RFC 6749 §5.2 has no code for this
      description: `Too many requests from this address: try again in ${seconds} s.`,
      page: { ...new PageFault(429, 'tooMany').page(context.id), retryAfterSeconds: seconds },
    });
  }

  /** Lets oidc-provider answer what is its own. */
  async #serve(request: Request, response: Response, next: NextFunction): Promise<void> {
    const { context, headers, method } = request;
    const { path } = context;
    if (path === ROUTES.userinfo) return apiHeaders(request, response, next);
    const methods = methodsAt(path);
    if (!methods) return next();
    context.route = routeOf(path);
    const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    if (!methods.includes(method) || (method === 'OPTIONS' && !isPreflight)) {
      this.problems.answerMethod(methods, request, response);
      return;
    }
    const { text, fault, isPassedOn } = await readParameters(request);
    if (fault !== undefined && !isPassedOn) {
      context.problem = 'invalid_request';
      await this.#refuse(request, response, {
        status: 400,
        words: { error: 'invalid_request', reason: 'malformed_request' },
        description: fault,
        page: { ...new PageFault(400, 'malformed', 'invalid_request').page(context.id), detail: fault },
      });
    } else if (method === 'POST' && methods.includes('GET')) {
      // Of a form on another site the browser sends no cookies: it does where that leads on.
      response.set(SECURITY_HEADERS).redirect(303, `${path}?${new URLSearchParams(text)}`);
    } else {
      const handle = () => this.server.handle(request, response);
      await this.database.serve(OauthRequest.from(request, fault), handle);
    }
  }

  /**
   * Responds to a program as RFC 6749 §5.2 says, which browser clients on any origin may read, else with a page. The refusal is counted,
   * and kept so that it can be found by the response's error id.
   */
  async #refuse(
    request: Request,
    response: Response,
    refusal: { status: number; words: RefusalWords; description: string; page: ShownPage },
  ): Promise<void> {
    const { id, path, route } = request.context;
    const { status, words, description, page } = refusal;
    this.refusals.count(words.error);
    await this.refusals.keep({ ...words, errorId: id, route: route ?? path, ip: addressOf(request) });
    response.set(SECURITY_HEADERS);
    if (!isForPrograms(path)) this.pages.send(response, status, page);
    else
      response
        .status(status)
        .set('Access-Control-Allow-Origin', '*')
        .json({ error: words.error, error_description: description, error_id: id });
  }
}

/** @returns the route's name in the log, which never holds the id of a sign-in; undefined where it is not limited here */
function limitedRoute(path: string): string | undefined {
  if (path.startsWith('/interaction/')) return '/interaction/:uid';
  if (path.startsWith('/account/')) return '/account';
  if (path === '/developer' || path.startsWith('/developer/')) return '/developer';
  if (path.startsWith('/sign-in/')) return '/sign-in';
  if (path === '/logos/client') return path;
  const isLimited = path !== ROUTES.jwks && !path.startsWith('/.well-known/');
  return isLimited && methodsAt(path) ? routeOf(path) : undefined;
}
