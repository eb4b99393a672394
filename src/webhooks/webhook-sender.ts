import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Config } from '../config/config.js';
import { Encryption, type Moved, type EncryptionCounts } from '../crypto/encryption.js';
import { signWebhook } from '../crypto/webhook-signatures.js';
import type { WebhookDelivery, WebhookEndpoint } from '../database/schema/entities/changes/webhook.entity.js';
import { attempt, type Attempt } from '../runtime/outbox.js';
import { PublicHttps } from '../runtime/public-https.js';

/** The type of test messages, from `pua webhooks test` or a developer's page. */
export const TEST_TYPE = 'webhook.test';

export interface Message
  extends
    Pick<
      WebhookDelivery,
      'sequence' | 'endpoint_id' | 'type' | 'user_id' | 'thing_id' | 'changed_at' | 'details' | 'attempts'
    >,
    Pick<WebhookEndpoint, 'url' | 'secret' | 'previous_secret'> {
  /** The message's id: 32 hexadecimal digits. */
  readonly id: string;
  /** End of the claim, in the database's format: a failure or release is recorded only while it is unchanged. */
  readonly lease: string;
  readonly failing: boolean;
}

interface Sealed extends Moved {
  readonly secret: string;
}

/** Binds each encrypted secret to its column, so that a copy in the other column cannot be decrypted. */
const COLUMNS = { secret: 'webhook-secret', previous_secret: 'webhook-previous-secret' } as const;

@Injectable()
export class WebhookSecrets {
  readonly #encryption: Encryption;

  constructor(@Inject(Config) { secrets }: Pick<Config, 'secrets'>) {
    this.#encryption = new Encryption(secrets, 'webhooks');
  }

  seal(endpointId: string, secret: string, column: keyof typeof COLUMNS = 'secret'): Buffer {
    return this.#encryption.seal({ secret } satisfies Sealed, COLUMNS[column], Buffer.from(endpointId));
  }

  /** Decrypts the valid signing secrets, the current secret first. @throws Error if the current secret cannot be decrypted */
  open(endpoint: Pick<Message, 'endpoint_id' | 'secret' | 'previous_secret'>): string[] {
    const row = Buffer.from(endpoint.endpoint_id);
    const open = (sealed: Buffer, column: keyof typeof COLUMNS) =>
      this.#encryption.open<Sealed>(sealed, COLUMNS[column], row)?.secret;
    const secret = open(endpoint.secret, 'secret');
    const previous = endpoint.previous_secret && open(endpoint.previous_secret, 'previous_secret');
    if (secret === undefined)
      throw new Error('the secret cannot be decrypted: set SECRET_KEY_PREVIOUS to the other SECRET_KEY');
    return previous ? [secret, previous] : [secret];
  }

  /** Re-encrypts with SECRET_KEY the secrets of active endpoints that are encrypted with SECRET_KEY_PREVIOUS. */
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

  async sealState(dataSource: DataSource): Promise<EncryptionCounts> {
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

/** Sends messages in the format of Standard Webhooks, with a signature by each valid secret. */
@Injectable()
export class WebhookSender {
  constructor(
    private readonly config: Config,
    private readonly https: PublicHttps,
    private readonly secrets: WebhookSecrets,
  ) {}

  send(message: Message, stop?: AbortSignal): Promise<Attempt> {
    return attempt((signal) => {
      const body = writeBody(message);
      const headers = this.#headersFor(message, body);
      const url = new URL(message.url);
      return this.https.post({ url, headers, body, signal, loopback: !this.config.production });
    }, stop);
  }

  #headersFor(message: Message, body: string): Record<string, string> {
    const id = `msg_${message.id}`;
    const timestamp = Math.floor(Date.now() / 1000);
    const signatures = this.secrets.open(message).map((secret) => signWebhook(secret, id, timestamp, body));
    return {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatures.join(' '),
    };
  }
}

/** Writes the body, which identifies the changed item or describes the access; it never contains the item. */
function writeBody({ type, changed_at, user_id, thing_id, details }: Message): string {
  const timestamp = changed_at.toISOString();
  if (type === TEST_TYPE) return JSON.stringify({ type, timestamp, data: {} });
  if (details) {
    const { scopes, access_ends_at, reason } = details;
    return JSON.stringify({
      type,
      timestamp,
      data: { member_id: user_id, scopes, access_ends_at, reason },
    });
  }
  const [resource, kind] = type.split('.');
  const data = { member_id: user_id === 0 ? null : user_id, resource, id: thing_id, kind };
  return JSON.stringify({ type, timestamp, data });
}
