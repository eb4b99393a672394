import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { addressOf } from '../values/network.js';
import { Problem } from '../http/output/problems.js';
import { ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { AccessTokens } from './access-tokens.js';
import { ApiKeyAuthenticator, isInside } from './api-keys/api-key-authenticator.js';
import { CredentialCache, type KnownCredential } from './credential-cache.js';
import { rejection } from './www-authenticate.js';
import type { Caller, Credential } from './principal.js';
import { Config } from '../config/config.js';

/** Resolves credentials to their callers, with the cache or the database. */
@Injectable()
export class Authentication {
  constructor(
    private readonly config: Config,
    private readonly cache: CredentialCache,
    private readonly apiKeys: ApiKeyAuthenticator,
    private readonly accessTokens: AccessTokens,
  ) {}

  /** Sets `misuse` and `overLimit`. Synchronous if the credential is cached and needs no query. @throws Problem invalid_credentials */
  authenticate(credential: Credential, request: Request): Caller | Promise<Caller> {
    const known = this.#know(credential, request);
    return known instanceof Promise
      ? known.then((found) => this.#use(found, credential, request))
      : this.#use(known, credential, request);
  }

  /** Checks that an admitted credential is still valid. @returns its caller with current scopes @throws as {@link authenticate} */
  async confirm(credential: Credential, request: Request): Promise<Caller> {
    const { principal } = await this.#know(credential, request);
    return principal;
  }

  #know(credential: Credential, request: Request): KnownCredential | Promise<KnownCredential> {
    const { kind, secret } = credential;
    const issued = kind === 'api_key' ? this.apiKeys : this.accessTokens;
    const lookUp = () => issued.lookUp(credential, request);
    return this.cache.find(kind, secret) ?? this.cache.learn(kind, secret, lookUp);
  }

  #use(known: KnownCredential, credential: Credential, request: Request): Caller | Promise<Caller> {
    const { principal } = known;
    request.context.credentialId = principal.credentialId;
    request.context.developedApp = known.developedApp;
    const permitted = this.#permit(known, credential, request);
    return permitted ? permitted.then(() => principal) : principal;
  }

  /** @returns undefined if nothing is left to do; otherwise a promise, which rejects if the credential is rejected */
  #permit(known: KnownCredential, credential: Credential, request: Request): Promise<void> | undefined {
    const { principal, thumbprint, allowed } = known;
    if (principal.kind !== credential.kind) return this.#refuse(credential, request, 'another kind');
    if (request.context.path === ASSISTANTS_PATH && this.#isForeignPage(known, request)) {
      request.misuse = new Problem('origin_not_allowed');
      return undefined;
    }
    const proven = credential.scheme === 'DPoP';
    if (proven && thumbprint === undefined)
      return this.#refuse(credential, request, 'a token that is not bound');
    if (!proven && thumbprint !== undefined)
      return this.#refuse(credential, request, 'a bound token without its proof');
    if (thumbprint !== undefined)
      return this.accessTokens.checkProof(credential, principal, thumbprint, request);
    if (principal.kind !== 'api_key') return undefined;
    const origin = request.headers.origin ?? request.headers['sec-fetch-site'];
    if (origin !== undefined) {
      request.misuse = new Problem('api_key_in_browser');
      return this.apiKeys.recordExposure(principal, String(origin));
    }
    if (allowed !== undefined && !isInside(allowed, addressOf(request)))
      request.misuse = new Problem('ip_not_allowed');
    return undefined;
  }

  /** Tells whether a page of a foreign site (not the client's, not ours) sent the token: MCP requires this check against DNS rebinding. */
  #isForeignPage({ origins }: KnownCredential, { headers: { origin } }: Request): boolean {
    if (origin === undefined || origins === undefined) return false;
    return origin !== new URL(this.config.publicUrl).origin && !origins.includes(origin);
  }

  #refuse(credential: Credential, request: Request, reason: string): Promise<never> {
    return Promise.reject(rejection(this.config.publicUrl, credential, request, reason));
  }
}
