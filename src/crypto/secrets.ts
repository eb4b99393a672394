import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto';

const KEY_BYTES = 32;

/** The two generations of keys that are derived from SECRET_KEY and SECRET_KEY_PREVIOUS. */
export class Secrets {
  readonly #generations: readonly Buffer[];

  constructor(current: Buffer, previous?: Buffer) {
    this.#generations = previous ? [current, previous] : [current];
  }

  /** Whether SECRET_KEY_PREVIOUS is set. */
  get hasPrevious(): boolean {
    return this.#generations.length > 1;
  }

  /**
   * Derives the 32-byte keys of one purpose, the current one first. They are KeyObjects: from a Buffer, Node would create one for every
   * HMAC, which takes 12 µs instead of 2.5.
   */
  derive(label: string): readonly KeyObject[] {
    return this.#generations.map((secret) => createSecretKey(deriveKey(secret, label)));
  }
}

/**
 * Derives a key of 32 bytes from a secret of at least as many random bits (HKDF-SHA-256, RFC 5869, without salt, the label as info).
 *
 * @param label what the key is for; keys with different labels reveal nothing about each other
 */
export function deriveKey(secret: Buffer | string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `pua:${label}`, KEY_BYTES));
}

/** Generates a SECRET_KEY: 32 random bytes in base64. */
export function makeSecretKey(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}
