import { createHmac, createSecretKey, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** Standard Webhooks asks for 24 to 64. */
const SECRET_BYTES = 32;

/** Makes the secret of a webhook as Standard Webhooks writes it: `whsec_` and base64 of 32 random bytes. */
export function makeWebhookSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/**
 * Signs a message: `v1,` and HMAC-SHA-256 of `<id>.<timestamp>.<body>` in base64 (Standard Webhooks, symmetric signatures).
 *
 * @param secret as {@link makeWebhookSecret} makes it
 * @param timestamp of this attempt, in seconds since 1970
 */
export function signWebhook(secret: string, id: string, timestamp: number, body: string): string {
  const key = createSecretKey(secret.slice(PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}
