import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Problem } from './problems.js';

/** 406 where the caller excludes JSON (RFC 9110 §12.5.1). */
@Injectable()
export class AcceptGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    const { accept } = request.headers;
    if (accept === undefined || accept === '*/*' || accept === 'application/json') return true;
    if (!request.accepts('application/json')) throw new Problem('not_acceptable');
    return true;
  }
}
