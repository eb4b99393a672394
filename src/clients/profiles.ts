import type { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';

/** How a client authenticates at the token endpoint (RFC 7591 §2). */
export type AuthMethod = 'none' | 'private_key_jwt' | NonNullable<OauthClient['secret_auth_method']>;

/** Those by which a client sends a secret. */
const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

/** Gives the method if a secret is sent by it, else null. */
export const secretMethodOf = (method: string | undefined) =>
  SECRET_METHODS.find((one) => one === method) ?? null;

/** What follows from a client's profile, everywhere: registration, requests, discovery. */
interface ProfileRules {
  readonly authMethods: readonly AuthMethod[];
  /**
   * A confidential client may be registered so that it can leave PKCE out: `optional` where it sends a nonce (OAuth 2.1 §7.5.1), `off` also
   * without one, as OpenID Connect Core 1.0 lets it.
   */
  readonly pkce: readonly OauthClient['pkce'][];
  /** Authorization requests have to be pushed (RFC 9126 §6). */
  readonly requiresPar: boolean;
  /** Tokens are issued for a DPoP key alone (RFC 9449 §5.2). */
  readonly requiresDpop: boolean;
  /** Each use of a refresh token replaces it; otherwise it stays valid (FAPI 2.0 §5.3.2.1). */
  readonly rotatesRefreshTokens: boolean;
  /** A refresh token works with the DPoP key alone that was proven with the code; otherwise the key of its client binds it (RFC 9449 §5). */
  readonly bindsRefreshTokens: boolean;
  /** Whom an assertion may name as its audience, besides the issuer. */
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
  /** For clients that only know OpenID Connect Core 1.0. */
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

/** What a client may do, by its profile. @param client its row, or the library's metadata made from it */
export const rulesOf = (client: object): ProfileRules =>
  PROFILES[(client as Pick<OauthClient, 'profile'>).profile];

/** All that any profile allows, for discovery. */
export function unionOf<Value>(of: (rules: ProfileRules) => readonly Value[]): Value[] {
  return [...new Set(PROFILE_NAMES.flatMap((profile) => of(PROFILES[profile])))];
}

/** The keys of a client, or that it has a secret, say how it authenticates. */
export function authMethodOf(client: Pick<OauthClient, 'jwks' | 'secret_auth_method'>): AuthMethod {
  return client.secret_auth_method ?? (client.jwks === null ? 'none' : 'private_key_jwt');
}

/** The profile of a client that a document describes: by what it says of itself (RFC 9126 §6, RFC 9449 §5.2). */
export function profileOfDocument(metadata: Readonly<Record<string, unknown>>): 'oauth21' | 'fapi2' {
  const { require_pushed_authorization_requests: pushed, dpop_bound_access_tokens: bound } = metadata;
  return pushed === true && bound === true ? 'fapi2' : 'oauth21';
}
