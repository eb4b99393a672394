import type { NextFunction, Request, Response } from 'express';

/** The prefix of everything that callers of the API see. */
export const API_PREFIX = '/api/public';

export function isUnderApi(path: string): boolean {
  return path === API_PREFIX || path.startsWith(`${API_PREFIX}/`);
}

const EXPOSED = [
  'ETag',
  'Link',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'X-Total-Count',
  'X-Request-Id',
  'WWW-Authenticate',
  'X-OAuth-Scopes',
  'X-Accepted-OAuth-Scopes',
].join(', ');

const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, HEAD, PUT',
  // Not X-API-Key: keys are for servers.
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, DPoP, If-Match, If-None-Match, X-Request-Id',
  'Access-Control-Max-Age': '7200',
};

/**
 * Headers of every answer under {@link API_PREFIX} (contract §9, §10), errors and unknown routes too, and the
 * answer to preflight requests, which need no credential.
 */
export function apiHeaders(request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Cache-Control', 'private, no-cache');
  response.setHeader('Vary', 'Authorization, X-API-Key, Origin');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Expose-Headers', EXPOSED);
  if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined) {
    for (const [name, value] of Object.entries(PREFLIGHT)) response.setHeader(name, value);
    response.statusCode = 204;
    response.end();
    return;
  }
  next();
}

/** A path that cannot be decoded names nothing: it goes on as what it says to the letter, and is not found. */
export function tolerateBadEncoding(request: Request, _response: Response, next: NextFunction): void {
  try {
    decodeURIComponent(request.context.path);
  } catch {
    request.url = request.url.replace(/^[^?]*/, (path) => path.replaceAll('%', '%25'));
  }
  next();
}
