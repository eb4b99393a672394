import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { ExternalSigningKey } from 'oidc-provider';
import type { JWK } from 'oidc-provider';

/**
 * What has to stand in `features.externalSigningSupport`: the version of the experiment that this was written for. A release of
 * oidc-provider that changes or ends it refuses to start, and then the JWKs are given to it as they are.
 */
export const EXTERNAL_SIGNING = { enabled: true, ack: 'experimental-01' } as const;

/**
 * A signing key (ES256) that signs at once, on the thread that asks. The library signs by WebCrypto otherwise, which sends each
 * signature to a thread of the pool and back: that takes longer than the signature, 40 µs, and waits behind passwords
 * that are being hashed there.
 */
export class SynchronousSigningKey extends ExternalSigningKey {
  readonly #private: KeyObject;
  readonly #public: KeyObject;

  /** @param jwk private, of P-256, with its `kid` */
  constructor(jwk: JWK) {
    super();
    this.#private = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
    this.#public = createPublicKey(this.#private);
    Object.assign(this, { kid: jwk.kid, alg: 'ES256' }); // by setters that its types do not know
  }

  override keyObject(): KeyObject {
    return this.#public;
  }

  /** @returns r and s, 32 bytes each (RFC 7518 §3.4) */
  override sign(data: Uint8Array): Uint8Array {
    return sign('sha256', data, { key: this.#private, dsaEncoding: 'ieee-p1363' });
  }
}
