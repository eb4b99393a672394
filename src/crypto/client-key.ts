import { createPrivateKey, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, importJWK, type CryptoKey, type JWK } from 'jose';

export type { KeyObject } from 'node:crypto';

/** Reads a private key (PEM) for client authentication (RFC 7523 §2.2). @throws Error if the key is invalid or has another type */
export function readClientKey(pem: string): KeyObject {
  const key = createPrivateKey(pem);
  chooseAlgorithm(key);
  return key;
}

/** Imports a key for the algorithm of its type (RFC 7518 §3.1, RFC 9864). `kid` is the public key's thumbprint (RFC 7638). */
export async function toClientKey(key: KeyObject) {
  const jwk = key.export({ format: 'jwk' }) as JWK;
  return {
    key: (await importJWK(jwk, chooseAlgorithm(key))) as CryptoKey,
    kid: await calculateJwkThumbprint(jwk),
  };
}

const ALGORITHMS: Readonly<Record<string, string>> = {
  rsa: 'RS256',
  ed25519: 'Ed25519',
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
};

function chooseAlgorithm({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): string {
  const algorithm = ALGORITHMS[(type === 'ec' ? asymmetricKeyDetails?.namedCurve : type) ?? ''];
  if (algorithm === undefined) throw new Error('not an RSA, P-256, P-384, P-521 or Ed25519 key');
  return algorithm;
}
