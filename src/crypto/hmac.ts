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

/** The format of every id of the authorization server: base64url of at least 128 random bits. */
const ID = /^[\w-]{20,100}$/;

/**
 * The keys under which the secrets of the authorization server (codes, tokens, session ids) are stored: HMAC-SHA-256(pepper, model
 * ":" id). The id itself is the secret, and is stored nowhere.
 */
export class TokenKeys {
  readonly #hmac: Hmac;

  constructor(secrets: Secrets) {
    this.#hmac = new Hmac(secrets, 'oauth-token-pepper');
  }

  /** The key under which a new secret is stored. */
  keyOf(model: string, id: string): Buffer {
    return this.#hmac.of(`${model}:${id}`);
  }

  /**
   * The keys of something that may be used only once (USE_ONCE): under every pepper, so that an instance that already has the next
   * SECRET_KEY, or does not have it yet, finds it used.
   */
  everyKeyOf(model: string, id: string): Buffer[] {
    return this.#hmac.everyOf(`${model}:${id}`);
  }

  /**
   * The keys under which a presented secret may be stored: that of the current pepper first, to which it moves when it is next
   * written. Empty for what cannot have been issued.
   */
  keysOf(model: string, id: string): Buffer[] {
    return ID.test(id) ? this.everyKeyOf(model, id) : [];
  }
}

/**
 * Makes two parameters for `key IN ($1, $2)`, whether there is a pepper before the current one or not: a statement with `= ANY ($1)`
 * would be planned at every execution, which takes far longer than running it. A single key is repeated, because a plan for
 * one key and NULL would look cheaper than the cached one. Null, which is never a key, for what cannot have been issued.
 */
export function eitherOf(keys: readonly Buffer[]): [Buffer | null, Buffer | null] {
  const [current = null, before = current] = keys;
  return [current, before];
}
