import type { Request } from 'express';
import type { KnownCredential } from './credential-cache.js';
import type { Credential } from './credentials.js';

/** Looks up one kind of credential; {@link Authentication} decides what it permits. */
export interface Authenticator {
  /** Whether the text has the form of this kind of credential; if not, it was never issued and needs no look-up. */
  couldBe(secret: string): boolean;

  /** @throws Problem invalid_credentials where it is unknown or has ended; or what the database throws */
  lookUp(credential: Credential, request: Request): Promise<KnownCredential>;
}
