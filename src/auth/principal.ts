import type { Request } from 'express';
import { Problem } from '../http/output/problems.js';
import type { PlatformScope, Scope } from './scopes.js';

export interface Credential {
  readonly kind: Caller['kind'];
  /** `DPoP` requires a proof (RFC 9449 §7.1). */
  readonly scheme: 'X-API-Key' | 'Bearer' | 'DPoP';
  readonly secret: string;
}

/** Reads the credential from the headers. @returns undefined if there is none @throws Problem ambiguous_credentials if there are several */
export function credentialOf(request: Request): Credential | undefined {
  const { rawHeaders } = request; // `headers` hides a second Authorization header
  let key: string | undefined;
  let authorization: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const length = rawHeaders[i]!.length;
    if (length !== 9 && length !== 13) continue;
    const name = rawHeaders[i]!.toLowerCase();
    if (name !== 'x-api-key' && name !== 'authorization') continue;
    if (key !== undefined || authorization !== undefined) throw new Problem('ambiguous_credentials');
    if (name === 'x-api-key') key = rawHeaders[i + 1]!;
    else authorization = rawHeaders[i + 1]!;
  }
  if (key) return { kind: 'api_key', scheme: 'X-API-Key', secret: key };
  if (!authorization) return undefined;
  const match = /^(Bearer|DPoP) +(\S.*)$/i.exec(authorization);
  if (!match) return undefined; // other schemes, such as Basic, are ignored
  const scheme = match[1]!.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer';
  return { kind: 'oauth_token', scheme, secret: match[2]! };
}

interface Known {
  readonly kind: 'api_key' | 'oauth_token';
  /** Scopes in the format of X-OAuth-Scopes. */
  readonly scopesText: string;
  /** Public id for logs and rate limits. */
  readonly credentialId: string;
  readonly keyId: string | null;
  readonly clientId: string | null;
  /** Expiry in the API's format; null for never. */
  readonly expiresAt: string | null;
  /** End of the access that the member gave, in the API's format; for a key, its expiry; null for no end. */
  readonly accessEndsAt: string | null;
  readonly createdAt: string;
}

/** A member as the caller: the request acts only for this member, within the scopes. */
export interface Principal extends Known {
  readonly userId: number;
  readonly scopes: readonly Scope[];
  /** Scopes that the app may request; undefined for keys. */
  readonly clientScopes?: readonly string[];
}

/** The platform as the caller, with a key that belongs to no member. */
export interface PlatformPrincipal extends Known {
  readonly kind: 'api_key';
  readonly userId: null;
  readonly scopes: readonly PlatformScope[];
  readonly keyId: string;
}

export type Caller = Principal | PlatformPrincipal;

declare module 'express-serve-static-core' {
  interface Request {
    principal?: Caller;
    /** The scope of the called route, which the credential must still have after a wait. Null for none. */
    scope?: string | null;
    /** The limit that counts the request if a member is the caller. */
    limit?: 'read' | 'write';
    /** The response if the caller's limit is used up. */
    overLimit?: Problem | undefined;
    /** The response if a valid credential comes from a network or page that may not use it. */
    misuse?: Problem | undefined;
  }
}
