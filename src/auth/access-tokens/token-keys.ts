import { createHmac } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Secrets } from '../../config/config.js';

/** What every id of the authorization server looks like: base64url of at least 128 random bits. */
const ID = /^[\w-]{20,100}$/;

/**
 * By what the secrets of the authorization server (codes, tokens, session ids) are found: HMAC-SHA-256(pepper, model
 * ":" id). The id itself is the secret and is stored nowhere.
 */
export class TokenKeys {
  readonly #peppers: readonly KeyObject[];

  constructor(secrets: Secrets) {
    this.#peppers = secrets.derive('oauth-token-pepper');
  }

  /** The key under which a new secret is stored. */
  keyOf(model: string, id: string): Buffer {
    return digest(this.#peppers[0]!, model, id);
  }

  /**
   * Where a presented secret may be found: the current pepper first. What is written again moves there. Empty for what was
   * never issued.
   */
  keysOf(model: string, id: string): Buffer[] {
    return ID.test(id) ? this.#peppers.map((pepper) => digest(pepper, model, id)) : [];
  }
}

function digest(pepper: KeyObject, model: string, id: string): Buffer {
  return createHmac('sha256', pepper).update(`${model}:${id}`).digest();
}
