import { ExternalSigningKey } from 'oidc-provider';
import { Signer } from '../../crypto/signing-keys.js';
import type { SigningJwk } from '../../crypto/signing-keys.js';

/**
 * What has to stand in `features.externalSigningSupport`: the version of the experiment that this was written for. A release of
 * oidc-provider that changes or ends it refuses to start, and then the JWKs are given to it as they are.
 */
export const EXTERNAL_SIGNING = { enabled: true, ack: 'experimental-01' } as const;

/**
 * A signing key (ES256 or RS256) that signs at once, on the thread that asks. The library signs by WebCrypto otherwise, which sends each
 * signature to a thread of the pool and back: that takes longer than the signature, 40 µs, and waits behind passwords
 * that are being hashed there.
 */
export class SynchronousSigningKey extends ExternalSigningKey {
  readonly #signer: Signer;

  constructor(jwk: SigningJwk) {
    super();
    this.#signer = new Signer(jwk);
    Object.assign(this, { kid: jwk.kid, alg: jwk.alg }); // by setters that its types do not know
  }

  override keyObject() {
    return this.#signer.publicKey;
  }

  override sign(data: Uint8Array): Uint8Array {
    return this.#signer.sign(data);
  }
}
