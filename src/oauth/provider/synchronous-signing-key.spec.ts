import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { compactVerify, importJWK } from 'jose';
import { SynchronousSigningKey } from './synchronous-signing-key.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' };

describe('a signing key', () => {
  it('signs what a library for JOSE verifies, and nothing else', async () => {
    const key = new SynchronousSigningKey(jwk as never);
    const input = [{ alg: 'ES256', kid: 'one' }, { sub: '7' }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = key.sign(Buffer.from(input));
    expect(signature).toHaveLength(64);
    const jws = `${input}.${Buffer.from(signature).toString('base64url')}`;
    const verifier = await importJWK(publicKey.export({ format: 'jwk' }) as never, 'ES256');
    const { payload } = await compactVerify(jws, verifier);
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual({ sub: '7' });
    await expect(compactVerify(jws.replace('.', '.e'), verifier)).rejects.toThrow();
  });

  it('shows its public half, and never its private one', () => {
    const key = new SynchronousSigningKey(jwk as never);
    const { x, y } = publicKey.export({ format: 'jwk' });
    expect({
      kty: key.kty,
      crv: key.crv,
      x: key.x,
      y: key.y,
      kid: key.kid,
      alg: key.alg,
      use: key.use,
    }).toEqual({
      kty: 'EC',
      crv: 'P-256',
      x,
      y,
      kid: 'one',
      alg: 'ES256',
      use: 'sig',
    });
    expect('d' in key).toBe(false);
    expect(key.keyObject().type).toBe('public');
  });
});
