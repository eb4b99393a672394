import type { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';

/** A client's authentication method at the token endpoint (RFC 7591 §2). */
export type AuthMethod = 'none' | 'private_key_jwt' | NonNullable<OauthClient['secret_auth_method']>;

const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

/** Returns the method if it sends a secret, else null. */
export const secretMethodOf = (method: string | undefined) =>
  SECRET_METHODS.find((one) => one === method) ?? null;

interface ProfileRules {
  readonly authMethods: readonly AuthMethod[];
  /** For confidential clients, `optional` accepts a nonce instead of PKCE (OAuth 2.1 §7.5.1), and `off` requires neither. */
  readonly pkce: readonly OauthClient['pkce'][];
  /** Whether clients must push authorization requests (RFC 9126 §6). */
  readonly requiresPar: boolean;
  /** Whether tokens require a DPoP key (RFC 9449 §5.2). */
  readonly requiresDpop: boolean;
  /** Whether each use replaces a refresh token; otherwise the token stays valid (FAPI 2.0 §5.3.2.1). */
  readonly rotatesRefreshTokens: boolean;
  /** Whether refresh tokens are bound to the DPoP key, if any; otherwise, client authentication binds them (RFC 9449 §5). */
  readonly bindsRefreshTokens: boolean;
  /** Whether an assertion's audience may also be the token endpoint, not only the issuer. */
  readonly acceptsTokenEndpointAudience: boolean;
  readonly assertionAlgorithms: readonly string[];
  readonly idTokenAlgorithms: readonly OauthClient['id_token_signed_response_alg'][];
  readonly responseModes: readonly ('query' | 'form_post')[];
}

const OAUTH21: ProfileRules = {
  authMethods: ['none', 'private_key_jwt'],
  pkce: ['required'],
  requiresPar: false,
  requiresDpop: false,
  rotatesRefreshTokens: true,
  bindsRefreshTokens: true,
  acceptsTokenEndpointAudience: true,
  assertionAlgorithms: ['ES256', 'RS256', 'PS256', 'Ed25519', 'EdDSA'],
  idTokenAlgorithms: ['ES256', 'RS256'],
  responseModes: ['query'],
};

export const PROFILES = {
  oauth21: OAUTH21,
  /** For clients that only support OpenID Connect Core 1.0. */
  oidc: {
    ...OAUTH21,
    authMethods: [...OAUTH21.authMethods, ...SECRET_METHODS],
    pkce: ['required', 'optional', 'off'],
    responseModes: ['query', 'form_post'],
  },
  /** FAPI 2.0 Security Profile, §5.3.2 and §5.4. */
  fapi2: {
    ...OAUTH21,
    authMethods: ['private_key_jwt'],
    requiresPar: true,
    requiresDpop: true,
    rotatesRefreshTokens: false,
    bindsRefreshTokens: false,
    acceptsTokenEndpointAudience: false,
    assertionAlgorithms: ['ES256', 'PS256', 'Ed25519', 'EdDSA'],
    idTokenAlgorithms: ['ES256'],
  },
} as const satisfies Readonly<Record<OauthClient['profile'], ProfileRules>>;

export const PROFILE_NAMES = Object.keys(PROFILES) as OauthClient['profile'][];

/** Returns the rules of a client's profile. @param client a row, or the library's metadata, with `profile` */
export const rulesOf = (client: object): ProfileRules =>
  PROFILES[(client as Pick<OauthClient, 'profile'>).profile];

/** Lists the values that at least one profile allows. */
export function unionOf<Value>(of: (rules: ProfileRules) => readonly Value[]): Value[] {
  return [...new Set(PROFILE_NAMES.flatMap((profile) => of(PROFILES[profile])))];
}

/** Returns a client's authentication method at the token endpoint. */
export function authMethodOf(client: Pick<OauthClient, 'jwks' | 'secret_auth_method'>): AuthMethod {
  return client.secret_auth_method ?? (client.jwks === null ? 'none' : 'private_key_jwt');
}

/** Chooses a profile by the metadata in a client's document (RFC 9126 §6, RFC 9449 §5.2). */
export function profileOfDocument(metadata: Readonly<Record<string, unknown>>): 'oauth21' | 'fapi2' {
  const { require_pushed_authorization_requests: pushed, dpop_bound_access_tokens: bound } = metadata;
  return pushed === true && bound === true ? 'fapi2' : 'oauth21';
}
