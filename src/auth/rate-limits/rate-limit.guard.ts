import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { requestOf } from '../../http/pipeline/exchange.js';

/** Answers 429 if the limit was used up when the call was counted. It runs after the scope was checked. */
@Injectable()
export class RateLimitGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { overLimit } = requestOf(context);
    if (overLimit !== undefined) throw overLimit;
    return true;
  }
}
