import type { DataSource } from 'typeorm';
import type { Config } from '../../config/config.js';
import { ApiKey, ApiKeyUsage } from '../../database/entities/api-key.entity.js';
import { AuthEvent } from '../../database/entities/auth-event.entity.js';
import { hashKey, makeKey, peppersOf } from './api-key-format.js';
import type { KeyEnvironment, Pepper } from './api-key-format.js';

export interface NewKey {
  readonly userId: number;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly environment: KeyEnvironment;
  readonly cidrs: readonly string[];
  /** From now, by the database's clock; or why it never ends. */
  readonly expiresInSeconds?: number;
  readonly noExpiryReason?: string;
  readonly actor: AuthEvent['actor'];
}

/** What is known of a key; never the key. */
export type KeyDetails = Omit<ApiKey, 'hash' | 'pepper_id' | 'user' | 'replacement'> &
  Pick<ApiKeyUsage, 'last_used_at' | 'uses_count' | 'exposed_at' | 'exposed_origin'>;

/** Issues, lists, rotates and revokes API keys; used by the command line. */
export class ApiKeysService {
  readonly #pepper: Pepper;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    this.#pepper = peppersOf(config.secrets)[0]!;
  }

  /** @returns the key itself, which is shown once and stored nowhere */
  async create(wanted: NewKey): Promise<{ key: string; id: string }> {
    return this.dataSource.transaction(async (manager) => {
      const { key, id } = makeKey(wanted.environment);
      await manager.query(
        `INSERT INTO api_keys (id, user_id, name, environment, scopes, hash, pepper_id, last_four, allowed_cidrs, expires_at, no_expiry_reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10), $11)`,
        [
          id,
          wanted.userId,
          wanted.name,
          wanted.environment,
          wanted.scopes,
          hashKey(key, this.#pepper),
          this.#pepper.id,
          key.slice(-4),
          wanted.cidrs,
          wanted.expiresInSeconds ?? null,
          wanted.noExpiryReason ?? null,
        ],
      );
      await manager.insert(AuthEvent, {
        type: 'key.created',
        actor: wanted.actor,
        user_id: wanted.userId,
        key_id: id,
        details: { name: wanted.name, scopes: wanted.scopes },
      });
      return { key, id };
    });
  }
}
