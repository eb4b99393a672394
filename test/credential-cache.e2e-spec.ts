import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { RevocationChannel } from '../src/auth/revocation-channel.js';
import { onPostgres } from './support/database.js';
import { OauthTest } from './support/oauth.js';

/** On PostgreSQL credentials are remembered; on the embedded database each is looked up, and the same must hold. */
let oauth: OauthTest;
beforeAll(async () => {
  oauth = await OauthTest.start();
  const end = performance.now() + 5_000;
  while (onPostgres && !oauth.api.app.get(RevocationChannel).trusted) {
    expect(performance.now()).toBeLessThan(end);
    await new Promise(setImmediate);
  }
});
afterAll(() => oauth.close());

/** Sends a credential in one header, and what goes with it. */
async function ask(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  const body = method === 'PUT' ? { body: JSON.stringify({ bio: 'stolen' }) } : {};
  const response = await fetch(new URL(path, oauth.issuer), {
    method,
    headers: { ...headers, ...(method === 'PUT' ? { 'Content-Type': 'application/json' } : {}) },
    ...body,
  });
  await response.arrayBuffer();
  return response.status;
}

const ME = '/api/public/me';
const PROFILE = '/api/public/profile';
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const asKey = (token: string) => ({ 'X-API-Key': token });

/** A token that is bound to a key (RFC 9449), and a way to use it. */
async function boundToken(): Promise<{ token: string; withProof: (path: string) => Promise<object> }> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  const proof = (claims: Record<string, unknown>) =>
    new SignJWT({ jti: crypto.randomUUID(), ...claims })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt()
      .sign(privateKey);
  const form = await oauth.code(await oauth.client(), (await oauth.member()).username);
  const { body } = await oauth.token(form, {
    DPoP: await proof({ htm: 'POST', htu: `${oauth.issuer}/oauth/token` }),
  });
  const token = body.access_token;
  const ath = createHash('sha256').update(token).digest('base64url');
  return {
    token,
    withProof: async (path) => ({
      Authorization: `DPoP ${token}`,
      DPoP: await proof({ htm: 'GET', htu: oauth.issuer + path, ath }),
    }),
  };
}

describe('a credential of one kind', () => {
  it('that is a bound token opens nothing without its proof, however often and however it is sent', async () => {
    const { token, withProof } = await boundToken();
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, bearer(token))).toBe(401);
      expect(await ask(ME, asKey(token))).toBe(401);
      expect(await ask(PROFILE, asKey(token), 'PUT')).toBe(401);
      expect(await ask('/oauth/userinfo', bearer(token))).toBe(401);
      expect(await ask('/oauth/userinfo', asKey(token))).toBe(401);
    }
    expect(await ask(ME, (await withProof(ME)) as Record<string, string>)).toBe(200);
    expect(await ask(ME, asKey(token))).toBe(401);
    expect(await ask('/oauth/userinfo', bearer(token))).toBe(401);
  });

  it('that is a token is no key, though it was accepted as a token a moment ago', async () => {
    const { access_token } = await oauth.tokens(await oauth.client(), (await oauth.member()).username);
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, bearer(access_token))).toBe(200);
      expect(await ask(ME, asKey(access_token))).toBe(401);
      expect(await ask(PROFILE, asKey(access_token), 'PUT')).toBe(401);
      expect(await ask(ME, { Authorization: `DPoP ${access_token}` })).toBe(401);
    }
  });

  it('that is a key is no token, though it was accepted as a key a moment ago', async () => {
    const key = await oauth.api.key((await oauth.member()).id);
    for (let round = 0; round < 3; round++) {
      expect(await ask(ME, asKey(key))).toBe(200);
      expect(await ask(ME, bearer(key))).toBe(401);
      expect(await ask('/oauth/userinfo', bearer(key))).toBe(401);
      expect(await ask('/oauth/userinfo', asKey(key))).toBe(401);
    }
  });
});
