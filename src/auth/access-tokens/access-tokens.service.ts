import { Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import type { Problem } from '../../http/problems.js';
import { invalidCredentials, invalidProof } from '../challenges.js';
import { CredentialCache } from '../credential-cache.js';
import type { KnownCredential } from '../credential-cache.js';
import type { Principal } from '../principal.js';
import { isScope } from '../scopes.js';
import { PROOF_SECONDS, SUPPORTED_DPOP_ALGORITHMS, verifyProof } from './dpop.js';
import { GrantUsageRecorder } from './grant-usage.js';
import { TokenKeys, USE_ONCE } from './token-keys.js';

/** What the authorization server issues: 256 random bits in base64url. */
const ACCESS_TOKEN = /^[\w-]{43}$/;

interface TokenRow extends Record<string, unknown> {
  grant_id: string;
  user_id: number;
  client_id: string;
  scope: string | null;
  audience: string | null;
  jkt: string | null;
  created_at: string;
  expires_at: string;
  /** Until the token or its grant expires, by the database's clock. */
  seconds_left: number;
  client_disabled: boolean;
  owner_disabled: boolean;
}

const FIND_TOKEN = {
  name: 'find-access-token',
  text: `SELECT t.grant_id, g.user_id, g.client_id, t.payload->>'scope' AS scope, t.payload->>'aud' AS audience,
  t.payload->>'jkt' AS jkt, api_time(t.created_at) AS created_at, api_time(t.expires_at) AS expires_at,
  EXTRACT(epoch FROM LEAST(t.expires_at, g.expires_at) - now())::float8 AS seconds_left,
  c.disabled_at IS NOT NULL AS client_disabled, u.disabled_at IS NOT NULL AS owner_disabled
FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id JOIN oauth_clients c ON c.id = g.client_id
JOIN users u ON u.id = g.user_id
WHERE t.key = ANY($1) AND t.model = 'AccessToken'`,
};

/** OAuth access tokens → Principal, in one statement that looks at token, grant, client and member. */
@Injectable()
export class AccessTokens {
  readonly #keys: TokenKeys;
  readonly #audience: string;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly database: Database,
    private readonly cache: CredentialCache,
    private readonly usage: GrantUsageRecorder,
  ) {
    this.#keys = new TokenKeys(config.secrets);
    this.#audience = `${config.publicUrl}/api/public`;
  }

  /** @throws Problem invalid_credentials: one answer for every reason */
  async authenticate(
    { scheme, token }: { scheme: 'Bearer' | 'DPoP'; token: string },
    request: Request,
  ): Promise<Principal> {
    if (!ACCESS_TOKEN.test(token)) throw this.#refusal(request, scheme, 'not a token');
    const known =
      this.cache.find(token) ?? (await this.cache.learn(token, () => this.#lookUp(token, scheme, request)));
    const { principal, thumbprint } = known;
    request.context.credentialId = principal.credentialId;
    if (scheme === 'DPoP') await this.#checkProof(token, thumbprint, request);
    else if (thumbprint !== undefined)
      throw this.#refusal(request, scheme, 'a bound token without its proof');
    this.usage.record(principal.credentialId);
    return principal;
  }

  async #lookUp(token: string, scheme: 'Bearer' | 'DPoP', request: Request): Promise<KnownCredential> {
    const [row] = await this.database.read<TokenRow>(FIND_TOKEN, [this.#keys.keysOf('AccessToken', token)]);
    if (!row) throw this.#refusal(request, scheme, 'unknown or revoked token');
    request.context.credentialId = row.grant_id;
    if (row.seconds_left <= 0) throw this.#refusal(request, scheme, 'expired');
    if (row.audience !== this.#audience) throw this.#refusal(request, scheme, 'for another audience');
    if (row.client_disabled) throw this.#refusal(request, scheme, 'client disabled');
    if (row.owner_disabled) throw this.#refusal(request, scheme, 'owner disabled');
    const scopes = (row.scope ?? '').split(' ').filter(isScope);
    return {
      principal: {
        kind: 'oauth_token',
        userId: row.user_id,
        scopes,
        scopesText: scopes.join(', '),
        credentialId: row.grant_id,
        keyId: null,
        clientId: row.client_id,
        expiresAt: row.expires_at,
        createdAt: row.created_at,
      },
      expiresAtMs: performance.now() + row.seconds_left * 1000,
      allowedCidrs: [],
      ...(row.jkt === null ? {} : { thumbprint: row.jkt }),
    };
  }

  /** RFC 9449 §7.1. */
  async #checkProof(token: string, thumbprint: string | undefined, request: Request): Promise<void> {
    if (thumbprint === undefined) throw this.#refusal(request, 'DPoP', 'a token that is not bound');
    const { dpop } = request.headers;
    const proof =
      typeof dpop === 'string'
        ? await verifyProof(dpop, {
            method: request.method,
            url: this.config.publicUrl + request.context.path,
            token,
          })
        : undefined;
    if (proof?.thumbprint !== thumbprint) throw this.#proofRefusal(request, 'no valid proof');
    const key = this.#keys.keyOf('DPoP', `${thumbprint} ${proof.id}`);
    // A proof counts from PROOF_SECONDS before its iat to as long after it.
    const first = await this.database.rows(USE_ONCE, [key, 2 * PROOF_SECONDS]);
    if (first.length === 0) throw this.#proofRefusal(request, 'a proof that was used before');
  }

  #refusal(request: Request, scheme: 'Bearer' | 'DPoP', reason: string): Problem {
    request.context.refusal = reason;
    return scheme === 'DPoP'
      ? invalidProof(this.config.publicUrl, 'invalid_token', SUPPORTED_DPOP_ALGORITHMS)
      : invalidCredentials(this.config.publicUrl, 'token');
  }

  #proofRefusal(request: Request, reason: string): Problem {
    request.context.refusal = reason;
    return invalidProof(this.config.publicUrl, 'invalid_dpop_proof', SUPPORTED_DPOP_ALGORITHMS);
  }
}
