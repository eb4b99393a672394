import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { Secrets } from './secrets.js';

/** Authenticates values for one purpose (HMAC-SHA-256, RFC 2104). Parts have no separator: the caller must keep them unambiguous. */
export class Hmac {
  readonly #keys: readonly KeyObject[];
  readonly #bytes: number;

  /** @param bytes length of the code in bytes, at most 32 */
  constructor(secrets: Secrets, label: string, bytes = 32) {
    this.#keys = secrets.derive(label);
    this.#bytes = bytes;
  }

  of(...parts: readonly (string | Buffer)[]): Buffer {
    return this.#code(this.#keys[0]!, parts);
  }

  /** Computes the code under every key, the current key first. */
  everyOf(...parts: readonly (string | Buffer)[]): Buffer[] {
    return this.#keys.map((key) => this.#code(key, parts));
  }

  /** Compares `code` with the code under each key; each comparison takes constant time. */
  verify(code: Buffer, ...parts: readonly (string | Buffer)[]): boolean {
    return this.#keys.some((key) => isSame(code, this.#code(key, parts)));
  }

  #code(key: KeyObject, parts: readonly (string | Buffer)[]): Buffer {
    const hmac = createHmac('sha256', key);
    for (const part of parts) hmac.update(part);
    return hmac.digest().subarray(0, this.#bytes);
  }
}

/** Compares secrets in a time that depends only on their lengths. */
export function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The format of the authorization server's ids. */
const ID = /^[\w-]{20,100}$/;

/** Computes the keys under which codes, tokens and other secrets are stored: HMAC-SHA-256(pepper, model ":" id). */
export class TokenKeys {
  readonly #hmac: Hmac;

  constructor(secrets: Secrets) {
    this.#hmac = new Hmac(secrets, 'oauth-token-pepper');
  }

  keyOf(model: string, id: string): Buffer {
    return this.#hmac.of(`${model}:${id}`);
  }

  /** Returns the keys under all peppers: USE_ONCE stores all, so that all instances detect reuse while SECRET_KEY changes. */
  everyKeyOf(model: string, id: string): Buffer[] {
    return this.#hmac.everyOf(`${model}:${id}`);
  }

  /** Returns the possible storage keys of an id, the current pepper's first; none if the id's format is invalid. */
  keysOf(model: string, id: string): Buffer[] {
    return ID.test(id) ? this.everyKeyOf(model, id) : [];
  }
}

/**
 * Makes two parameters for `key IN ($1, $2)`: PostgreSQL would plan `= ANY ($1)` for each request. Repeats a single key, since a NULL would
 * change the plan. Both are null if there is no key.
 */
export function eitherOf(keys: readonly Buffer[]): [Buffer | null, Buffer | null] {
  const [current = null, before = current] = keys;
  return [current, before];
}
