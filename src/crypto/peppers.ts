import { Hmac } from './hmac.js';
import type { Secrets } from './secrets.js';

/** Makes what hashes API keys. A key has 256 random bits, so one HMAC is as good as a slow hash, and 25,000 times faster. */
export function apiKeyHmac(secrets: Secrets): Hmac {
  return new Hmac(secrets, 'api-key-pepper');
}

/** The four bytes by which a stored hash names its pepper: that of SECRET_KEY, then that of SECRET_KEY_PREVIOUS, where there is one. */
export function pepperIdsOf(secrets: Secrets): readonly Buffer[] {
  return secrets.derive('api-key-pepper-id').map((key) => key.export().subarray(0, 4));
}
