import { Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { addressOf } from '../values/network.js';
import { Problem } from '../http/output/problems.js';
import { AccessTokens } from './access-tokens/access-tokens.service.js';
import { ApiKeyAuthenticator, isInside } from './api-keys/api-key-authenticator.js';
import { refusal } from './www-authenticate.js';
import { CredentialCache } from './credential-cache.js';
import type { KnownCredential } from './credential-cache.js';
import type { Credential } from './credentials.js';
import type { Principal } from './principal.js';

/**
 * The one door: a credential as it was sent → who calls. Whether what is known of a credential holds for this request is
 * decided here and nowhere else, wherever it is known from.
 */
@Injectable()
export class Authentication {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly cache: CredentialCache,
    private readonly apiKeys: ApiKeyAuthenticator,
    private readonly accessTokens: AccessTokens,
  ) {}

  /**
   * @throws Problem invalid_credentials (one answer for every reason), and of a key api_key_in_browser and ip_not_allowed;
   * or what the database throws
   */
  async authenticate(credential: Credential, request: Request): Promise<Principal> {
    const { kind, secret } = credential;
    const authenticator = kind === 'api_key' ? this.apiKeys : this.accessTokens;
    if (!authenticator.couldBe(secret)) throw this.#refusal(credential, request, `not of the kind ${kind}`);
    const known =
      this.cache.find(kind, secret) ??
      (await this.cache.learn(kind, secret, () => authenticator.lookUp(credential, request)));
    request.context.credentialId = known.principal.credentialId;
    await this.#permit(known, credential, request);
    authenticator.recordUse(known.principal, addressOf(request));
    return known.principal;
  }

  async #permit(known: KnownCredential, credential: Credential, request: Request): Promise<void> {
    const { principal, thumbprint, allowedCidrs } = known;
    if (principal.kind !== credential.kind) throw this.#refusal(credential, request, 'another kind');
    const proven = credential.scheme === 'DPoP';
    if (proven !== (thumbprint !== undefined))
      throw this.#refusal(
        credential,
        request,
        proven ? 'a token that is not bound' : 'a bound token without its proof',
      );
    if (thumbprint !== undefined) await this.accessTokens.checkProof(credential, thumbprint, request);
    if (principal.kind !== 'api_key') return;
    const origin = request.headers.origin ?? request.headers['sec-fetch-site'];
    if (origin !== undefined) {
      await this.apiKeys.recordExposure(principal, String(origin));
      throw new Problem('api_key_in_browser');
    }
    if (allowedCidrs.length > 0 && !isInside(allowedCidrs, addressOf(request)))
      throw new Problem('ip_not_allowed');
  }

  #refusal(credential: Credential, request: Request, reason: string): Problem {
    return refusal(this.config.publicUrl, credential, request, reason);
  }
}
