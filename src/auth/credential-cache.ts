import type { BlockList } from 'node:net';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Caller } from './principal.js';
import { RevocationChannel } from './revocation-channel.js';
import type { Revocation } from './revocation-channel.js';
import { sha256 } from '../crypto/digests.js';
import type { DevelopedApp } from '../http/pipeline/request-context.js';

/** Enough for every credential that is in use; each takes about 1 KB. */
const MOST_ENTRIES = 20_000;

/** Bounds how long an entry lives, so that even a change that nobody announces (by a writer with triggers disabled, say) takes effect. */
const LONGEST_MS = 30_000;

/** What was learned of a credential when it was last looked up. */
export interface KnownCredential {
  readonly principal: Caller;
  /** By `performance.now()`, computed from the remaining life that the database reported: our clock does not decide on expiry. */
  readonly expiresAtMs: number;
  /** Networks that an API key may be used from; undefined for any. */
  readonly allowed: BlockList | undefined;
  /** JWK thumbprint of the key that a DPoP-bound token requires a proof of. */
  readonly thumbprint?: string;
  /** Whose requests a member sees who developed it; undefined for the platform's own and those of an admin. */
  readonly developedApp: DevelopedApp | undefined;
}

interface Entry {
  readonly known: KnownCredential;
  /** By `performance.now()`: when the credential expires or has to be looked up again. */
  readonly usableUntilMs: number;
}

/**
 * Remembers valid credentials, so that a request needs one round trip for its data and none for who asks. An entry is
 * trusted only while the revocation channel was heard from within the last second, and for half a minute at most; with
 * the channel cut every credential is looked up. Keys are digests of kind and credential: the memory holds no credential,
 * and an entry for a token never answers for a key.
 *
 * It saves one round trip per request (docs/performance.md).
 */
@Injectable()
export class CredentialCache {
  readonly #entries = new LRUCache<string, Entry>({
    max: MOST_ENTRIES,
    dispose: ({ known }, digest) => this.#unindex(known, digest),
  });
  /** Which entries a revocation ends, by `<kind>:<id>` of the revocation. */
  readonly #endedBy = new Map<string, Set<string>>();
  /** Counts revocations: a look-up that began before one must not be stored after it. */
  #epoch = 0;

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => this.revoke(revocation));
  }

  /** @returns undefined where it must be looked up */
  find(kind: Caller['kind'], credential: string): KnownCredential | undefined {
    if (!this.channel.trusted) return undefined;
    const entry = this.#entries.get(digestOf(kind, credential));
    return entry !== undefined && performance.now() < entry.usableUntilMs ? entry.known : undefined;
  }

  /** Looks a credential up, and remembers the answer unless something was revoked meanwhile. */
  async learn(
    kind: Caller['kind'],
    credential: string,
    lookUp: () => Promise<KnownCredential>,
  ): Promise<KnownCredential> {
    const epoch = this.#epoch;
    const askedAtMs = performance.now();
    const known = await lookUp();
    if (epoch === this.#epoch && this.channel.trusted) {
      const digest = digestOf(kind, credential);
      const usableUntilMs = Math.min(known.expiresAtMs, askedAtMs + LONGEST_MS);
      this.#entries.set(digest, { known, usableUntilMs });
      for (const name of revocationsOf(known)) {
        const digests = this.#endedBy.get(name);
        if (digests) digests.add(digest);
        else this.#endedBy.set(name, new Set([digest]));
      }
    }
    return known;
  }

  /** Removes the entries at once, in this process; the database's notice tells the others. */
  revoke(revocation: Revocation): void {
    this.#epoch++;
    if (revocation === 'all') {
      this.#endedBy.clear(); // first, so that no entry has to be removed from it one by one
      this.#entries.clear();
      return;
    }
    const digests = this.#endedBy.get(`${revocation.kind}:${revocation.id}`);
    for (const digest of digests ?? []) this.#entries.delete(digest);
  }

  #unindex(known: KnownCredential, digest: string): void {
    for (const name of revocationsOf(known)) {
      const digests = this.#endedBy.get(name);
      digests?.delete(digest);
      if (digests?.size === 0) this.#endedBy.delete(name);
    }
  }
}

function digestOf(kind: Caller['kind'], credential: string): string {
  return sha256(`${kind}:${credential}`, 'base64');
}

/** The revocations that end a credential, as `<kind>:<id>`. */
function revocationsOf({ principal }: KnownCredential): string[] {
  const { kind, userId, credentialId, clientId } = principal;
  const names = [`${kind === 'api_key' ? 'key' : 'grant'}:${credentialId}`];
  if (userId !== null) names.push(`user:${userId}`);
  if (clientId !== null) names.push(`client:${clientId}`);
  return names;
}
