import { Injectable, SetMetadata } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Problem } from '../output/problems.js';
import { isOutsideApi } from './outside-api.js';

const TYPE = 'http:type';

/** The route answers with this media type in place of JSON. */
export const Produces = (type: string) => SetMetadata(TYPE, type);

/** A parameter of a media range, but its weight. */
const PARAMETER = /[ \t]*;[ \t]*(?!q[ \t]*=)[^\s=;,"]+=("(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi;

/**
 * 406 where the caller excludes what the route answers with, JSON as a rule (RFC 9110 §12.5.1). Parameters of a range
 * (`application/json; charset=utf-8`) tell variants of one type apart; there is one of each here, so they do not count.
 */
@Injectable()
export class AcceptGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    const { accept } = request.headers;
    if (accept === undefined || accept === '*/*' || accept === 'application/json') return true;
    if (isOutsideApi(context.getClass())) return true;
    request.headers.accept = accept.replace(PARAMETER, '');
    const type = Reflect.getMetadata(TYPE, context.getHandler()) as string | undefined;
    if (!request.accepts(type ?? 'application/json')) throw new Problem('not_acceptable');
    return true;
  }
}
