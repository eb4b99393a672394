import { describe, expect, it } from '@jest/globals';
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import { makeSigningKey, publicHalfOf, Signer } from './signing-keys.js';

describe('a key pair for ES256', () => {
  it('uses P-256, states its use, and has its public half’s thumbprint as kid', async () => {
    const key = await makeSigningKey('ES256');
    if (key.kty !== 'EC') throw new Error(key.kty);
    const { kty, crv, x, y, d, kid } = key;
    expect(key).toEqual({ kty: 'EC', crv: 'P-256', x, y, d, kid, alg: 'ES256', use: 'sig' });
    for (const number of [x, y, d]) expect(Buffer.from(number!, 'base64url')).toHaveLength(32);
    expect(kid).toBe(await calculateJwkThumbprint({ kty, crv: crv!, x: x!, y: y! }));
  });

  it('differs each time', async () => {
    const [one, other] = [await makeSigningKey('ES256'), await makeSigningKey('ES256')];
    expect(one.d).not.toBe(other.d);
    expect(one.kid).not.toBe(other.kid);
  });
});

describe('a key pair for RS256', () => {
  it('uses RSA with 2,048 bits, and has its public half’s thumbprint as kid', async () => {
    const key = await makeSigningKey('RS256');
    if (key.kty !== 'RSA') throw new Error(key.kty);
    const { kty, n, e, kid } = key;
    expect(key).toMatchObject({ alg: 'RS256', use: 'sig' });
    expect(Buffer.from(n!, 'base64url')).toHaveLength(256);
    expect(kid).toBe(await calculateJwkThumbprint({ kty, n: n!, e: e! }));
  });
});

describe.each([
  ['ES256', 64],
  ['RS256', 256],
] as const)('a key for %s', (alg, bytes) => {
  it('creates signatures that a JOSE library accepts, but not for altered data', async () => {
    const key = await makeSigningKey(alg);
    const input = [{ alg }, { sub: '7' }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = new Signer(key).sign(Buffer.from(input));
    expect(signature).toHaveLength(bytes);
    const jws = `${input}.${Buffer.from(signature).toString('base64url')}`;
    const verifier = await importJWK({ ...publicHalfOf(key) });
    const { payload } = await compactVerify(jws, verifier);
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual({ sub: '7' });
    await expect(compactVerify(jws.replace('.', '.e'), verifier)).rejects.toThrow();
  });

  it('exposes only its public half', async () => {
    const key = await makeSigningKey(alg);
    expect(new Signer(key).publicKey.type).toBe('public');
    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi'])
      expect(publicHalfOf(key)).not.toHaveProperty(member);
  });
});
