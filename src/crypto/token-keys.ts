import { Hmac } from './hmac.js';
import type { Secrets } from './secrets.js';

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
