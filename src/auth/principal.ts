import type { Problem } from '../http/output/problems.js';
import type { PlatformScope, Scope } from './scopes.js';

/** What is known about any caller. */
interface Known {
  readonly kind: 'api_key' | 'oauth_token';
  /** Scopes as X-OAuth-Scopes shows them. */
  readonly scopesText: string;
  /** Public id of the credential, for logs and rate limits: never the credential. */
  readonly credentialId: string;
  readonly keyId: string | null;
  readonly clientId: string | null;
  /** In the API's form, or null for never. */
  readonly expiresAt: string | null;
  readonly createdAt: string;
}

/** A member as the caller: the request may touch only their data, within the scopes. */
export interface Principal extends Known {
  readonly userId: number;
  readonly scopes: readonly Scope[];
}

/** The platform itself, by a key that belongs to no member. */
export interface PlatformPrincipal extends Known {
  readonly kind: 'api_key';
  readonly userId: null;
  readonly scopes: readonly PlatformScope[];
  readonly keyId: string;
}

/** The caller that a credential identifies. */
export type Caller = Principal | PlatformPrincipal;

declare module 'express-serve-static-core' {
  interface Request {
    principal?: Caller;
    /** The problem to respond with if the caller's limit is used up. */
    overLimit?: Problem | undefined;
  }
}
