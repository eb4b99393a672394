import { Hmac } from './hmac.js';
import type { Secrets } from './secrets.js';

/** What every id of the authorization server looks like: base64url of at least 128 random bits. */
const ID = /^[\w-]{20,100}$/;

/**
 * By what the secrets of the authorization server (codes, tokens, session ids) are found: HMAC-SHA-256(pepper, model
 * ":" id). The id itself is the secret and is stored nowhere.
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
   * The keys of what may be used once (USE_ONCE): under every pepper, so that an instance that has the next SECRET_KEY already, or
   * not yet, finds it used.
   */
  everyKeyOf(model: string, id: string): Buffer[] {
    return this.#hmac.everyOf(`${model}:${id}`);
  }

  /**
   * The keys under which a presented secret may be stored, that of the current pepper first, to which it moves when it is written
   * again. Empty for what was never issued.
   */
  keysOf(model: string, id: string): Buffer[] {
    return ID.test(id) ? this.everyKeyOf(model, id) : [];
  }
}

/**
 * Makes two parameters for `key IN ($1, $2)`, whether there is a pepper before the current one or not: a statement with `= ANY ($1)`
 * is planned anew at every execution, which takes far longer than to run it. The only key stands there twice, since a plan for
 * one key and NULL would look cheaper than the one that is kept. Null, which is no key, for what was never issued.
 */
export function eitherOf(keys: readonly Buffer[]): [Buffer | null, Buffer | null] {
  const [current = null, before = current] = keys;
  return [current, before];
}
