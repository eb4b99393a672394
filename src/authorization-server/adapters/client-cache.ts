import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { AdapterPayload } from 'oidc-provider';
import { RevocationChannel } from '../../auth/revocation-channel.js';

const MOST_CLIENTS = 1_000;
/** Manual changes in the database are not announced: they take effect within this time. */
const REMEMBERED_MS = 900;

/**
 * Clients that were looked up less than a second ago, used only while the revocation channel is trusted. A disabled client is
 * forgotten when the channel announces it; the statements that read codes and tokens refuse it at once.
 *
 * Saves one of three round trips of a token request (docs/performance.md).
 */
@Injectable()
export class ClientCache {
  readonly #known = new LRUCache<string, AdapterPayload>({ max: MOST_CLIENTS, ttl: REMEMBERED_MS });
  /** Counts revocations: a result looked up before one must not be cached after it. */
  #epoch = 0;

  constructor(private readonly channel: RevocationChannel) {
    channel.onRevocation((revocation) => {
      this.#epoch++;
      if (revocation === 'all') this.#known.clear();
      else if (revocation.kind === 'client') this.#known.delete(revocation.id);
    });
  }

  /** Called when this process has changed the client; other processes see the change within a second. */
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
