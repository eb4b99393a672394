import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { addressOf } from '../values/network.js';
import { accessOf } from './auth.decorators.js';
import { Authentication } from './authentication.js';
import { isPlatformScope } from './scopes.js';
import { insufficientScope, missingCredentials } from './www-authenticate.js';
import { credentialOf, type Caller, type Credential } from './principal.js';
import { Usage } from './usage/usage.js';
import { RateLimits } from './rate-limits/rate-limits.js';
import { Config } from '../config/config.js';
import { Problem } from '../http/output/problems.js';
import { requestOf, responseOf } from '../http/pipeline/request-context.js';

/** Resolves the credential to its caller, or responds with 401. A route that does not declare what it needs is refused. */
@Injectable()
export class CredentialsGuard implements CanActivate {
  constructor(
    private readonly config: Config,
    private readonly authentication: Authentication,
    private readonly rateLimits: RateLimits,
    private readonly usage: Usage,
  ) {}

  /** Stays synchronous where the credential is cached. */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = accessOf(context.getHandler(), context.getClass());
    if (access === 'public') return true;
    if (access === undefined) return false;
    const request = requestOf(context);
    this.usage.watch(request, access);
    const credential = credentialOf(request);
    if (credential === undefined) throw missingCredentials(this.config.publicUrl);
    const goOn = (principal: Caller) => this.#count(principal, request, responseOf(context));
    let principal: Caller | Promise<Caller>;
    try {
      principal = this.authentication.authenticate(credential, request);
    } catch (error) {
      return this.#refuse(error, credential, request);
    }
    if (!(principal instanceof Promise)) return goOn(principal);
    return principal.then(goOn, (error: unknown) => this.#refuse(error, credential, request));
  }

  #refuse(error: unknown, credential: Credential, request: Request): never {
    throw this.rateLimits.afterRefusal(error, credential, addressOf(request));
  }

  #count(principal: Caller, request: Request, response: Response): true {
    request.principal = principal;
    request.context.userId = principal.userId ?? undefined;
    request.context.credentialId = principal.credentialId;
    response.gather('X-OAuth-Scopes', principal.scopesText);
    request.overLimit = this.rateLimits.countCall(limitOf(principal, request.method), principal, response);
    return true;
  }
}

function limitOf({ userId }: Caller, method: string): 'read' | 'write' | 'platform' {
  if (userId === null) return 'platform';
  return method === 'GET' || method === 'HEAD' ? 'read' : 'write';
}

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
