import { Hmac, pepperIdsOf } from '../crypto/hmac.js';
import { BASE62, randomText } from '../crypto/random.js';
import type { Secrets } from '../crypto/secrets.js';

/** The start of every secret of a client, by which one is found that leaked. */
const PREFIX = 'pua_secret_';
/** 62^43 > 2^256. */
const LENGTH = 43;

/** A secret as it is stored. */
interface StoredSecret {
  readonly hash: Buffer;
  readonly pepper_id: Buffer;
  readonly last_four: string;
}

/**
 * Makes and compares secrets of clients: 256 random bits, of which only an HMAC is stored, as of API keys. They consist of characters that
 * no form encoding changes (RFC 6749 §2.3.1): libraries disagree about it.
 */
export class ClientSecretHashes {
  readonly #hmac: Hmac;
  readonly #pepperId: Buffer;

  constructor(secrets: Secrets) {
    this.#hmac = new Hmac(secrets, 'client-secret-pepper');
    this.#pepperId = pepperIdsOf(secrets)[0]!;
  }

  make(): { secret: string; stored: StoredSecret } {
    const secret = PREFIX + randomText(LENGTH, BASE62);
    return { secret, stored: this.store(secret) };
  }

  store(secret: string): StoredSecret {
    return { hash: this.#hmac.of(secret), pepper_id: this.#pepperId, last_four: secret.slice(-4) };
  }

  /** Tells, in constant time, whether the hash is of this secret: under SECRET_KEY or SECRET_KEY_PREVIOUS. */
  matches(hash: Buffer, secret: string): boolean {
    return this.#hmac.verify(hash, secret);
  }

  isCurrent(pepperId: Buffer): boolean {
    return this.#pepperId.equals(pepperId);
  }
}
