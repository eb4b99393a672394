import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { accessOf } from './auth.decorators.js';
import { isPlatformScope } from './scopes.js';
import { insufficientScope } from './www-authenticate.js';
import { Config } from '../config/config.js';
import { Problem } from '../http/output/problems.js';
import { requestOf, responseOf } from '../http/pipeline/request-context.js';

/**
 * Admits the caller, or responds with 403, by the scope that the route declares, or with 429 if the limit was used up when the call was
 * counted. The first guard refuses routes without a scope.
 */
@Injectable()
export class ScopesGuard implements CanActivate {
  constructor(private readonly config: Config) {}

  canActivate(context: ExecutionContext): boolean {
    const access = accessOf(context.getHandler(), context.getClass());
    if (access === 'public') return true;
    const { principal, overLimit } = requestOf(context);
    if (access === undefined || principal === undefined) return false;
    responseOf(context).gather('X-Accepted-OAuth-Scopes', access ?? '');
    const ofPlatform = access !== null && isPlatformScope(access);
    if (ofPlatform !== (principal.userId === null)) throw new Problem('wrong_credential_kind');
    if (access !== null && !(principal.scopes as readonly string[]).includes(access)) {
      throw insufficientScope(this.config.publicUrl, access, principal.scopes);
    }
    if (overLimit !== undefined) throw overLimit;
    return true;
  }
}
