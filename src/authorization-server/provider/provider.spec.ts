import { describe, expect, it } from '@jest/globals';
import { makeSigningKey } from '../../crypto/signing-keys.js';
import { SynchronousSigningKey } from './synchronous-signing-key.js';

describe('a signing key', () => {
  it.each([
    ['ES256', 64],
    ['RS256', 256],
  ] as const)('signs the same as its key: %s', async (alg, bytes) => {
    const key = new SynchronousSigningKey(await makeSigningKey(alg));
    expect([key.alg, key.sign(Buffer.from('input')).length]).toEqual([alg, bytes]);
  });

  it('exposes its public half, and never the private one', async () => {
    const jwk = await makeSigningKey('ES256');
    if (jwk.kty !== 'EC') throw new Error(jwk.kty);
    const key = new SynchronousSigningKey(jwk);
    const { x, y, kid } = jwk;
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
      kid,
      alg: 'ES256',
      use: 'sig',
    });
    expect('d' in key).toBe(false);
    expect(key.keyObject().type).toBe('public');
  });
});
