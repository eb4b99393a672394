import { LRUCache } from 'lru-cache';
import type { SecretHashes } from '../crypto/secret-hashes.js';
import type { Database } from '../database/database.js';
import type { Logger } from '../runtime/logger.js';

/** Minimum interval in ms between renewals of a secret: during a change of SECRET_KEY, instances undo each other's renewals. */
const RENEWED_MS = 30_000;

/** Rehashes secrets under the current pepper after their use; no request waits for the update. */
export class HashRenewal {
  readonly #renewed = new LRUCache<string | number, true>({ max: 10_000, ttl: RENEWED_MS });

  constructor(
    private readonly hashes: SecretHashes,
    private readonly database: Database,
    private readonly logger: Logger,
  ) {}

  renew(
    row: { readonly id: string | number; readonly hash: Buffer; readonly pepper_id: Buffer },
    secret: string,
  ) {
    if (this.hashes.isCurrent(row.pepper_id) || this.#renewed.has(row.id)) return;
    this.#renewed.set(row.id, true);
    const { table } = this.hashes;
    const { hash, pepper_id } = this.hashes.store(secret);
    this.database
      .rows(`UPDATE ${table} SET hash = $3, pepper_id = $4 WHERE id = $1 AND hash = $2`, [
        row.id,
        row.hash,
        hash,
        pepper_id,
      ])
      .catch((err: unknown) => this.logger.warn({ err, table }, 'a secret could not be rehashed'));
  }
}
