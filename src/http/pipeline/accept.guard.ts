import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Problem } from '../output/problems.js';
import { isOutsideApi } from './outside-api.js';
import { requestOf } from './request-context.js';

/** A parameter of a media range, except the weight `q`. The lookbehind avoids quadratic time on thousands of spaces. */
const PARAMETER = /(?<![ \t])[ \t]*;[ \t]*(?!q[ \t]*=)[^\s=;,"]+=("(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi;

/** Removes the parameters of the media ranges of `Accept`, except their weights. */
export const withoutParameters = (accept: string) => accept.replace(PARAMETER, '');

/** Tells whether the client prefers HTML to JSON, as browsers do. */
export function prefersHtml(request: Request): boolean {
  return request.accepts(['application/problem+json', 'application/json', 'text/html']) === 'text/html';
}

/** Responds 406 if the caller does not accept JSON (RFC 9110 §12.5.1). Ignores parameters such as `charset=utf-8`. */
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
