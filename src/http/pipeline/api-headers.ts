import type { NextFunction, Request, Response } from 'express';

/** The prefix of the members' API. */
export const API_PREFIX = '/api/public';

/** The path of the API for assistants (Model Context Protocol). */
export const ASSISTANTS_PATH = `${API_PREFIX}/mcp`;

/** The prefix of the metadata of protected resources (RFC 9728). */
export const RESOURCE_METADATA_PREFIX = '/.well-known/oauth-protected-resource';

/** The prefix of the API for the platform's own backend. */
export const PLATFORM_PREFIX = '/api/platform';

/** The prefix of calendar links, which count as API requests. */
export const CALENDAR_PREFIX = '/calendar';

/** Tells whether a path is one of the API's prefixes, or below one. */
export function isUnderApi(path: string): boolean {
  return isUnder(API_PREFIX, path) || isUnder(PLATFORM_PREFIX, path) || isUnder(CALENDAR_PREFIX, path);
}

/** Tells whether a path is the prefix itself, or below it. */
export function isUnder(prefix: string, path: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

/** Rate limit headers: of draft-ietf-httpapi-ratelimit-headers, and the older `X-RateLimit-…`. */
export const RATE_LIMIT_HEADERS = [
  'RateLimit',
  'RateLimit-Policy',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
] as const;

const EXPOSED =
  `Age, ETag, Link, Retry-After, ${RATE_LIMIT_HEADERS.join(', ')}, X-Total-Count, X-Request-Id, WWW-Authenticate, ` +
  'X-OAuth-Scopes, X-Accepted-OAuth-Scopes, Deprecation, Sunset';

const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, HEAD, PUT',
  // Excludes X-API-Key: keys are for servers, not for web pages.
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, DPoP, If-Match, If-None-Match, X-Request-Id',
  'Access-Control-Max-Age': '7200',
};

/** Preflight headers of {@link ASSISTANTS_PATH}: assistants send each message by POST, with headers that describe the message. */
const PREFLIGHT_OF_ASSISTANTS = {
  ...PREFLIGHT,
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, DPoP, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Request-Id',
};

/** Preflight headers of public metadata, for any origin. */
export const PREFLIGHT_OF_METADATA = {
  ...PREFLIGHT,
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD',
  'Access-Control-Allow-Headers': '*', // assistants send a header with their protocol's version
};

/** Headers of API responses and problems; they let pages of any origin read these responses. */
export const SHARED_HEADERS = {
  Vary: 'Authorization, X-API-Key, Origin',
  'X-Content-Type-Options': 'nosniff',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED,
} as const;

const OF_EVERY_ANSWER = Object.entries({ 'Cache-Control': 'private, no-cache', ...SHARED_HEADERS });

/** Adds the API's headers (docs/api-contract.md §9, §10), and responds to CORS preflights, which need no credentials. */
export function apiHeaders(request: Request, response: Response, next: NextFunction): void {
  for (const [name, value] of OF_EVERY_ANSWER) response.gather(name, value);
  if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined) {
    const { path } = request.context;
    response.writeHead(204, path === ASSISTANTS_PATH ? PREFLIGHT_OF_ASSISTANTS : PREFLIGHT).end();
    return;
  }
  next();
}
