import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { isSame } from './hmac.js';
import type { Secrets } from './secrets.js';

/** Signs cookies like Keygrip (HMAC-SHA-1, base64url), but compares them faster. */
export class CookieSignatures {
  readonly #keys: readonly KeyObject[];

  constructor(secrets: Secrets, label: string) {
    // Each HMAC key is base64url text, as in earlier versions, so that their cookies stay valid.
    this.#keys = secrets
      .derive(label)
      .map((key) => createSecretKey(Buffer.from(key.export().toString('base64url'))));
  }

  sign(data: string): string {
    return this.#under(this.#keys[0]!, data);
  }

  /** Finds the key that made a signature; each comparison takes constant time. @returns its index: 0 for the current key; -1 if none */
  index(data: string, signature: string): number {
    const given = Buffer.from(signature);
    return this.#keys.findIndex((key) => isSame(given, Buffer.from(this.#under(key, data))));
  }

  verify(data: string, signature: string): boolean {
    return this.index(data, signature) !== -1;
  }

  #under(key: KeyObject, data: string): string {
    return createHmac('sha1', key).update(data).digest('base64url');
  }
}
