import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Config } from '../config/config.js';
import { Encryption, type Moved, type SealCounts } from '../crypto/encryption.js';

/** How a secret is stored in the database, encrypted. */
interface Sealed extends Moved {
  readonly secret: string;
}

/** Each of the two columns is encrypted for that column of its row: moved elsewhere, it cannot be decrypted. */
const COLUMNS = { secret: 'webhook-secret', previous_secret: 'webhook-previous-secret' } as const;

/** Secrets of endpoints, encrypted under a key that is derived from SECRET_KEY. */
@Injectable()
export class WebhookSecrets {
  readonly #encryption: Encryption;

  constructor(@Inject(Config) { secrets }: Pick<Config, 'secrets'>) {
    this.#encryption = new Encryption(secrets, 'webhooks');
  }

  seal(endpointId: string, secret: string, column: keyof typeof COLUMNS = 'secret'): Buffer {
    return this.#encryption.seal({ secret } satisfies Sealed, COLUMNS[column], Buffer.from(endpointId));
  }

  /**
   * The secrets of an endpoint that sign, the current one first.
   *
   * @throws Error if it cannot be decrypted: SECRET_KEY was changed without SECRET_KEY_PREVIOUS
   */
  open(endpoint: {
    readonly endpoint_id: string;
    readonly secret: Buffer;
    readonly previous_secret: Buffer | null;
  }): string[] {
    const row = Buffer.from(endpoint.endpoint_id);
    const open = (sealed: Buffer, column: keyof typeof COLUMNS) =>
      this.#encryption.open<Sealed>(sealed, COLUMNS[column], row)?.secret;
    const secret = open(endpoint.secret, 'secret');
    const previous = endpoint.previous_secret && open(endpoint.previous_secret, 'previous_secret');
    if (secret === undefined)
      throw new Error('the secret cannot be decrypted: SECRET_KEY_PREVIOUS is missing');
    return previous ? [secret, previous] : [secret];
  }

  /** Encrypts under SECRET_KEY the secrets that are still under the previous one. */
  async moveToCurrentSecret(dataSource: DataSource): Promise<void> {
    for (const { id, column, sealed } of await sealedSecrets(dataSource)) {
      const moved = this.#encryption.moved<Sealed>(sealed, COLUMNS[column], Buffer.from(id));
      if (moved)
        await dataSource.query(
          `UPDATE webhook_endpoints SET ${column} = $3 WHERE id = $1 AND ${column} = $2`,
          [id, sealed, moved],
        );
    }
  }

  /** Under which SECRET_KEY the secrets of active endpoints are encrypted. */
  async sealState(dataSource: DataSource): Promise<SealCounts> {
    const all = await sealedSecrets(dataSource);
    return this.#encryption.stateOf(
      all.map(({ id, column, sealed }) => [sealed, COLUMNS[column], Buffer.from(id)] as const),
    ).counts;
  }
}

function sealedSecrets(
  dataSource: DataSource,
): Promise<{ id: string; column: keyof typeof COLUMNS; sealed: Buffer }[]> {
  return dataSource.query(
    `SELECT id, 'secret' AS column, secret AS sealed FROM webhook_endpoints WHERE disabled_at IS NULL
UNION ALL SELECT id, 'previous_secret', previous_secret FROM webhook_endpoints WHERE disabled_at IS NULL AND previous_secret_until > now()`,
  );
}
