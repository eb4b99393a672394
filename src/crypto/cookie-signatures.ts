import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { isSame } from './hmac.js';
import type { Secrets } from './secrets.js';

/** Signs cookies like Keygrip (HMAC-SHA-1, base64url), but compares faster: Keygrip's comparison takes as long as ten signatures. */
export class CookieSignatures {
  readonly #keys: readonly KeyObject[];

  constructor(secrets: Secrets, label: string) {
    // Text keys, as in Keygrip, so that cookies of earlier versions stay valid.
    this.#keys = secrets
      .derive(label)
      .map((key) => createSecretKey(Buffer.from(key.export().toString('base64url'))));
  }

  sign(data: string): string {
    return this.#under(this.#keys[0]!, data);
  }

  /** Finds the index of a signature's key by constant-time comparisons: 0 for the current key. @returns -1 if no key matches */
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
