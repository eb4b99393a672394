import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';
import { Config } from '../config/config.js';
import { sha256 } from '../crypto/digests.js';
import { eitherOf, TokenKeys } from '../crypto/hmac.js';
import { isOpaqueSecret } from '../values/secret-forms.js';
import { Database } from '../database/database.js';
import { keyed } from '../database/sql.js';
import { ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import type { KnownCredential } from './credential-cache.js';
import type { Caller, Credential } from './principal.js';
import { RateLimits } from './rate-limits/rate-limits.js';
import { isScope } from './scopes.js';
import { rejection, SUPPORTED_DPOP_ALGORITHMS } from './www-authenticate.js';

/** Maximum difference between a DPoP proof's `iat` and now, in seconds. */
const PROOF_SECONDS = 60;

interface TokenRow {
  grant_id: string;
  user_id: number;
  client_id: string;
  scope: string | null;
  /** The grant's scopes for the token's audience. */
  allowed: string | null;
  jkt: string | null;
  created_at: string;
  expires_at: string;
  /** null if access has no end; for one-time access, the token's end. */
  access_ends_at: string | null;
  /** Seconds until the token or its grant expires, by the database's clock. */
  seconds_left: number;
  by_member: boolean;
  /** Origins of the client's pages, or URIs at these origins. */
  origins: readonly string[];
  client_scopes: string[];
  fault: string | null;
}

const FIND_TOKEN = {
  name: 'find-access-token',
  text: `SELECT t.grant_id, g.user_id, g.client_id, t.payload->>'scope' AS scope,
  g.payload->'resources'->>(t.payload->>'aud') AS allowed, t.payload->>'jkt' AS jkt,
  api_time(t.created_at) AS created_at, api_time(t.expires_at) AS expires_at,
  api_time(CASE WHEN g.access_ends_at < g.created_at + interval '1 hour' THEN t.expires_at ELSE g.access_ends_at END) AS access_ends_at,
  EXTRACT(epoch FROM LEAST(t.expires_at, g.expires_at, g.access_ends_at) - now())::float8 AS seconds_left,
  c.owner_id IS NOT NULL AS by_member,
  CASE WHEN c.allowed_origins <> '{}' OR c.type = 'native' OR c.secret_auth_method IS NOT NULL THEN c.allowed_origins
    ELSE c.redirect_uris END AS origins,
  c.scopes AS client_scopes,
  CASE WHEN LEAST(t.expires_at, g.expires_at, g.access_ends_at) <= now() THEN 'expired'
    WHEN t.payload->>'aud' IS DISTINCT FROM $3 THEN 'for another audience'
    WHEN c.disabled_at IS NOT NULL THEN 'client disabled' WHEN u.disabled_at IS NOT NULL THEN 'owner disabled' END AS fault
FROM oauth_tokens t JOIN ${keyed('oauth_grants g', 'g.id = t.grant_id')}
JOIN ${keyed('oauth_clients c', 'c.id = g.client_id')} JOIN ${keyed('users u', 'u.id = g.user_id')}
WHERE t.key IN ($1, $2) AND t.model = 'AccessToken'`,
};

/** Records a one-time id, such as that of a DPoP proof. $1: its keys; $2: seconds to keep. Only the first use returns a row. */
export const USE_ONCE = `WITH first AS (
  INSERT INTO oauth_state (key, model, expires_at)
  SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key ORDER BY key
  ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_state.expires_at <= now() RETURNING 1
) SELECT WHERE (SELECT count(*) FROM first) = cardinality($1)`;

/** Finds access tokens with their grant, client and member, and checks DPoP proofs. */
@Injectable()
export class AccessTokens {
  constructor(
    private readonly config: Config,
    private readonly database: Database,
    private readonly keys: TokenKeys,
    private readonly rateLimits: RateLimits,
  ) {}

  async lookUp(credential: Credential, request: Request): Promise<KnownCredential> {
    const { publicUrl } = this.config;
    const refuse = (reason: string) => rejection(publicUrl, credential, request, reason);
    if (!isOpaqueSecret(credential.secret)) throw refuse('not of the kind oauth_token');
    const keys = eitherOf(this.keys.keysOf('AccessToken', credential.secret));
    const [row] = await this.database.read<TokenRow>(FIND_TOKEN, [...keys, `${publicUrl}/api/public`]);
    if (!row) throw refuse('unknown or revoked token');
    request.context.credentialId = row.grant_id;
    const developedApp = row.by_member ? ({ kind: 'client', id: row.client_id } as const) : undefined;
    request.context.developedApp = developedApp;
    if (row.fault !== null) throw refuse(row.fault);
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
        clientScopes: row.client_scopes,
        credentialId: row.grant_id,
        keyId: null,
        clientId: row.client_id,
        expiresAt: row.expires_at,
        accessEndsAt: row.access_ends_at,
        createdAt: row.created_at,
      },
      expiresAtMs: performance.now() + row.seconds_left * 1000,
      allowed: undefined,
      developedApp,
      origins: row.origins.map((uri) => new URL(uri).origin),
      ...(row.jkt === null ? {} : { thumbprint: row.jkt }),
    };
  }

  /** Checks for an unused proof of the key that the token is bound to (RFC 9449 §7.1). @throws Problem invalid_credentials */
  async checkProof(
    credential: Credential,
    caller: Caller,
    thumbprint: string,
    request: Request,
  ): Promise<void> {
    const { publicUrl } = this.config;
    const refuse = (reason: string) =>
      rejection(publicUrl, credential, request, reason, 'invalid_dpop_proof');
    const { path } = request.context;
    const urls = [publicUrl + path, ...(path === ASSISTANTS_PATH ? [`${publicUrl}${path}/`] : [])];
    const id = await idOfProof(request, urls, credential.secret, thumbprint);
    if (id === undefined) throw refuse('no valid proof');
    // A call over its limit is always rejected, so its proof is not stored.
    request.overLimit = this.rateLimits.reached(request.limit!, caller);
    if (request.overLimit) return;
    const keys = this.keys.everyKeyOf('DPoP', `${thumbprint} ${id}`);
    // Stores the id for twice the time, since a proof is valid for PROOF_SECONDS before and after its `iat`.
    const first = await this.database.prepared(USE_ONCE, [keys, 2 * PROOF_SECONDS]);
    if (first.length === 0) throw refuse('a proof that was used before');
  }
}

/** Checks a DPoP proof (RFC 9449 §4.3), except for reuse. @param urls accepted `htu` values @returns its id; undefined if it is invalid */
async function idOfProof(
  { headers: { dpop }, method }: Request,
  urls: readonly string[],
  token: string,
  thumbprint: string,
): Promise<string | undefined> {
  if (typeof dpop !== 'string') return undefined;
  try {
    const { payload, protectedHeader } = await jwtVerify(dpop, EmbeddedJWK, {
      algorithms: SUPPORTED_DPOP_ALGORITHMS,
      typ: 'dpop+jwt',
    });
    const { jti, iat, htm, htu, ath } = payload;
    if (typeof jti !== 'string' || jti === '' || jti.length > 500) return undefined;
    if (typeof iat !== 'number' || Math.abs(Date.now() / 1000 - iat) > PROOF_SECONDS) return undefined;
    const forUrl = typeof htu === 'string' ? URL.parse(htu) : null;
    if (htm !== method || !forUrl || !urls.includes(forUrl.origin + forUrl.pathname)) return undefined;
    if (ath !== sha256(token, 'base64url')) return undefined;
    return (await calculateJwkThumbprint(protectedHeader.jwk!)) === thumbprint ? jti : undefined;
  } catch {
    return undefined;
  }
}
