import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { Csrf } from '../accounts/browser-cookies.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Config } from '../config/config.js';
import {
  API_PREFIX,
  apiHeaders,
  ASSISTANTS_PATH,
  isUnder,
  PREFLIGHT_OF_METADATA,
  RESOURCE_METADATA_PREFIX,
} from '../http/pipeline/api-headers.js';
import { compose } from '../http/pipeline/compose.js';
import { isLimitedByAddress } from '../http/pipeline/outside-api.js';
import { ProblemFilter } from '../http/output/problem.filter.js';
import { RouteTable } from '../http/route-table.js';
import { SECURITY_HEADERS } from '../layout/layout.js';
import { addressOf } from '../values/network.js';
import { AuthorizationServer } from './authorization-server.js';
import { type ErrorPage, PageFault } from './failures/page-fault.js';
import type { RejectionReason, RejectionWords } from './reasons/rejection-reasons.js';
import { Rejections } from './failures/rejections.js';
import { ShownPages } from './ports.js';
import { isForPrograms, methodsAt, REGISTRATION, routeOf, ROUTES, SIGN_OUT } from './provider/provider.js';
import { readParameters } from './request-parameters.js';
import { OauthDatabase, OauthRequest } from './requests/oauth-database.js';

const PREFLIGHT_OF_REGISTRATION = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers': 'Content-Type, Mcp-Protocol-Version',
  'Access-Control-Max-Age': '7200',
};

/** Applies rate limits and serves the library's routes, before the API. Serves only exact paths: other spellings must not bypass limits. */
@Injectable()
export class OauthRoutes {
  #limitedPages: ReadonlySet<string> | undefined;

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
    private readonly server: AuthorizationServer,
    private readonly database: OauthDatabase,
    private readonly limits: RateLimits,
    private readonly pages: ShownPages,
    private readonly refusals: Rejections,
    private readonly problems: ProblemFilter,
    private readonly csrf: Csrf,
  ) {}

  handler(): RequestHandler {
    const { host, protocol } = new URL(this.config.publicUrl);
    const pinOrigin: RequestHandler = ({ headers }, _response, next) => {
      // The library builds every URL from these headers.
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

  /** Metadata and keys are cheap and have no limit; userinfo has the API's limits. */
  async #limit(request: Request, response: Response, next: NextFunction): Promise<void> {
    const { context } = request;
    const route = this.#limitedRoute(context.path);
    const seconds = route === undefined ? undefined : this.limits.countOauthRequest(addressOf(request));
    if (seconds === undefined) return next();
    context.route = route;
    context.problem = 'rate_limited';
    response.set({ 'Retry-After': String(seconds), 'Access-Control-Expose-Headers': 'Retry-After' });
    const words = { error: 'temporarily_unavailable', reason: 'too_many_requests' } as const; // RFC 6749 §5.2 has no code for this
    const description = `Too many requests from this address: try again in ${seconds} s.`;
    const page = { retryAfterSeconds: seconds };
    await this.#refuse(request, response, new PageFault(429, 'tooMany'), words, description, page);
  }

  /** @returns the route's name in the log, without ids; undefined if the route has no limit here */
  #limitedRoute(path: string): string | undefined {
    const isLimited = path !== ROUTES.jwks && !path.startsWith('/.well-known/');
    if (methodsAt(path)) return isLimited ? routeOf(path) : undefined;
    this.#limitedPages ??= new Set(
      this.routeTable.routes
        .filter(({ controller }) => isLimitedByAddress(controller))
        .map((route) => firstSegment(route.path)),
    );
    const segment = firstSegment(path);
    return this.#limitedPages.has(segment) ? `/${segment}` : undefined;
  }

  async #serve(request: Request, response: Response, next: NextFunction): Promise<void> {
    const { context, headers, method } = request;
    const { path } = context;
    if (path === ROUTES.userinfo) return apiHeaders(request, response, next);
    const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    if (isPreflight && isUnder(RESOURCE_METADATA_PREFIX, path)) {
      response.writeHead(204, PREFLIGHT_OF_METADATA).end();
      return;
    }
    const methods = methodsAt(path);
    if (!methods) return next();
    context.route = routeOf(path);
    if (!methods.includes(method) || (method === 'OPTIONS' && !isPreflight))
      return this.problems.answerMethod(methods, request, response);
    if (path === REGISTRATION) return this.#refuseRegistration(request, response, isPreflight);
    const isRedirected = method === 'POST' && methods.includes('GET');
    let isOfAssistants = false;
    const sent = await readParameters(request, (asSent) => {
      const text = isRedirected ? asSent : this.#ofWholeApi(asSent);
      isOfAssistants = text !== asSent;
      return text;
    });
    const { text, fault, isPassedOn, exposed } = sent;
    if (exposed) return this.#refuseSecret(request, response, exposed.clientId);
    if (fault !== undefined && !isPassedOn) {
      context.problem = 'invalid_request';
      await this.#refuseMalformed(request, response, 'malformed_request', fault);
    } else if (path === SIGN_OUT && !this.csrf.verify(request, new URLSearchParams(text).get('csrf'))) {
      const words = { error: 'invalid_request', reason: 'foreign_form' } as const;
      const description = 'the form did not come from this server';
      await this.#refuse(request, response, new PageFault(403, 'foreignForm'), words, description);
    } else if (isRedirected) {
      // Browsers do not send our cookies with a form from another site, but send them with the redirected request.
      response.set(SECURITY_HEADERS).redirect(303, `${path}?${new URLSearchParams(text)}`);
    } else {
      const handle = () => this.server.handle(request, response);
      await this.database.serve(OauthRequest.from(request, fault, isOfAssistants), handle);
    }
  }

  async #refuseRegistration(request: Request, response: Response, isPreflight: boolean): Promise<void> {
    if (isPreflight) {
      response.writeHead(204, PREFLIGHT_OF_REGISTRATION).end();
      return;
    }
    const { clientIdMetadataDocuments } = this.config;
    const words = { error: 'access_denied', reason: 'unsupported' } as const;
    const description = `Open registration is not available. ${clientIdMetadataDocuments ? 'Use the https URL of a client metadata document as client_id, or a client_id that the operator gives you' : 'Use a client_id that the operator gives you'} (pua clients create --assistant).`;
    await this.#refuse(request, response, new PageFault(403, 'nothingHere'), words, description);
  }

  /** Rejects a client secret in a URL, even a wrong one, because logs may contain the URL. */
  async #refuseSecret(request: Request, response: Response, clientId: string | undefined): Promise<void> {
    const { context } = request;
    context.problem = 'invalid_request';
    if (clientId !== undefined)
      await this.refusals.record({
        type: context.path === ROUTES.token ? 'token.refused' : 'authorization.refused',
        actor: 'client',
        ip: addressOf(request) ?? null,
        clientId,
        errorId: context.id,
        details: { error: 'invalid_request', reason: 'secret_in_url' },
      });
    const description = 'a client_secret must not be sent in a URL (RFC 6749 §2.3.1): replace it';
    await this.#refuseMalformed(request, response, 'secret_in_url', description);
  }

  async #refuseMalformed(request: Request, response: Response, reason: RejectionReason, detail: string) {
    const fault = new PageFault(400, 'malformed', 'invalid_request');
    await this.#refuse(request, response, fault, { error: 'invalid_request', reason }, detail, { detail });
  }

  /** Replaces the assistants' resource (RFC 8707 §2) by the API's, the audience of all tokens. @param text of a query or form */
  #ofWholeApi(text: string): string {
    if (!this.config.assistants || !text.includes('resource=')) return text;
    const { publicUrl } = this.config;
    const isTheirs = (pair: string) =>
      new URLSearchParams(pair).get('resource')?.replace(/\/$/, '') === publicUrl + ASSISTANTS_PATH;
    const pairs = text
      .split('&')
      .map((pair) => (isTheirs(pair) ? `resource=${publicUrl}${API_PREFIX}` : pair));
    return pairs.join('&');
  }

  /** Rejects a request: responds to programs as in RFC 6749 §5.2, and to browsers with a page. */
  async #refuse(
    request: Request,
    response: Response,
    fault: PageFault,
    words: RejectionWords,
    description: string,
    more: Pick<ErrorPage, 'detail' | 'retryAfterSeconds'> = {},
  ): Promise<void> {
    const { id, path, route } = request.context;
    this.refusals.count(words.error);
    await this.refusals.keep({ ...words, errorId: id, route: route ?? path, ip: addressOf(request) });
    response.set(SECURITY_HEADERS);
    if (!isForPrograms(path)) this.pages.send(response, fault.status, { ...fault.page(id), ...more });
    else
      response
        .status(fault.status)
        .set('Access-Control-Allow-Origin', '*')
        .json({ error: words.error, error_description: description, error_id: id });
  }
}

const firstSegment = (path: string) => path.split('/', 2)[1]!;
