import { createHmac } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Secrets } from '../../config/config.js';

/** What every id of the authorization server looks like: base64url of at least 128 random bits. */
const ID = /^[\w-]{20,100}$/;

/**
 * The id of a proof or an assertion, which may be used once: $1 its keys, $2 the seconds for which it is to be known. A row where this
 * is the first use: of two at the same moment the insert decides.
 */
export const USE_ONCE = `WITH first AS (
  INSERT INTO oauth_state (key, model, expires_at)
  SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key ORDER BY key
  ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_state.expires_at <= now() RETURNING 1
) SELECT WHERE (SELECT count(*) FROM first) = cardinality($1)`;

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
   * The keys of what {@link USE_ONCE} takes: under every pepper, so that an instance that has the next SECRET_KEY already, or
   * not yet, finds it used.
   */
  everyKeyOf(model: string, id: string): Buffer[] {
    return this.#peppers.map((pepper) => digest(pepper, model, id));
  }

  /**
   * Where a presented secret may be found: the current pepper first. What is written again moves there. Empty for what was
   * never issued.
   */
  keysOf(model: string, id: string): Buffer[] {
    return ID.test(id) ? this.everyKeyOf(model, id) : [];
  }
}

/**
 * Two parameters for `key IN ($1, $2)`, whether there is a pepper before the current one or not: a statement with `= ANY ($1)`
 * is planned anew at every execution, which takes far longer than to run it. The only key stands there twice, since a plan for
 * one key and NULL would look cheaper than the one that is kept. Null, which is no key, for what was never issued.
 */
export function eitherOf(keys: readonly Buffer[]): [Buffer | null, Buffer | null] {
  const [current = null, before = current] = keys;
  return [current, before];
}

function digest(pepper: KeyObject, model: string, id: string): Buffer {
  return createHmac('sha256', pepper).update(`${model}:${id}`).digest();
}
