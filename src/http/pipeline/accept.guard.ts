import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Problem } from '../output/problems.js';
import { isOutsideApi } from './outside-api.js';
import { requestOf } from './request-context.js';

/** A parameter of a media range, except its weight. It starts at no space that follows another: there can be thousands. */
const PARAMETER = /(?<![ \t])[ \t]*;[ \t]*(?!q[ \t]*=)[^\s=;,"]+=("(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi;

/** Removes the parameters of the media ranges of `Accept`, except their weights. */
export const withoutParameters = (accept: string) => accept.replace(PARAMETER, '');

/** Tells whether a reader asks: navigating browsers accept `text/html` explicitly; `*` alone, as programs send it, is no request for a page. */
export function prefersHtml(request: Request): boolean {
  return request.accepts(['application/problem+json', 'application/json', 'text/html']) === 'text/html';
}

/**
 * 406 where the caller excludes JSON (RFC 9110 §12.5.1). Parameters of a range
 * (`application/json; charset=utf-8`) distinguish variants of one type; there is only one here, so they are ignored.
 */
@Injectable()
export class AcceptGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = requestOf(context);
    const { accept } = request.headers;
    if (accept === undefined || accept === '*/*' || accept === 'application/json') return true;
    if (isOutsideApi(context.getClass())) return true;
    request.headers.accept = withoutParameters(accept);
    if (!request.accepts('application/json')) throw new Problem('not_acceptable');
    return true;
  }
}
