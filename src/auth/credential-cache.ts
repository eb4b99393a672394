import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Principal } from './principal.js';
import { RevocationChannel } from './revocation-channel.js';
import type { Revocation } from './revocation-channel.js';

/** Enough for every credential that is in use; each takes about 1 KB. */
const MOST_ENTRIES = 20_000;

/** What was learned of a credential when it was last looked up. */
export interface KnownCredential {
  readonly principal: Principal;
  /** By `performance.now()`, from what the database said was left: no clock of ours decides on expiry. */
  readonly expiresAtMs: number;
  /** Networks that an API key may be used from; empty for any. */
  readonly allowedCidrs: readonly string[];
  /** Of the key that a DPoP-bound token demands a proof of. */
  readonly thumbprint?: string;
}

/**
 * Remembers valid credentials, so that a request needs one round trip for its data and none for who asks. An entry is
 * trusted only while the revocation channel was heard from within the last second; with the channel cut every
 * credential is looked up. Keys are digests: the memory holds no credential.
 *
 * Gain: one round trip less for each request (docs/performance.md).
 */
@Injectable()
export class CredentialCache {
  readonly #known = new LRUCache<string, KnownCredential>({ max: MOST_ENTRIES });
  /** Counts revocations: what was looked up before one must not be stored after it. */
  #epoch = 0;

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => this.revoke(revocation));
  }

  /** @returns undefined where it must be looked up */
  find(credential: string): KnownCredential | undefined {
    if (!this.channel.trusted) return undefined;
    const known = this.#known.get(hash('sha256', credential, 'base64'));
    return known !== undefined && performance.now() < known.expiresAtMs ? known : undefined;
  }

  /** Looks a credential up, and remembers the answer unless something was revoked meanwhile. */
  async learn(credential: string, lookUp: () => Promise<KnownCredential>): Promise<KnownCredential> {
    const epoch = this.#epoch;
    const known = await lookUp();
    if (epoch === this.#epoch && this.channel.trusted)
      this.#known.set(hash('sha256', credential, 'base64'), known);
    return known;
  }

  /** Forgets at once, in this process; the database's notice tells the others. */
  revoke(revocation: Revocation): void {
    this.#epoch++;
    if (revocation === 'all') {
      this.#known.clear();
      return;
    }
    const { kind, id } = revocation;
    for (const [digest, { principal }] of this.#known.entries()) {
      const ended =
        kind === 'user'
          ? String(principal.userId) === id
          : kind === 'client'
            ? principal.clientId === id
            : principal.credentialId === id;
      if (ended) this.#known.delete(digest);
    }
  }
}
