import type { Problem } from '../http/output/problems.js';
import type { Scope } from './scopes.js';

/** Who calls: the one member whose data the request may touch, and what it may do. */
export interface Principal {
  readonly kind: 'api_key' | 'oauth_token';
  readonly userId: number;
  readonly scopes: readonly Scope[];
  /** {@link Principal.scopes} as X-OAuth-Scopes shows them. */
  readonly scopesText: string;
  /** Public id of the credential, for logs and rate limits: never the credential. */
  readonly credentialId: string;
  readonly keyId: string | null;
  readonly clientId: string | null;
  /** In the API's form, or null for never. */
  readonly expiresAt: string | null;
  readonly createdAt: string;
}

declare module 'express-serve-static-core' {
  interface Request {
    principal?: Principal;
    /** What to answer where the caller's limit is used up. */
    overLimit?: Problem | undefined;
  }
}
