import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { WEBHOOK_SECRET_PREFIX } from '../values/secret-forms.js';

/** Length of a secret; Standard Webhooks requires 24 to 64 bytes. */
const SECRET_BYTES = 32;

/** Generates a webhook secret (Standard Webhooks): `whsec_` and base64 of 32 random bytes. */
export function makeWebhookSecret(): string {
  return WEBHOOK_SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** Returns `v1,` and the HMAC-SHA-256 of `<id>.<timestamp>.<body>` in base64 (Standard Webhooks). @param timestamp seconds since 1970 */
export function signWebhook(secret: string, id: string, timestamp: number, body: string): string {
  const key = createSecretKey(secret.slice(WEBHOOK_SECRET_PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}
