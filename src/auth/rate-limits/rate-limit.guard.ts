import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { requestOf } from '../../http/pipeline/exchange.js';

/** Responds with 429 if the limit was used up when the call was counted. Runs after the scope check. */
@Injectable()
export class RateLimitGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { overLimit } = requestOf(context);
    if (overLimit !== undefined) throw overLimit;
    return true;
  }
}
