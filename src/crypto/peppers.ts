import { createHmac, type KeyObject } from 'node:crypto';
import { isSame } from './hmac.js';
import type { Secrets } from './secrets.js';

/** A key for hashing API keys, and the four bytes by which a stored hash names it. */
export class Pepper {
  readonly #key: KeyObject;

  constructor(
    readonly id: Buffer,
    key: KeyObject,
  ) {
    this.#key = key;
  }

  /** Hashes an API key. It has 256 random bits, so one HMAC is as good as a slow hash, and 25,000 times faster. */
  hash(apiKey: string): Buffer {
    return createHmac('sha256', this.#key).update(apiKey).digest();
  }

  /** Tells, in constant time, whether the hash is that of the key. */
  matches(apiKey: string, hash: Buffer): boolean {
    return isSame(this.hash(apiKey), hash);
  }
}

/** Derives the peppers. @returns the pepper of SECRET_KEY, which new keys are hashed with, then that of SECRET_KEY_PREVIOUS, where there is one */
export function peppersOf(secrets: Secrets): readonly Pepper[] {
  const ids = secrets.derive('api-key-pepper-id').map((key) => key.export().subarray(0, 4));
  return secrets.derive('api-key-pepper').map((key, i) => new Pepper(ids[i]!, key));
}
