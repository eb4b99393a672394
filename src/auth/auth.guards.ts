import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { IncomingMessage } from 'node:http';
import { addressOf } from '../values/network.js';
import { ACCESS, type Access } from './auth.decorators.js';
import { Authentication } from './authentication.js';
import { isPlatformScope } from './scopes.js';
import { missingCredentials, requireScope } from './www-authenticate.js';
import { credentialOf, type Caller, type Credential } from './principal.js';
import { Usage } from './usage/usage.js';
import { RateLimits } from './rate-limits/rate-limits.js';
import { Config } from '../config/config.js';
import { Problem } from '../http/output/problems.js';
import { ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { requestOf, responseOf } from '../http/pipeline/request-context.js';

const reflector = new Reflector();
const known = new Map<Target, Access | undefined>();
type Target = ReturnType<ExecutionContext['getHandler' | 'getClass']>;

/** Returns the declared access; the handler's overrides the class's. @returns undefined if none is declared: the route is closed */
export function accessOf(handler: Target, controller: Target): Access | undefined {
  if (!known.has(handler)) known.set(handler, reflector.getAllAndOverride(ACCESS, [handler, controller]));
  return known.get(handler);
}

/** Resolves the credential to its caller; responds with 401, or 429 after many rejections. Rejects routes without declared access. */
@Injectable()
export class CredentialsGuard implements CanActivate {
  constructor(
    private readonly config: Config,
    private readonly authentication: Authentication,
    private readonly rateLimits: RateLimits,
    private readonly usage: Usage,
  ) {}

  /** Stays synchronous if the credential is cached and nothing is left to check. */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const access = accessOf(context.getHandler(), context.getClass());
    if (access === 'public') return true;
    if (access === undefined) return false;
    const request = requestOf(context);
    this.usage.watch(request, access);
    // Counts an assistant's message (a POST) as a read: tools that write also count a write.
    const reads =
      request.method === 'GET' || request.method === 'HEAD' || request.context.path === ASSISTANTS_PATH;
    request.limit = reads ? 'read' : 'write';
    const credential = credentialOf(request);
    if (credential === undefined) throw missingCredentials(this.config.publicUrl, request);
    const goOn = (principal: Caller) => this.#count(principal, request, responseOf(context));
    const caller = this.authentication.authenticate(credential, request);
    if (!(caller instanceof Promise)) return goOn(caller);
    return caller.then(goOn, (error: unknown) => this.#refuse(error, credential, request));
  }

  /** All requests share this function, which saves a closure per request. */
  readonly #confirm = async (message: IncomingMessage): Promise<void> => {
    const request = message as Request;
    const credential = credentialOf(request)!;
    request.principal = await this.authentication
      .confirm(credential, request)
      .catch((error: unknown) => this.#refuse(error, credential, request));
    requireScope(this.config.publicUrl, request, request.scope ?? null);
  };

  #refuse(error: unknown, credential: Credential, request: Request): never {
    throw this.rateLimits.afterRefusal(error, credential, addressOf(request));
  }

  #count(principal: Caller, request: Request, response: Response): true {
    request.principal = principal;
    request.context.userId = principal.userId ?? undefined;
    request.context.confirm = this.#confirm;
    response.gather('X-OAuth-Scopes', principal.scopesText);
    const limit = principal.userId === null ? 'platform' : request.limit!;
    // Requests from a disallowed network or page must not consume the limit of the credential's owner.
    const counted = request.misuse
      ? { ...principal, credentialId: `${principal.credentialId}:misuse` }
      : principal;
    const overLimit = this.rateLimits.countCall(limit, counted, response);
    request.overLimit ??= overLimit;
    return true;
  }
}

/** Checks the route's scope (403) and the caller's limit (429). CredentialsGuard has rejected routes without declared access. */
@Injectable()
export class ScopesGuard implements CanActivate {
  constructor(private readonly config: Config) {}

  canActivate(context: ExecutionContext): boolean {
    const access = accessOf(context.getHandler(), context.getClass());
    if (access === 'public') return true;
    const request = requestOf(context);
    const { principal, overLimit, misuse } = request;
    if (access === undefined || principal === undefined) return false;
    responseOf(context).gather('X-Accepted-OAuth-Scopes', access ?? '');
    const ofPlatform = access !== null && isPlatformScope(access);
    if (misuse !== undefined) throw overLimit ?? misuse;
    if (ofPlatform !== (principal.userId === null)) throw new Problem('wrong_credential_kind');
    requireScope(this.config.publicUrl, request, access);
    // Some assistants stop at a 429, so the MCP server rejects the message instead.
    if (overLimit !== undefined && request.context.path !== ASSISTANTS_PATH) throw overLimit;
    return true;
  }
}
