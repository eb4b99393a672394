import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Database } from '../../database/database.js';
import type { KnownCredential } from '../credential-cache.js';
import type { Credential } from '../principal.js';
import { refusal } from '../www-authenticate.js';
import { isScope } from '../scopes.js';
import { PROOF_SECONDS, USE_ONCE, verifyProof } from './dpop.js';
import { Config } from '../../config/config.js';
import { eitherOf, TokenKeys } from '../../crypto/hmac.js';

/** What the authorization server issues: 256 random bits in base64url. */
const ACCESS_TOKEN = /^[\w-]{43}$/;

interface TokenRow {
  grant_id: string;
  user_id: number;
  client_id: string;
  scope: string | null;
  /** What the grant still allows: no more than the member's consent does. */
  allowed: string | null;
  audience: string | null;
  jkt: string | null;
  created_at: string;
  expires_at: string;
  /** Until the token or its grant expires, by the database's clock. */
  seconds_left: number;
  client_disabled: boolean;
  by_member: boolean;
  owner_disabled: boolean;
}

const FIND_TOKEN = {
  name: 'find-access-token',
  text: `SELECT t.grant_id, g.user_id, g.client_id, t.payload->>'scope' AS scope,
  g.payload->'resources'->>(t.payload->>'aud') AS allowed, t.payload->>'aud' AS audience,
  t.payload->>'jkt' AS jkt, api_time(t.created_at) AS created_at, api_time(t.expires_at) AS expires_at,
  EXTRACT(epoch FROM LEAST(t.expires_at, g.expires_at) - now())::float8 AS seconds_left,
  c.disabled_at IS NOT NULL AS client_disabled, c.owner_id IS NOT NULL AS by_member, u.disabled_at IS NOT NULL AS owner_disabled
FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id JOIN oauth_clients c ON c.id = g.client_id
JOIN users u ON u.id = g.user_id
WHERE t.key IN ($1, $2) AND t.model = 'AccessToken'`,
};

/** OAuth access tokens, looked up by one statement that joins the token with its grant, client and member. */
@Injectable()
export class AccessTokens {
  readonly #audience: string;

  constructor(
    private readonly config: Config,
    private readonly database: Database,
    private readonly keys: TokenKeys,
  ) {
    this.#audience = `${config.publicUrl}/api/public`;
  }

  /** @throws Problem invalid_credentials where it is unknown or has ended; or what the database throws */
  async lookUp(credential: Credential, request: Request): Promise<KnownCredential> {
    const refuse = (reason: string) => refusal(this.config.publicUrl, credential, request, reason);
    if (!ACCESS_TOKEN.test(credential.secret)) throw refuse('not of the kind oauth_token');
    const keys = this.keys.keysOf('AccessToken', credential.secret);
    const [row] = await this.database.read<TokenRow>(FIND_TOKEN, eitherOf(keys));
    if (!row) throw refuse('unknown or revoked token');
    request.context.credentialId = row.grant_id;
    const developedApp = row.by_member ? ({ kind: 'client', id: row.client_id } as const) : undefined;
    request.context.developedApp = developedApp;
    if (row.seconds_left <= 0) throw refuse('expired');
    if (row.audience !== this.#audience) throw refuse('for another audience');
    if (row.client_disabled) throw refuse('client disabled');
    if (row.owner_disabled) throw refuse('owner disabled');
    const allowed = row.allowed?.split(' ') ?? [];
    const scopes = (row.scope ?? '')
      .split(' ')
      .filter(isScope)
      .filter((scope) => allowed.includes(scope));
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
      allowed: undefined,
      developedApp,
      ...(row.jkt === null ? {} : { thumbprint: row.jkt }),
    };
  }

  /**
   * Checks that the request carries an unused proof of the key that the token is bound to (RFC 9449 §7.1).
   *
   * @throws Problem invalid_credentials
   */
  async checkProof(credential: Credential, thumbprint: string, request: Request): Promise<void> {
    const refuse = (reason: string) =>
      refusal(this.config.publicUrl, credential, request, reason, 'invalid_dpop_proof');
    const { dpop } = request.headers;
    const proof =
      typeof dpop === 'string'
        ? await verifyProof(dpop, {
            method: request.method,
            url: this.config.publicUrl + request.context.path,
            token: credential.secret,
          })
        : undefined;
    if (proof?.thumbprint !== thumbprint) throw refuse('no valid proof');
    const keys = this.keys.everyKeyOf('DPoP', `${thumbprint} ${proof.id}`);
    // A proof is valid from PROOF_SECONDS before its iat until PROOF_SECONDS after it.
    const first = await this.database.prepared(USE_ONCE, [keys, 2 * PROOF_SECONDS]);
    if (first.length === 0) throw refuse('a proof that was used before');
  }
}
