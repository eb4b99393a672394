import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.js';
import { PublicHttps } from '../http/public-https.js';
import { signWebhook } from '../crypto/webhook-signatures.js';
import { TEST_TYPE } from './webhook-types.js';
import { WebhookSecrets } from './webhook-secrets.js';

/** A message has so long to be taken: look-up of the name, connection, answer. */
const PATIENCE_MS = 10_000;
const LONGEST_ERROR = 200;

/** A message that this process alone sends for a while. */
export interface Message {
  readonly sequence: number;
  /** 32 hexadecimal digits. */
  readonly id: string;
  readonly endpoint_id: string;
  readonly type: string;
  /** 0: it is about nobody alone. */
  readonly user_id: number;
  readonly thing_id: number;
  readonly changed_at: Date;
  /** That ended before this one. */
  readonly attempts: number;
  /** Until when, as the database writes it: who writes how the attempt went names it. */
  readonly lease: string;
  readonly url: string;
  /** Encrypted. */
  readonly secret: Buffer;
  readonly previous_secret: Buffer | null;
  /** Whether the endpoint has taken nothing of late. */
  readonly failing: boolean;
}

/** How one attempt went. */
export interface Attempt {
  /** 2xx. */
  readonly taken: boolean;
  /** null where there was no answer. */
  readonly status: number | null;
  /** Why there was none. */
  readonly error: string | null;
  readonly seconds: number;
}

/** Gives the name by which receivers know a message. */
export const nameOf = ({ id }: Pick<Message, 'id'>): string => `msg_${id}`;

/** Sends messages as Standard Webhooks has them: signed, with every secret that counts. */
@Injectable()
export class WebhookSender {
  readonly #secrets: WebhookSecrets;

  constructor(
    private readonly config: Config,
    private readonly https: PublicHttps,
  ) {
    this.#secrets = new WebhookSecrets(config);
  }

  /**
   * Tries once. A redirect is not followed, and is a failure like every answer but 2xx.
   *
   * @param stop ends it
   */
  async send(message: Message, stop?: AbortSignal): Promise<Attempt> {
    const startedAt = performance.now();
    const end = AbortSignal.timeout(PATIENCE_MS);
    const seconds = () => (performance.now() - startedAt) / 1000;
    try {
      const body = bodyOf(message);
      const status = await this.https.post({
        url: new URL(message.url),
        headers: this.#headersFor(message, body),
        body,
        signal: stop ? AbortSignal.any([end, stop]) : end,
        loopback: !this.config.production,
      });
      return { taken: status >= 200 && status < 300, status, error: null, seconds: seconds() };
    } catch (error) {
      const reason = end.aborted ? `no answer within ${PATIENCE_MS / 1000} s` : reasonOf(error as Error);
      return { taken: false, status: null, error: reason.slice(0, LONGEST_ERROR), seconds: seconds() };
    }
  }

  #headersFor(message: Message, body: string): Record<string, string> {
    const timestamp = Math.floor(Date.now() / 1000);
    const signatures = this.#secrets
      .open(message)
      .map((secret) => signWebhook(secret, nameOf(message), timestamp, body));
    return {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'User-Agent': 'public-user-api',
      'webhook-id': nameOf(message),
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatures.join(' '),
    };
  }
}

/** Writes what is told: that a thing is to be looked at, and nothing of what it holds. */
export function bodyOf({ type, changed_at, user_id, thing_id }: Message): string {
  const timestamp = changed_at.toISOString();
  if (type === TEST_TYPE) return JSON.stringify({ type, timestamp, data: {} });
  const [resource, kind] = type.split('.');
  const data = { member_id: user_id === 0 ? null : user_id, resource, id: thing_id, kind };
  return JSON.stringify({ type, timestamp, data });
}

/** What the operator is told: no more than where it failed. */
function reasonOf(error: NodeJS.ErrnoException): string {
  return error.code === undefined ? error.message : `${error.code}: ${error.message}`;
}
