import { ExternalSigningKey } from 'oidc-provider';
import { Signer, type SigningJwk } from '../../crypto/signing-keys.js';

/**
 * A signing key (ES256 or RS256) that signs synchronously, on the calling thread. By default the library signs with WebCrypto, which sends
 * each signature to the thread pool and back: that takes longer than the signature itself (40 µs), and waits behind passwords
 * that are being hashed there.
 */
export class SynchronousSigningKey extends ExternalSigningKey {
  readonly #signer: Signer;

  constructor(jwk: SigningJwk) {
    super();
    this.#signer = new Signer(jwk);
    Object.assign(this, { kid: jwk.kid, alg: jwk.alg }); // by setters that its types lack
  }

  override keyObject() {
    return this.#signer.publicKey;
  }

  override sign(data: Uint8Array): Uint8Array {
    return this.#signer.sign(data);
  }
}
