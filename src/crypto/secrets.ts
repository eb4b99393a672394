import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto';

const KEY_BYTES = 32;

/** Derives keys from SECRET_KEY and, if set, SECRET_KEY_PREVIOUS. */
export class Secrets {
  readonly #generations: readonly Buffer[];

  constructor(current: Buffer, previous?: Buffer) {
    this.#generations = previous ? [current, previous] : [current];
  }

  get hasPrevious(): boolean {
    return this.#generations.length > 1;
  }

  /** Derives 32-byte keys for one purpose, the current key first. Returns KeyObjects, since an HMAC with a Buffer takes longer. */
  derive(label: string): readonly KeyObject[] {
    return this.#generations.map((secret) => createSecretKey(deriveKey(secret, label)));
  }
}

/** Derives a 32-byte key from a secret of at least 256 random bits (HKDF-SHA-256, RFC 5869, without salt). */
export function deriveKey(secret: Buffer | string, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `pua:${label}`, KEY_BYTES));
}

/** Generates a SECRET_KEY: 32 random bytes in base64. */
export function makeSecretKey(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}
