import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { isSame } from './hmac.js';
import type { Secrets } from './secrets.js';

/**
 * Signs the cookies of the authorization server as Keygrip does (HMAC-SHA-1, base64url), in whose place Koa takes it. Keygrip compares two
 * signatures by another two HMACs, under a key that is made for them, which takes ten times as long as the signature.
 */
export class CookieSignatures {
  readonly #keys: readonly KeyObject[];

  constructor(secrets: Secrets, label: string) {
    // Keygrip was given the keys as text: a cookie that it signed has to stay good.
    this.#keys = secrets
      .derive(label)
      .map((key) => createSecretKey(Buffer.from(key.export().toString('base64url'))));
  }

  /** Signs under the current key. */
  sign(data: string): string {
    return this.#under(this.#keys[0]!, data);
  }

  /** Finds, in constant time for each, the key under which the data was signed: 0 is the current one. @returns -1 for none of ours */
  index(data: string, signature: string): number {
    const given = Buffer.from(signature);
    return this.#keys.findIndex((key) => isSame(given, Buffer.from(this.#under(key, data))));
  }

  /** Tells whether the data was signed under any of the keys. */
  verify(data: string, signature: string): boolean {
    return this.index(data, signature) !== -1;
  }

  #under(key: KeyObject, data: string): string {
    return createHmac('sha1', key).update(data).digest('base64url');
  }
}
