import type { Request, RequestHandler, Response } from 'express';
import { RETRY_AFTER_SECONDS, sendBusy } from '../http/pipeline/busy.js';
import type { Refuse } from '../http/pipeline/front-door.js';
import type { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { addressOf } from '../values/network.js';
import type { AuthorizationServer } from './provider/authorization-server.js';
import { PageFault } from './pages/page-faults.js';
import { SECURITY_HEADERS } from './pages/pages.js';
import { ENGLISH, LANGUAGES, languageOf, textsIn } from './pages/texts/texts.js';
import type { Pages } from './pages/pages.js';
import { ROUTES } from './provider/provider.js';
import type { RefusalWords } from './provider/refusal-reasons.js';
import type { Refusals } from './provider/refusals.js';

/** Endpoints for programs; everything else is opened in a browser. */
const FOR_PROGRAMS: readonly string[] = [
  ROUTES.token,
  ROUTES.revocation,
  ROUTES.introspection,
  ROUTES.pushed_authorization_request,
  ROUTES.jwks,
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
];

/**
 * Responds 429 to an address that sends too many requests, before doing any work for them: most of these routes need no credential,
 * and many store something. Metadata and keys are cheap and not limited; userinfo has the API's limits.
 */
export function limitRequests(
  server: AuthorizationServer,
  limits: RateLimits,
  pages: Pages,
  refusals: Refusals,
): RequestHandler {
  return async (request, response, next) => {
    const route = limitedRoute(server, request.context.path);
    const seconds = route === undefined ? undefined : limits.countOauthRequest(addressOf(request));
    if (seconds === undefined) {
      next();
      return;
    }
    request.context.route = route;
    request.context.problem = 'rate_limited';
    await tell(refusals, request, { error: 'temporarily_unavailable', reason: 'too_many_requests' });
    response.set({ ...SECURITY_HEADERS, 'Retry-After': String(seconds) });
    if (FOR_PROGRAMS.includes(request.context.path)) refuseProgram(request, response, seconds);
    else refuseBrowser(pages, request, response, seconds);
  };
}

/** @returns the route's name in the log, which never holds the id of a sign-in */
function limitedRoute(server: AuthorizationServer, path: string): string | undefined {
  if (path.startsWith('/interaction/')) return '/interaction/:uid';
  if (path.startsWith('/account/')) return '/account';
  if (path === '/developer' || path.startsWith('/developer/')) return '/developer';
  if (path.startsWith('/sign-in/')) return '/sign-in';
  if (path === '/logos/client') return path;
  if (!server.methodsAt(path) || path === ROUTES.jwks || path.startsWith('/.well-known/')) return undefined;
  return path.startsWith(`${ROUTES.authorization}/`) ? `${ROUTES.authorization}/:uid` : path;
}

/** Responds `invalid_request`, as JSON or as a page, before the library sees the request. */
export async function refuseParameters(
  pages: Pages,
  refusals: Refusals,
  request: Request,
  response: Response,
  fault: string,
): Promise<void> {
  const { id, path } = request.context;
  request.context.problem = 'invalid_request';
  await tell(refusals, request, { error: 'invalid_request', reason: 'malformed_request' });
  response.status(400).set(SECURITY_HEADERS);
  if (FOR_PROGRAMS.includes(path))
    response
      .set('Access-Control-Allow-Origin', '*')
      .json({ error: 'invalid_request', error_description: fault, error_id: id });
  else {
    const page = new PageFault(400, 'malformed', 'invalid_request').page(id);
    pages.send(response, 400, { ...page, detail: fault });
  }
}

/** Counts the refusal, and keeps it so that it can be found by the response's error id. */
async function tell(refusals: Refusals, request: Request, words: RefusalWords): Promise<void> {
  const { id, path, route } = request.context;
  refusals.count(words.error);
  await refusals.keep({ ...words, errorId: id, route: route ?? path, ip: addressOf(request) });
}

/** In the format of RFC 6749 §5.2, which has no code for this. Browser clients on any origin may read it. */
function refuseProgram(request: Request, response: Response, seconds: number): void {
  response
    .status(429)
    .set({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Retry-After' })
    .json({
      error: 'temporarily_unavailable',
      error_description: `Too many requests from this address: try again in ${seconds} s.`,
      error_id: request.context.id,
    });
}

function refuseBrowser(pages: Pages, request: Request, response: Response, seconds: number): void {
  const page = new PageFault(429, 'tooMany').page(request.context.id);
  pages.send(response, 429, { ...page, retryAfterSeconds: seconds });
}

/** Unstyled: a page with the style sheet would cost as much as the response that it replaces. */
const BUSY_PAGES = new Map(
  LANGUAGES.map((language) => {
    const [title, message] = textsIn(language).faults.busy;
    return [
      language,
      `<!doctype html><html lang="${language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>${title}</title><h1>${title}</h1><p>${message}</p><p>Error id: `,
    ];
  }),
);
const BUSY_JSON = JSON.stringify({
  error: 'temporarily_unavailable',
  error_description: ENGLISH.faults.busy[1],
}).slice(0, -1);
const RETRY = ['Retry-After', RETRY_AFTER_SECONDS];
const BUSY_PAGE_HEADERS = [
  ...Object.entries(SECURITY_HEADERS).flat(),
  ...RETRY,
  'Vary',
  'Accept-Language',
  'Content-Type',
  'text/html; charset=utf-8',
];
const BUSY_JSON_HEADERS = [
  ...Object.entries(SECURITY_HEADERS).flat(),
  ...RETRY,
  'Content-Type',
  'application/json; charset=utf-8',
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'Retry-After',
];

/** Responds 503 if the process is overloaded: JSON for programs, a page for browsers. */
export const refuseBusyOauth: Refuse = (request, response) => {
  const { id, path } = request.context; // the id consists of letters, digits, dots, dashes and underscores
  if (FOR_PROGRAMS.includes(path) || !opensPage(request.headers.accept))
    sendBusy(request, response, `${BUSY_JSON},"error_id":"${id}"}`, BUSY_JSON_HEADERS);
  else {
    const page = BUSY_PAGES.get(languageOf(undefined, request.headers['accept-language']))!;
    sendBusy(request, response, `${page}${id}</p>`, BUSY_PAGE_HEADERS);
  }
};

/** Whether the request is for a page: browsers then accept HTML; programs send no `Accept`, or ask for JSON. */
function opensPage(accept: string | undefined): boolean {
  return accept?.includes('text/html') ?? false;
}
