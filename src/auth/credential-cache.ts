import type { BlockList } from 'node:net';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Caller } from './principal.js';
import { RevocationChannel, type Revocation } from './revocation-channel.js';
import { sha256 } from '../crypto/digests.js';
import type { DevelopedApp } from '../http/pipeline/request-context.js';

/** Enough for all credentials in use; each takes about 1 KB. */
const MOST_ENTRIES = 20_000;

/** Bounds the life of an entry, so even an unannounced change (by a writer with triggers disabled, say) takes effect. */
const LONGEST_MS = 30_000;

/** What the last look-up of a credential found. */
export interface KnownCredential {
  readonly principal: Caller;
  /** By `performance.now()`, computed from the remaining life that the database reported: the local clock decides no expiry. */
  readonly expiresAtMs: number;
  /** Networks that an API key may be used from; undefined for any. */
  readonly allowed: BlockList | undefined;
  /** JWK thumbprint of the key that a DPoP-bound token requires a proof of. */
  readonly thumbprint?: string;
  /** Of the pages of a token's client, which may call the token endpoint. */
  readonly origins?: readonly string[];
  /** The app or key whose developer sees these requests; undefined for the platform's own and an admin's. */
  readonly developedApp: DevelopedApp | undefined;
}

/**
 * Caches valid credentials: a request then needs one round trip for its data and none for its caller (docs/contributors/performance.md). An
 * entry is trusted only while the revocation channel was heard from within the last second, and for half a minute at most; while
 * the channel is cut, every credential is looked up. Keys are digests of kind and credential: no credential is held in memory,
 * and an entry for a token never matches a key.
 */
@Injectable()
export class CredentialCache {
  readonly #entries = new LRUCache<string, KnownCredential>({
    max: MOST_ENTRIES,
    ttl: LONGEST_MS,
    ttlResolution: 0,
    dispose: (known, digest) => this.#unindex(known, digest),
  });
  /** Digests of the entries that a revocation ends, by its `<kind>:<id>`. */
  readonly #endedBy = new Map<string, Set<string>>();

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => this.#forget(revocation));
  }

  /** @returns undefined if it must be looked up */
  find(kind: Caller['kind'], credential: string): KnownCredential | undefined {
    if (!this.channel.trusted) return undefined;
    return this.#entries.get(digestOf(kind, credential));
  }

  /** Looks a credential up, and caches the result unless something was revoked meanwhile. */
  async learn(
    kind: Caller['kind'],
    credential: string,
    lookUp: () => Promise<KnownCredential>,
  ): Promise<KnownCredential> {
    const { epoch } = this.channel;
    const askedAtMs = performance.now();
    const known = await lookUp();
    if (epoch === this.channel.epoch && this.channel.trusted) {
      const digest = digestOf(kind, credential);
      const ttl = Math.min(known.expiresAtMs - askedAtMs, LONGEST_MS);
      this.#entries.set(digest, known, { ttl, start: askedAtMs });
      for (const name of revocationsOf(known)) {
        const digests = this.#endedBy.get(name);
        if (digests) digests.add(digest);
        else this.#endedBy.set(name, new Set([digest]));
      }
    }
    return known;
  }

  #forget(revocation: Revocation): void {
    if (revocation === 'all') {
      this.#endedBy.clear(); // first, so entries need not be removed from it one by one
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
