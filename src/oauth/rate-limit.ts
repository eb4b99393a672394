import type { Request, RequestHandler, Response } from 'express';
import { RETRY_AFTER_SECONDS, sendBusy } from '../http/pipeline/busy.js';
import type { Refuse } from '../http/pipeline/front-door.js';
import type { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { addressOf } from '../values/network.js';
import type { AuthorizationServer } from './provider/authorization-server.js';
import { PageFault } from './pages/page-faults.js';
import { SECURITY_HEADERS } from './pages/pages.js';
import { ENGLISH, LANGUAGES, languageOf, textsIn } from './pages/texts/texts.js';
import type { Page, Pages } from './pages/pages.js';
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
    response.set({ 'Retry-After': String(seconds), 'Access-Control-Expose-Headers': 'Retry-After' });
    await refuse(pages, refusals, request, response, {
      status: 429,
      words: { error: 'temporarily_unavailable', reason: 'too_many_requests' }, // RFC 6749 §5.2 has no code for this
      description: `Too many requests from this address: try again in ${seconds} s.`,
      page: { ...new PageFault(429, 'tooMany').page(request.context.id), retryAfterSeconds: seconds },
    });
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

/** Responds `invalid_request` before the library sees the request. */
export async function refuseParameters(
  pages: Pages,
  refusals: Refusals,
  request: Request,
  response: Response,
  fault: string,
): Promise<void> {
  request.context.problem = 'invalid_request';
  await refuse(pages, refusals, request, response, {
    status: 400,
    words: { error: 'invalid_request', reason: 'malformed_request' },
    description: fault,
    page: { ...new PageFault(400, 'malformed', 'invalid_request').page(request.context.id), detail: fault },
  });
}

/**
 * Responds to a program as RFC 6749 §5.2 says, which browser clients on any origin may read, else with a page. The refusal is counted, and
 * kept so that it can be found by the response's error id.
 */
async function refuse(
  pages: Pages,
  refusals: Refusals,
  request: Request,
  response: Response,
  refusal: { status: number; words: RefusalWords; description: string; page: Page },
): Promise<void> {
  const { id, path, route } = request.context;
  const { status, words, description, page } = refusal;
  refusals.count(words.error);
  await refusals.keep({ ...words, errorId: id, route: route ?? path, ip: addressOf(request) });
  response.set(SECURITY_HEADERS);
  if (!FOR_PROGRAMS.includes(path)) pages.send(response, status, page);
  else
    response
      .status(status)
      .set('Access-Control-Allow-Origin', '*')
      .json({ error: words.error, error_description: description, error_id: id });
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
const busyHeaders = (more: Readonly<Record<string, string>>) =>
  Object.entries({ ...SECURITY_HEADERS, 'Retry-After': RETRY_AFTER_SECONDS, ...more }).flat();
const BUSY_PAGE_HEADERS = busyHeaders({
  Vary: 'Accept-Language',
  'Content-Type': 'text/html; charset=utf-8',
});
const BUSY_JSON_HEADERS = busyHeaders({
  'Content-Type': 'application/json; charset=utf-8',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'Retry-After',
});

/** Responds 503 if the process is overloaded: JSON for programs, a page for browsers. */
export const refuseBusyOauth: Refuse = (request, response) => {
  const { id, path } = request.context; // the id consists of letters, digits, dots, dashes and underscores
  const { accept, 'accept-language': languages } = request.headers;
  // Browsers that open a page accept HTML; programs send no `Accept`, or ask for JSON.
  if (FOR_PROGRAMS.includes(path) || accept?.includes('text/html') !== true)
    sendBusy(request, response, `${BUSY_JSON},"error_id":"${id}"}`, BUSY_JSON_HEADERS);
  else {
    const page = BUSY_PAGES.get(languageOf(undefined, languages))!;
    sendBusy(request, response, `${page}${id}</p>`, BUSY_PAGE_HEADERS);
  }
};
