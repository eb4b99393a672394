import { ExternalSigningKey } from 'oidc-provider';
import { Signer, type SigningJwk } from '../../crypto/signing-keys.js';

/** Signs on the calling thread: WebCrypto's thread pool takes longer than the signature (40 µs), and waits behind hashing. */
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
