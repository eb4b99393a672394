import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { AdapterPayload } from 'oidc-provider';
import { RevocationChannel } from '../../auth/revocation-channel.js';

const MOST_CLIENTS = 1_000;
/** What an admin changes by hand in the database is not announced: it is seen by then. */
const REMEMBERED_MS = 900;

/**
 * Clients that were looked up less than a second ago, trusted only while the revocation channel is heard. One that is
 * disabled is forgotten when the channel tells; the statements that read codes and tokens refuse it at once.
 *
 * Gain: one of three round trips of a token request (docs/performance.md).
 */
@Injectable()
export class ClientCache {
  readonly #known = new LRUCache<string, AdapterPayload>({ max: MOST_CLIENTS, ttl: REMEMBERED_MS });
  /** Counts revocations: what was looked up before one must not be stored after it. */
  #epoch = 0;

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => {
      this.#epoch++;
      if (revocation === 'all') this.#known.clear();
      else if (revocation.kind === 'client') this.#known.delete(revocation.id);
    });
  }

  /** What is remembered of it was changed by this process; the others see it within a second. */
  forget(id: string): void {
    this.#epoch++;
    this.#known.delete(id);
  }

  async find(
    id: string,
    lookUp: () => Promise<AdapterPayload | undefined>,
  ): Promise<AdapterPayload | undefined> {
    const known = this.channel.trusted ? this.#known.get(id) : undefined;
    if (known) return known;
    const epoch = this.#epoch;
    const found = await lookUp();
    if (found && epoch === this.#epoch && this.channel.trusted) this.#known.set(id, found);
    return found;
  }
}
