import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { Csrf } from '../accounts/browser-cookies.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Config } from '../config/config.js';
import { API_PREFIX, apiHeaders, ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { compose } from '../http/pipeline/compose.js';
import { isLimitedByAddress } from '../http/pipeline/outside-api.js';
import { receiving } from '../http/pipeline/request-context.js';
import { ProblemFilter } from '../http/output/problem.filter.js';
import { RouteTable } from '../http/route-table.js';
import { SECURITY_HEADERS } from '../layout/layout.js';
import { addressOf } from '../values/network.js';
import { isStorable, looksSecret } from '../values/string-rules.js';
import { AuthorizationServer } from './authorization-server.js';
import { PageFault } from './failures/page-fault.js';
import type { RefusalWords } from './failures/refusal-reasons.js';
import { Refusals } from './failures/refusals.js';
import { type ShownPage, ShownPages } from './ports.js';
import { isForPrograms, methodsAt, REGISTRATION, routeOf, ROUTES, SIGN_OUT } from './provider/provider.js';
import { OauthDatabase, OauthRequest } from './requests/oauth-database.js';

const PREFLIGHT_OF_REGISTRATION = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers': 'Content-Type, Mcp-Protocol-Version',
  'Access-Control-Max-Age': '7200',
};

/**
 * Handles requests other than those to the API first: limits, and everything that the library serves. Paths have to match exactly: no
 * other spelling reaches the library, so none gets past a limit.
 */
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
    private readonly refusals: Refusals,
    private readonly problems: ProblemFilter,
    private readonly csrf: Csrf,
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
    const route = this.#limitedRoute(context.path);
    const seconds = route === undefined ? undefined : this.limits.countOauthRequest(addressOf(request));
    if (seconds === undefined) return next();
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

  /** @returns its name in the log, without ids; undefined if it is not limited here */
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

  /** Lets oidc-provider answer what is its own. */
  async #serve(request: Request, response: Response, next: NextFunction): Promise<void> {
    const { context, headers, method } = request;
    const { path } = context;
    if (path === ROUTES.userinfo) return apiHeaders(request, response, next);
    const methods = methodsAt(path);
    if (!methods) return next();
    context.route = routeOf(path);
    const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
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
    if (exposed) return this.#refuseSecret(request, response, exposed);
    if (fault !== undefined && !isPassedOn) {
      context.problem = 'invalid_request';
      await this.#refuse(request, response, {
        status: 400,
        words: { error: 'invalid_request', reason: 'malformed_request' },
        description: fault,
        page: { ...new PageFault(400, 'malformed', 'invalid_request').page(context.id), detail: fault },
      });
    } else if (path === SIGN_OUT && !this.csrf.verify(request, new URLSearchParams(text).get('csrf'))) {
      await this.#refuse(request, response, {
        status: 403,
        words: { error: 'invalid_request', reason: 'foreign_form' },
        description: 'the form is not one of this server',
        page: new PageFault(403, 'foreignForm').page(context.id),
      });
    } else if (isRedirected) {
      // Of a form on another site the browser sends no cookies: it does where that leads on.
      response.set(SECURITY_HEADERS).redirect(303, `${path}?${new URLSearchParams(text)}`);
    } else {
      const handle = () => this.server.handle(request, response);
      await this.database.serve(OauthRequest.from(request, fault, isOfAssistants), handle);
    }
  }

  /** Says to assistants that try to register (RFC 7591) how a client becomes known instead. */
  async #refuseRegistration(request: Request, response: Response, isPreflight: boolean): Promise<void> {
    if (isPreflight) {
      response.writeHead(204, PREFLIGHT_OF_REGISTRATION).end();
      return;
    }
    const { clientIdMetadataDocuments } = this.config;
    await this.#refuse(request, response, {
      status: 403,
      words: { error: 'access_denied', reason: 'unsupported' },
      description: `There is no open registration. ${clientIdMetadataDocuments ? 'Use the https URL of a client metadata document as client_id, or a client_id that the operator gives you' : 'Use a client_id that the operator gives you'} (pua clients create --assistant).`,
      page: new PageFault(403, 'nothingHere').page(request.context.id),
    });
  }

  /** A secret in a URL is in the logs of whoever saw it: it is refused, right or wrong, and its app's admin finds that in the audit trail. */
  async #refuseSecret(request: Request, response: Response, { clientId }: ExposedSecret): Promise<void> {
    const { context } = request;
    const words = { error: 'invalid_request', reason: 'secret_in_url' } as const;
    const description = 'a client_secret must not be sent in a URL (RFC 6749 §2.3.1): replace it';
    context.problem = 'invalid_request';
    if (clientId !== undefined)
      await this.refusals.record({
        type: context.path === ROUTES.token ? 'token.refused' : 'authorization.refused',
        actor: 'client',
        ip: addressOf(request) ?? null,
        clientId,
        errorId: looksSecret(context.id) ? null : context.id,
        details: words,
      });
    await this.#refuse(request, response, {
      status: 400,
      words,
      description,
      page: { ...new PageFault(400, 'malformed', 'invalid_request').page(context.id), detail: description },
    });
  }

  /**
   * Assistants name the address that they were given as the resource (RFC 8707 §2): it is a part of the API, and tokens are for the API
   * as a whole. @param text of a query or form
   */
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

const firstSegment = (path: string) => path.split('/', 2)[1]!;

const BODY_LIMIT = 16_384;

/** The most parameters of a request, known or not: parsers, the library's among them, may take the square of their number. */
const MOST_PAIRS = 100;
const TOO_MANY = `there may be ${MOST_PAIRS} parameters at most`;

/** The most characters of a parameter that is not stored. */
const LONGEST = 2048;

/** Parameters of an authorization request, all of which the library stores until the member has signed in. */
const OF_AUTHORIZATION: Readonly<Record<string, number>> = {
  acr_values: 200,
  claims: LONGEST,
  claims_locales: 100,
  client_id: 100,
  code_challenge: 128,
  code_challenge_method: 20,
  display: 20,
  dpop_jkt: 100,
  id_token_hint: LONGEST,
  login_hint: 100,
  max_age: 20,
  nonce: 512,
  prompt: 100,
  redirect_uri: LONGEST,
  registration: LONGEST,
  request: LONGEST,
  request_uri: 200,
  resource: LONGEST,
  response_mode: 50,
  response_type: 100,
  scope: 512,
  state: LONGEST,
  ui_locales: 100,
};

/** All of them together, in bytes of JSON: encrypted and encoded, a stored request stays under 8 KB. */
const LONGEST_REQUEST = 5120;

/** Other names are unknown, and ignored (RFC 6749 §3.1 and §3.2). */
const LIMITS: Readonly<Record<string, number>> = {
  ...OF_AUTHORIZATION,
  client_assertion: 8192,
  client_assertion_type: 100,
  client_secret: LONGEST,
  code: LONGEST,
  code_verifier: LONGEST,
  grant_type: 200,
  logout: 20,
  logout_hint: 100,
  post_logout_redirect_uri: LONGEST,
  refresh_token: LONGEST,
  token: LONGEST,
  token_type_hint: 100,
  xsrf: 200,
};

/** A secret in the URL of a request, or in a form that is answered by a redirect to one. */
interface ExposedSecret {
  /** As sent. */
  readonly clientId: string | undefined;
}

/** What a request sent, and what is wrong with it. */
interface Sent {
  /** The query, or the body of a form. */
  readonly text: string;
  /** For `error_description`; undefined where nothing is wrong. */
  readonly fault?: string | undefined;
  /** The library refuses it, by a redirect where it has verified the redirect URI: it does not see what is wrong. */
  readonly isPassedOn?: boolean;
  readonly exposed?: ExposedSecret | undefined;
}

/**
 * Reads the parameters of a request and checks them before any parser does: for more of them than a client sends, for text that the
 * database cannot store, and for more of it than a stored request may hold. Wrong ones are removed from the query of an authorization
 * request.
 *
 * @param corrected makes the text say what is meant
 */
async function readParameters(request: Request, corrected: (text: string) => string): Promise<Sent> {
  const { path } = request.context;
  const isForm = request.method === 'POST';
  const start = request.url.indexOf('?');
  let text = start === -1 ? '' : request.url.slice(start + 1);
  if (hasTooMany(text)) return { text, fault: TOO_MANY };
  if (text === '' && !isForm) return { text };
  const exposed = secretIn(text);
  if (exposed) return { text: '', exposed };
  if (!isForm) request.url = `${path}?${(text = corrected(text))}`;
  const query = new URLSearchParams(isForm ? '' : text); // as the library does: it drops another question mark
  let parameters = [...new Set(query.keys())].map((name): Parameter => [name, query.getAll(name)]);
  if (isForm) {
    if (!request.is('application/x-www-form-urlencoded')) return { text: '' }; // the library refuses it
    if (!/^[^;]*(; *charset="?utf-8"? *)?$/i.test(request.headers['content-type']!))
      return { text: '', fault: 'the body must be in UTF-8' };
    const body = await receiving(request, () => bodyOf(request));
    if (body === undefined) return { text: '', fault: `the body must have 1 to ${BODY_LIMIT} bytes` };
    text = withoutEmptyPassword(request, body.toString());
    if (hasTooMany(text)) return { text, fault: TOO_MANY };
    if (!isForPrograms(path) && secretIn(text)) return { text: '', exposed: secretIn(text) };
    text = corrected(text);
    putBack(request, Buffer.from(text));
    parameters = ofForm(text);
  }
  const faults = parameters.flatMap(faultOf);
  const fault = faults[0]?.reason ?? faultOfWhole(path, parameters);
  const isPassedOn = path === ROUTES.authorization && !isForm;
  if (isPassedOn && faults.length > 0) {
    for (const { name } of faults) query.delete(name);
    request.url = `${path}?${query}`;
  }
  return { text, fault, isPassedOn };
}

function secretIn(text: string): ExposedSecret | undefined {
  const sent = new URLSearchParams(text);
  if (!sent.get('client_secret')) return undefined;
  const clientId = sent.get('client_id') ?? undefined;
  return { clientId: clientId !== undefined && isStorable(clientId) ? clientId.slice(0, 100) : undefined };
}

/** Counted before anything is parsed. */
function hasTooMany(text: string): boolean {
  return text.split('&', MOST_PAIRS + 1).length > MOST_PAIRS;
}

/** A parameter with all its values. */
type Parameter = readonly [name: string, values: readonly string[]];

/** Reads a form as the library does. */
function ofForm(text: string): Parameter[] {
  return Object.entries(parse(text)).map(([name, values]) => [name, [values ?? []].flat()]);
}

function faultOf([name, values]: Parameter): { name: string; reason: string }[] {
  if (!Object.hasOwn(LIMITS, name)) return [];
  for (const text of values) {
    // U+FFFD replaces what is not UTF-8.
    if (/[\p{Cc}\u{fffd}]/u.test(text) || !text.isWellFormed())
      return [{ name, reason: `${name} must be text in UTF-8 without control characters` }];
    if (text.length > LIMITS[name]!)
      return [{ name, reason: `${name} must have at most ${LIMITS[name]} characters` }];
  }
  return [];
}

function faultOfWhole(path: string, parameters: readonly Parameter[]): string | undefined {
  if (path !== ROUTES.authorization && path !== ROUTES.pushed_authorization_request) return undefined;
  const stored = parameters.filter(([name]) => Object.hasOwn(OF_AUTHORIZATION, name));
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(stored)));
  return bytes > LONGEST_REQUEST ? 'the authorization request is too long' : undefined;
}

/**
 * Moves the id of a public client to `client_id`, where the library looks for it. OAuth libraries that know only HTTP Basic send the id
 * with an empty password (RFC 6749 §2.3.1 lets a client omit a secret that is the empty string).
 */
function withoutEmptyPassword({ headers }: IncomingMessage, form: string): string {
  const clientId = clientOfEmptyPassword(headers.authorization);
  if (clientId === undefined) return form;
  const [, [named, ...others]] = ofForm(form).find(([name]) => name === 'client_id') ?? ['', []];
  if (named !== undefined && (named !== clientId || others.length > 0)) return form; // the library refuses it
  delete headers.authorization;
  return named === undefined ? `${form}&${new URLSearchParams({ client_id: clientId })}` : form;
}

/** Parses `Basic` with `id:`, both form-encoded (RFC 6749 §2.3.1). */
function clientOfEmptyPassword(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const [, id] = /^([^:]+):$/.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
  return id === undefined
    ? undefined
    : (new URLSearchParams(`id=${id.replaceAll('&', '%26')}`).get('id') ?? undefined);
}

/** @returns undefined where the body is empty, too long, or was not sent to its end */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if ((size += chunk.length) > BODY_LIMIT) return undefined;
    }
  } catch {
    return undefined;
  }
  return size > 0 ? Buffer.concat(chunks) : undefined;
}

/** Lets the library read a body again, by what it uses of a stream. */
function putBack(request: IncomingMessage, body: Buffer): void {
  const { headers } = request;
  if (headers['content-length'] !== undefined) headers['content-length'] = String(body.length);
  Object.defineProperties(request, { readable: { value: true }, iterator: { value: () => [body] } });
}
