import { Inject, Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { addressOf } from '../values/network.js';
import { accessOf } from './auth.decorators.js';
import { Authentication } from './authentication.js';
import { missingCredentials } from './www-authenticate.js';
import { credentialOf } from './credentials.js';
import type { Credential } from './credentials.js';
import type { Principal } from './principal.js';
import { RateLimits } from './rate-limits/rate-limits.js';

/** Credential → Principal, or 401. Every route is refused that does not say what it needs. */
@Injectable()
export class CredentialsGuard implements CanActivate {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly authentication: Authentication,
    private readonly rateLimits: RateLimits,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const access = accessOf(context.getHandler(), context.getClass());
    if (access === 'public') return true;
    if (access === undefined) return false;
    const request = context.switchToHttp().getRequest<Request>();
    const credential = credentialOf(request);
    if (credential === undefined) throw missingCredentials(this.config.publicUrl);
    const principal = await this.#authenticate(credential, request);
    request.principal = principal;
    request.context.userId = principal.userId;
    request.context.credentialId = principal.credentialId;
    const response = context.switchToHttp().getResponse<Response>();
    response.setHeader('X-OAuth-Scopes', principal.scopesText);
    const limit = request.method === 'GET' || request.method === 'HEAD' ? 'read' : 'write';
    request.overLimit = await this.rateLimits.countCall(limit, principal, response);
    return true;
  }

  async #authenticate(credential: Credential, request: Request): Promise<Principal> {
    try {
      return await this.authentication.authenticate(credential, request);
    } catch (error) {
      throw await this.rateLimits.afterRefusal(error, credential, addressOf(request));
    }
  }
}
