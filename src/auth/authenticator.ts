import type { Request } from 'express';
import type { KnownCredential } from './credential-cache.js';
import type { Credential } from './credentials.js';

/** What there is to know of one kind of credential; {@link Authentication} decides what it is good for. */
export interface Authenticator {
  /** Whether a credential of this kind looks like that: what was never issued costs no look-up. */
  couldBe(secret: string): boolean;

  /** @throws Problem invalid_credentials where it is unknown or has ended; or what the database throws */
  lookUp(credential: Credential, request: Request): Promise<KnownCredential>;
}
