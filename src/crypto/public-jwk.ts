import { createPublicKey, type JsonWebKey } from 'node:crypto';

/** Tells whether a value is a public key (RFC 7517) that can be used as it is. */
export function isPublicJwk(key: object): boolean {
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}
