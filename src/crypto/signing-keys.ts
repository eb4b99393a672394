import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  sign,
  type JsonWebKey,
  type KeyObject,
  type SigningOptions,
} from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint } from 'jose';

/** A private signing key (RFC 7517): P-256, or RSA with 2,048 bits. */
export interface SigningJwk {
  readonly kty: 'EC' | 'RSA';
  readonly alg: 'ES256' | 'RS256';
  readonly use: 'sig';
  /** The thumbprint of the public half (RFC 7638). */
  readonly kid: string;
  /** Private key (EC), or private exponent (RSA). */
  readonly d: string;
  /** The other key parameters (RFC 7518 §6). */
  readonly [member: string]: string;
}

export type SigningAlgorithm = SigningJwk['alg'];

const makeKeyPair = promisify(generateKeyPair);

/** Generates a key pair off the main thread: RSA can take a second. */
export async function makeSigningKey(alg: SigningAlgorithm): Promise<SigningJwk> {
  const { privateKey } =
    alg === 'ES256'
      ? await makeKeyPair('ec', { namedCurve: 'P-256' })
      : await makeKeyPair('rsa', { modulusLength: 2048 });
  const jwk = privateKey.export({ format: 'jwk' }) as Record<string, string>;
  const kid = await calculateJwkThumbprint(jwk);
  return { ...jwk, kid, alg, use: 'sig' } as unknown as SigningJwk;
}

/** Returns the public half of a key. */
export function publicHalfOf(jwk: SigningJwk): Readonly<Record<string, string>> {
  const members = ['kty', ...(jwk.kty === 'EC' ? ['crv', 'x', 'y'] : ['n', 'e']), 'kid', 'alg', 'use'];
  return Object.fromEntries(members.map((member) => [member, jwk[member]!]));
}

/** Tells whether Node can use the value as a public key (RFC 7517). */
export function isPublicJwk(key: object): boolean {
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}

/** Signs synchronously with ES256 (RFC 7518 §3.4), or with RS256 (§3.3), which takes longer. */
export class Signer {
  readonly #private: KeyObject & Pick<SigningOptions, 'dsaEncoding'>;
  readonly publicKey: KeyObject;

  constructor(jwk: SigningJwk) {
    const key = createPrivateKey({ key: { ...jwk }, format: 'jwk' });
    this.publicKey = createPublicKey(key);
    // Sets the option on the key object: for an object that contains the key, Node first throws and catches two exceptions.
    this.#private = Object.assign(key, { dsaEncoding: 'ieee-p1363' as const });
  }

  /** @returns ES256: r and s, 32 bytes each; RS256: 256 bytes */
  sign(data: Uint8Array): Uint8Array {
    return sign('sha256', data, this.#private);
  }
}
