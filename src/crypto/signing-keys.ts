import { createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint } from 'jose';

/** A private key as a JSON Web Key (RFC 7517), for signatures alone. */
interface SigningJwkOf<Algorithm extends string> {
  /** The private half, or a part of it. */
  readonly d: string;
  /** The thumbprint of its public half (RFC 7638). */
  readonly kid: string;
  readonly alg: Algorithm;
  readonly use: 'sig';
}

/** Of P-256. */
export interface Es256Jwk extends SigningJwkOf<'ES256'> {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
}

/** Of RSA, 2,048 bits. */
export interface Rs256Jwk extends SigningJwkOf<'RS256'> {
  readonly kty: 'RSA';
  readonly n: string;
  readonly e: string;
  readonly p: string;
  readonly q: string;
  readonly dp: string;
  readonly dq: string;
  readonly qi: string;
}

export type SigningJwk = Es256Jwk | Rs256Jwk;
export type SigningAlgorithm = SigningJwk['alg'];

const makeKeyPair = promisify(generateKeyPair);

/** Makes a key pair off the main thread: one of RSA takes a second. */
export async function makeSigningKey(alg: SigningAlgorithm): Promise<SigningJwk> {
  const { privateKey } =
    alg === 'ES256'
      ? await makeKeyPair('ec', { namedCurve: 'P-256' })
      : await makeKeyPair('rsa', { modulusLength: 2048 });
  const jwk = privateKey.export({ format: 'jwk' }) as Record<string, string>;
  const kid = await calculateJwkThumbprint(jwk);
  return { ...jwk, kid, alg, use: 'sig' } as unknown as SigningJwk;
}

/** Returns the public half of a key, as it is published. */
export function publicHalfOf(jwk: SigningJwk): Readonly<Record<string, string>> {
  const { kid, alg, use } = jwk;
  const numbers = jwk.kty === 'EC' ? { crv: jwk.crv, x: jwk.x, y: jwk.y } : { n: jwk.n, e: jwk.e };
  return { kty: jwk.kty, ...numbers, kid, alg, use };
}

/** Signs synchronously, on the calling thread: ES256 (RFC 7518 §3.4) takes 40 µs, RS256 (§3.3) twenty times as long. */
export class Signer {
  readonly #private: KeyObject & Pick<SigningOptions, 'dsaEncoding'>;
  readonly publicKey: KeyObject;

  constructor(jwk: SigningJwk) {
    const key = createPrivateKey({ key: { ...jwk }, format: 'jwk' });
    this.publicKey = createPublicKey(key);
    // The option stands on the key itself: of an object around it Node finds out by two exceptions that it is no key.
    this.#private = Object.assign(key, { dsaEncoding: 'ieee-p1363' as const });
  }

  /** @returns of ES256 r and s, 32 bytes each; of RS256, which Node encodes in one way alone, 256 bytes */
  sign(data: Uint8Array): Uint8Array {
    return sign('sha256', data, this.#private);
  }
}
