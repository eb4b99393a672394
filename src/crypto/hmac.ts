import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { Secrets } from './secrets.js';

/**
 * Authenticates what the server itself hands out or stores, for one purpose (HMAC-SHA-256, RFC 2104): under the key derived from
 * SECRET_KEY; codes made under SECRET_KEY_PREVIOUS are still accepted. Parts are concatenated without a separator: if the end of one
 * could be the beginning of the next, the caller separates them.
 */
export class Hmac {
  readonly #keys: readonly KeyObject[];
  readonly #bytes: number;

  /** @param bytes how many of the 32 bytes are used; at least 16 */
  constructor(secrets: Secrets, label: string, bytes = 32) {
    this.#keys = secrets.derive(label);
    this.#bytes = bytes;
  }

  /** Computes the code of the parts under the current key. */
  of(...parts: readonly (string | Buffer)[]): Buffer {
    return this.#code(this.#keys[0]!, parts);
  }

  /** Computes it under every key, the current one first. */
  everyOf(...parts: readonly (string | Buffer)[]): Buffer[] {
    return this.#keys.map((key) => this.#code(key, parts));
  }

  /** Tells, in constant time, whether the code is that of the parts under any of the keys. */
  verify(code: Buffer, ...parts: readonly (string | Buffer)[]): boolean {
    return this.#keys.some((key) => isSame(code, this.#code(key, parts)));
  }

  #code(key: KeyObject, parts: readonly (string | Buffer)[]): Buffer {
    const hmac = createHmac('sha256', key);
    for (const part of parts) hmac.update(part);
    return hmac.digest().subarray(0, this.#bytes);
  }
}

/** Compares secrets in a time that depends on their lengths alone. */
export function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
