import { describe, expect, it } from '@jest/globals';
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import { Es256Signer, makeEs256Key } from './es256.js';

describe('a key pair for ES256', () => {
  it('is of P-256, says what it is for, and is named by the thumbprint of its public half', async () => {
    const key = await makeEs256Key();
    const { kty, crv, x, y, d, kid } = key;
    expect(key).toEqual({ kty: 'EC', crv: 'P-256', x, y, d, kid, alg: 'ES256', use: 'sig' });
    for (const number of [x, y, d]) expect(Buffer.from(number, 'base64url')).toHaveLength(32);
    expect(kid).toBe(await calculateJwkThumbprint({ kty, crv, x, y }));
  });

  it('is another each time', async () => {
    const [one, other] = [await makeEs256Key(), await makeEs256Key()];
    expect(one.d).not.toBe(other.d);
    expect(one.kid).not.toBe(other.kid);
  });

  it('signs what a library for JOSE verifies, and nothing else', async () => {
    const key = await makeEs256Key();
    const input = [{ alg: 'ES256' }, { sub: '7' }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = new Es256Signer(key).sign(Buffer.from(input));
    expect(signature).toHaveLength(64);
    const { d: _private, ...published } = key;
    const jws = `${input}.${Buffer.from(signature).toString('base64url')}`;
    const verifier = await importJWK({ ...published });
    const { payload } = await compactVerify(jws, verifier);
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual({ sub: '7' });
    await expect(compactVerify(jws.replace('.', '.e'), verifier)).rejects.toThrow();
  });

  it('shows its public half, and no other', async () => {
    expect(new Es256Signer(await makeEs256Key()).publicKey.type).toBe('public');
  });
});
