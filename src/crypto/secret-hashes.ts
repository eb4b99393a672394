import { Hmac } from './hmac.js';
import type { Secrets } from './secrets.js';

/** Labels of the peppers for generated secrets, by table. */
const LABELS = { api_keys: 'api-key-pepper', oauth_client_secrets: 'client-secret-pepper' } as const;

/** Hashes generated secrets with an HMAC. They have 256 random bits, so they need no slow hash. */
export class SecretHashes {
  readonly #hmac: Hmac;
  readonly #pepperId: Buffer;

  constructor(
    secrets: Secrets,
    readonly table: keyof typeof LABELS,
  ) {
    this.#hmac = new Hmac(secrets, LABELS[table]);
    this.#pepperId = pepperIdsOf(secrets)[0]!;
  }

  store(secret: string) {
    return { hash: this.#hmac.of(secret), pepper_id: this.#pepperId, last_four: secret.slice(-4) };
  }

  /** Compares in constant time, under SECRET_KEY and SECRET_KEY_PREVIOUS. */
  matches(hash: Buffer, secret: string): boolean {
    return this.#hmac.verify(hash, secret);
  }

  isCurrent(pepperId: Buffer): boolean {
    return this.#pepperId.equals(pepperId);
  }
}

/** Derives the `pepper_id` (four bytes) of SECRET_KEY and, if set, of SECRET_KEY_PREVIOUS. */
export function pepperIdsOf(secrets: Secrets): readonly Buffer[] {
  return secrets.derive('api-key-pepper-id').map((key) => key.export().subarray(0, 4));
}
