import type { BlockList } from 'node:net';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Caller } from './principal.js';
import { RevocationChannel, type Revocation } from './revocation-channel.js';
import { sha256 } from '../crypto/digests.js';
import type { DevelopedApp } from '../http/pipeline/request-context.js';

/** Maximum entries, each of about 1 KB. */
const MAX_ENTRIES = 20_000;

/** Maximum age in ms, so that changes without a notice (by a writer with disabled triggers) also take effect. */
const MAX_MS = 30_000;

export interface KnownCredential {
  readonly principal: Caller;
  /** Expiry by `performance.now()`, from the remaining lifetime that the database reported, so a wrong wall clock has no effect. */
  readonly expiresAtMs: number;
  /** Networks from which the API key works; undefined for all. */
  readonly allowed: BlockList | undefined;
  /** JWK thumbprint of the key that must sign the DPoP proof. */
  readonly thumbprint?: string;
  /** Origins of the client's pages, from which assistants' requests may come. */
  readonly origins?: readonly string[];
  /** The app or key whose developer sees these requests; undefined unless a member made the app or key. */
  readonly developedApp: DevelopedApp | undefined;
}

/**
 * Caches valid credentials, which saves a database round trip per request (docs/contributors/performance.md). Uses entries only if
 * the revocation channel responded within the last second. Cache keys are digests, so the cache holds no credentials.
 */
@Injectable()
export class CredentialCache {
  readonly #entries = new LRUCache<string, KnownCredential>({
    max: MAX_ENTRIES,
    ttl: MAX_MS,
    ttlResolution: 0,
    dispose: (known, digest) => this.#unindex(known, digest),
  });
  /** Digests of the entries that a revocation ends, by its `<kind>:<id>`. */
  readonly #endedBy = new Map<string, Set<string>>();

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => this.#forget(revocation));
  }

  /** @returns undefined if the database must be queried */
  find(kind: Caller['kind'], credential: string): KnownCredential | undefined {
    if (!this.channel.trusted) return undefined;
    return this.#entries.get(hash(kind, credential));
  }

  /** Queries a credential. Caches the result, unless a revocation arrived meanwhile or the channel is not trusted. */
  async learn(
    kind: Caller['kind'],
    credential: string,
    lookUp: () => Promise<KnownCredential>,
  ): Promise<KnownCredential> {
    const { epoch } = this.channel;
    const askedAtMs = performance.now();
    const known = await lookUp();
    if (epoch === this.channel.epoch && this.channel.trusted) {
      const digest = hash(kind, credential);
      const ttl = Math.min(known.expiresAtMs - askedAtMs, MAX_MS);
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
      this.#endedBy.clear(); // cleared first, so that #entries need not remove each digest from #endedBy
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

function hash(kind: Caller['kind'], credential: string): string {
  return sha256(`${kind}:${credential}`, 'base64');
}

function revocationsOf({ principal }: KnownCredential): string[] {
  const { kind, userId, credentialId, clientId } = principal;
  const names = [`${kind === 'api_key' ? 'key' : 'grant'}:${credentialId}`];
  if (userId !== null) names.push(`user:${userId}`);
  if (clientId !== null) names.push(`client:${clientId}`);
  return names;
}
