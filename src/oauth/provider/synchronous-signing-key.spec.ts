import { describe, expect, it } from '@jest/globals';
import { makeEs256Key } from '../../crypto/es256.js';
import { SynchronousSigningKey } from './synchronous-signing-key.js';

describe('a signing key', () => {
  it('signs as the key does', async () => {
    const signature = new SynchronousSigningKey(await makeEs256Key()).sign(Buffer.from('input'));
    expect(signature).toHaveLength(64);
  });

  it('shows its public half, and never its private one', async () => {
    const jwk = await makeEs256Key();
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
