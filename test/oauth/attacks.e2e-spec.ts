import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { adapterFactory } from '../../src/authorization-server/authorization-server.js';
import { ClientCache } from '../../src/authorization-server/adapters/client-cache.js';
import { OauthDatabase } from '../../src/authorization-server/requests/oauth-database.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { assertionOf, athOf, clientWithKey, dpopKey, dpopSigner } from '../support/client-kinds.js';
import { thorough } from '../support/database.js';
import { OauthTest, PASSWORD, pkcePair, REDIRECT_URI } from '../support/oauth.js';
import { rawRequest } from '../support/raw-request.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const errorOf = async (form: Record<string, string>) => (await oauth.token(form)).body.error;
/** A new member's code for a new client. */
const newCode = async () => oauth.code(await oauth.client(), (await oauth.member()).username);

/** Disables a member without the trigger that ends grants and sessions. */
async function disableAlone(userId: number): Promise<void> {
  await oauth.query('ALTER TABLE users DISABLE TRIGGER end_sign_ins');
  await oauth.query('UPDATE users SET disabled_at = now() WHERE id = $1', [userId]);
  await oauth.query('ALTER TABLE users ENABLE ALWAYS TRIGGER end_sign_ins');
}

describe('an authorization code', () => {
  it('is rejected when redeemed again, and its tokens are revoked', async () => {
    const form = await newCode();
    const { body } = await oauth.token(form);
    expect(await oauth.me(body.access_token)).toBe(200);
    expect(await errorOf(form)).toBe('invalid_grant');
    expect(await oauth.me(body.access_token)).toBe(401);
    expect((await oauth.refresh(form.client_id!, body.refresh_token)).status).toBe(400);
  });

  thorough.it('redeemed again minutes later still revokes its tokens', async () => {
    const form = await newCode();
    const { body } = await oauth.token(form);
    await oauth.age('oauth_tokens', 120);
    await oauth.api.app.get(Sweeper).sweep();
    expect(await oauth.me(body.access_token)).toBe(200);
    expect(await errorOf(form)).toBe('invalid_grant');
    expect(await oauth.me(body.access_token)).toBe(401);
  });

  it('presented by another client is rejected without being consumed', async () => {
    const form = await newCode();
    expect(await errorOf({ ...form, client_id: await oauth.client() })).toBe('invalid_grant');
    expect((await oauth.token(form)).status).toBe(200);
  });

  it.each([
    ['a wrong verifier', { code_verifier: pkcePair().verifier }, 'invalid_grant'],
    ['no verifier', { code_verifier: '' }, 'invalid_grant'],
    ['a short verifier', { code_verifier: 'short' }, 'invalid_grant'],
    ['another redirect_uri', { redirect_uri: 'https://app.example/other' }, 'invalid_grant'],
    ['no redirect_uri', { redirect_uri: '' }, 'invalid_request'],
  ])('with %s is rejected without being consumed', async (_, wrong, error) => {
    const form = await newCode();
    expect([error, 'invalid_request']).toContain(await errorOf({ ...form, ...wrong }));
    expect((await oauth.token(form)).status).toBe(200);
  });

  it('is rejected after 60 seconds, by the database’s clock', async () => {
    const form = await newCode();
    await oauth.age('oauth_tokens', 61);
    expect(await errorOf(form)).toBe('invalid_grant');
  });

  thorough.it('of a disabled member is rejected, as is a refresh token', async () => {
    const { id, username, clientId } = await oauth.memberAndClient();
    const form = await oauth.code(clientId, username);
    const { refresh_token } = await oauth.tokens(clientId, username);
    await disableAlone(id);
    expect(await errorOf(form)).toBe('invalid_grant');
    expect((await oauth.refresh(clientId, refresh_token)).body.error).toBe('invalid_grant');
  });

  it('of a disabled client is rejected even if no notification arrives, as is a refresh token', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const form = await oauth.code(clientId, username);
    const { refresh_token } = await oauth.tokens(clientId, username);
    await oauth.query('ALTER TABLE oauth_clients DISABLE TRIGGER oauth_clients_announce');
    await oauth.query('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [clientId]);
    await oauth.query('ALTER TABLE oauth_clients ENABLE ALWAYS TRIGGER oauth_clients_announce');
    // `invalid_grant` while the client is cached, otherwise `invalid_client`
    const refused = /^invalid_(grant|client)$/;
    expect(await errorOf(form)).toMatch(refused);
    expect((await oauth.refresh(clientId, refresh_token)).body.error).toMatch(refused);
  });
});

thorough.describe('an issued value', () => {
  const adapter = (model: string) => {
    const { app } = oauth.api;
    return adapterFactory(app.get(OauthDatabase), app.get(ClientCache), new Set(['ES256']))(model);
  };

  it('that is a pushed request is accepted in one of 10 concurrent uses', async () => {
    const { searchParams } = oauth.request(await oauth.client()).url;
    const { body } = await oauth.post('/oauth/par', Object.fromEntries(searchParams));
    const id = (body.request_uri as string).split(':').pop()!;
    expect(await adapter('PushedAuthorizationRequest').find(id)).toBeDefined();
    const uses = Array.from({ length: 10 }, () => adapter('PushedAuthorizationRequest').consume(id));
    expect((await Promise.allSettled(uses)).filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('that is an access token is not stored after its grant was deleted', async () => {
    const lost = { grantId: 'gone', clientId: 'x', kind: 'AccessToken' };
    await expect(adapter('AccessToken').upsert('x'.repeat(43), lost, 60)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });
});

describe('an authorization request', () => {
  it.each([
    ['without PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['with PKCE in lower case', { code_challenge_method: 's256' }, 'invalid_request'],
    ['with a challenge that is too short', { code_challenge: 'x'.repeat(42) }, 'invalid_request'],
    ['with PKCE without a method', { code_challenge_method: undefined }, 'invalid_request'],
    ['for the response type token', { response_type: 'token' }, 'unsupported_response_type'],
    ['for the response type id_token', { response_type: 'id_token' }, 'unsupported_response_type'],
    ['for the response type code id_token', { response_type: 'code id_token' }, 'unsupported_response_type'],
    ['for the response mode fragment', { response_mode: 'fragment' }, 'unsupported_response_mode'],
    ['for the response mode form_post', { response_mode: 'form_post' }, 'unsupported_response_mode'],
    ['with a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['for another resource', { resource: 'https://other.example/' }, 'invalid_target'],
  ])('%s is rejected by a redirect to the verified URI', async (_, parameters, error) => {
    const { url } = oauth.request(await oauth.client(), parameters);
    const back = await oauth.browser().leave(url);
    expect(back.origin + back.pathname).toBe(REDIRECT_URI);
    expect(new URLSearchParams(back.search || back.hash.slice(1)).get('error')).toBe(error);
  });

  it.each([
    'https://app.example/callback/',
    'https://app.example/callback?x=1',
    'https://app.example/callback#f',
    'https://app.example/callback/../callback',
    'https://app.example/%63allback',
    'https://app.example:443/callback',
    'https://app.example:8443/callback',
    'https://user@app.example/callback',
    'https://APP.example/callback',
    'https://app.example/Callback',
    'https://app.example.evil.example/callback',
    'https://evil.example/app.example/callback',
    'http://app.example/callback',
    'http://127.0.0.1/callback',
    'com.example.app:/callback',
    'javascript:alert(1)',
    '//app.example/callback',
    '',
  ])('never redirects to the unregistered URI "%s"', async (redirect_uri) => {
    const { url } = oauth.request(await oauth.client(), { redirect_uri });
    for (const extra of ['', '&response_type=token', '&prompt=none'])
      expect((await oauth.browser().view(url + extra)).status).toBe(400);
  });

  it('with a repeated parameter is rejected', async () => {
    const { url } = oauth.request(await oauth.client());
    expect((await oauth.browser().view(`${url}&redirect_uri=https://evil.example/`)).status).toBe(400);
    const scopes = await oauth.browser().leave(`${url}&scope=openid`);
    expect(scopes.searchParams.get('error')).toBe('invalid_request');
  });

  it('of a web client is rejected if the port of its loopback redirect URI differs', async () => {
    const clientId = await oauth.client({ redirect_uris: ['http://127.0.0.1:5173/cb'] });
    const { url } = oauth.request(clientId, { redirect_uri: 'http://127.0.0.1:5174/cb' });
    expect((await oauth.browser().view(url)).status).toBe(400);
  });
});

describe('a token request', () => {
  it.each([
    'password',
    'client_credentials',
    'implicit',
    'urn:ietf:params:oauth:grant-type:device_code',
    'urn:ietf:params:oauth:grant-type:jwt-bearer',
    'urn:ietf:params:oauth:grant-type:token-exchange',
  ])('with the grant type %s is rejected', async (grant_type) => {
    const [client_id, { username }] = [await oauth.client(), await oauth.member()];
    const form = { grant_type, client_id, username, password: PASSWORD };
    expect(await errorOf(form)).toBe('unsupported_grant_type');
  });

  it('with a repeated parameter is rejected, and the code is not consumed', async () => {
    const form = await newCode();
    for (const name of ['code', 'code_verifier', 'redirect_uri', 'client_id']) {
      const body = new URLSearchParams(form);
      body.append(name, form[name]!);
      const { status } = await fetch(`${oauth.issuer}/oauth/token`, { method: 'POST', body });
      expect([name, status]).toEqual([name, 400]);
    }
    expect((await oauth.token(form)).status).toBe(200);
  });

  it('ignores parameters in the query', async () => {
    const form = await newCode();
    const { status } = await oauth.post(`/oauth/token?${new URLSearchParams(form)}`, {});
    expect(status).toBe(400);
    expect((await oauth.token(form)).status).toBe(200);
  });

  it('is rejected with a token as the code, or with an access token, ID token or code as the refresh token', async () => {
    const [client_id, { username }] = [await oauth.client(), await oauth.member()];
    const form = await oauth.code(client_id, username);
    const { access_token, refresh_token, id_token } = await oauth.tokens(client_id, username);
    for (const wrong of [access_token, refresh_token, id_token!])
      expect(await errorOf({ ...form, code: wrong })).toBe('invalid_grant');
    for (const wrong of [access_token, form.code!, id_token!])
      expect((await oauth.refresh(client_id, wrong)).body.error).toBe('invalid_grant');
    for (const wrong of [refresh_token, form.code!, id_token!]) expect(await oauth.me(wrong)).toBe(401);
    expect((await oauth.token(form)).status).toBe(200);
    expect((await oauth.refresh(client_id, refresh_token)).status).toBe(200);
  });

  it('of a confidential client is rejected with a used, expired or otherwise invalid assertion', async () => {
    const { id, assertion } = await clientWithKey(oauth);
    const { refresh_token } = await oauth.signedIn();
    // The refresh token belongs to another client, so an authenticated client gets `invalid_grant`.
    const send = (form: Record<string, string>) =>
      errorOf({ grant_type: 'refresh_token', refresh_token, ...form });
    const good = await assertion();
    expect(await send(good)).toBe('invalid_grant');
    expect(await send(good)).toBe('invalid_client');
    for (const wrong of [
      { exp: Math.floor(Date.now() / 1000) - 1 },
      { aud: 'https://other.example' },
      { iss: 'other' },
      { jti: undefined },
    ])
      expect(await send(await assertion(wrong))).toBe('invalid_client');
    const foreign = { aud: oauth.issuer, sub: id, iss: id };
    const { privateKey } = await generateKeyPair('ES256');
    expect(await send(await assertionOf(id, privateKey, 'ES256', foreign))).toBe('invalid_client');
    expect(await send(await assertion({}, 'ES256', { crit: ['b64'], b64: true }))).toBe('invalid_client');
  });
});

describe('a pushed request', () => {
  it('is rejected for another client, which learns nothing about the request', async () => {
    const owner = await oauth.client();
    const { searchParams } = oauth.request(owner, { state: 'of the owner' }).url;
    const pushed = await oauth.post('/oauth/par', Object.fromEntries(searchParams));
    const url = oauth.pushedUrl(await oauth.client(), pushed);
    expect((await oauth.browser().view(url)).status).toBe(400);
    url.searchParams.set('redirect_uri', REDIRECT_URI);
    const told = (await oauth.browser().leave(url)).searchParams;
    expect([told.get('error'), told.get('state')]).toEqual(['invalid_request_uri', null]);
    url.searchParams.set('client_id', owner);
    expect((await oauth.browser().view(url)).status).toBe(200);
  });

  it('is rejected for an unregistered redirect URI, and its parameters cannot be changed later', async () => {
    const clientId = await oauth.client();
    const wrong = oauth.request(clientId, { redirect_uri: 'https://evil.example/' }).url.searchParams;
    expect((await oauth.post('/oauth/par', Object.fromEntries(wrong))).status).toBe(400);
    const { searchParams } = oauth.request(clientId, { scope: 'profile:read' }).url;
    const url = oauth.pushedUrl(clientId, await oauth.post('/oauth/par', Object.fromEntries(searchParams)));
    url.searchParams.set('redirect_uri', 'https://evil.example/');
    url.searchParams.set('scope', 'profile:write');
    const { id, username } = await oauth.member();
    const back = await oauth.browser().authorize(url, { username });
    expect(back.origin + back.pathname).toBe(REDIRECT_URI);
    const consents = await oauth.query('SELECT granted FROM oauth_consents WHERE user_id = $1', [id]);
    expect(consents).toEqual([{ granted: ['profile:read'] }]);
  });
});

describe('an access token', () => {
  it('is rejected in the query and in the body', async () => {
    const { access_token } = await oauth.signedIn();
    expect((await fetch(`${oauth.issuer}/api/public/me?access_token=${access_token}`)).status).toBe(401);
    const inBody = await fetch(`${oauth.issuer}/api/public/profile`, {
      method: 'PUT',
      body: new URLSearchParams({ access_token }),
    });
    expect(inBody.status).toBe(401);
  });

  it.each(['a.b.c', 'x'.repeat(44), 'x'.repeat(8000), 'é'.repeat(43), 'x'.repeat(43)])(
    'that was never issued gets 401 with a challenge: case %#',
    async (token) => {
      const Authorization = Buffer.from(`Bearer ${token}`).toString('latin1');
      const { status, headers } = await rawRequest(oauth.issuer, 'GET', '/api/public/me', { Authorization });
      expect([status, headers['www-authenticate']]).toEqual([
        401,
        `Bearer realm="public-user-api", error="invalid_token", resource_metadata="${oauth.issuer}/.well-known/oauth-protected-resource/api/public"`,
      ]);
    },
  );

  it('for another audience is rejected', async () => {
    const { access_token } = await oauth.signedIn();
    await oauth.query(
      `UPDATE oauth_tokens SET payload = payload || '{"aud": "https://other.example/"}' WHERE model = 'AccessToken'`,
    );
    expect(await oauth.me(access_token)).toBe(401);
  });

  it('is rejected within a second after its client or its member was disabled', async () => {
    const { id, username, clientId, access_token } = await oauth.signedIn();
    const other = await oauth.tokens(await oauth.client(), username);
    expect([await oauth.me(access_token), await oauth.me(other.access_token)]).toEqual([200, 200]);
    await oauth.query('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [clientId]);
    await oauth.rejectedSoon(access_token);
    expect(await oauth.me(other.access_token)).toBe(200);
    await oauth.query('UPDATE users SET disabled_at = now() WHERE id = $1', [id]);
    await oauth.rejectedSoon(other.access_token);
  });

  thorough.it('of a disabled member is rejected by the guard, even if the grant still exists', async () => {
    const { id, access_token } = await oauth.signedIn();
    await disableAlone(id);
    await oauth.rejectedSoon(access_token);
  });

  it('is rejected after 10 minutes, by the database’s clock', async () => {
    const { access_token } = await oauth.signedIn();
    await oauth.age('oauth_tokens', 480); // leaves a slow host two minutes
    expect(await oauth.me(access_token)).toBe(200);
    await oauth.age('oauth_tokens', 121);
    expect(await oauth.me(access_token)).toBe(401);
  });

  thorough.it('is accepted by the API’s guard only while oidc-provider accepts the token', async () => {
    const { AuthorizationServer } = await import('../../src/authorization-server/authorization-server.js');
    const { provider } = oauth.api.app.get(AuthorizationServer);
    const { access_token } = await oauth.signedIn();
    const known = await provider.AccessToken.find(access_token);
    expect(known).toMatchObject({ aud: `${oauth.issuer}/api/public`, kind: 'AccessToken' });
    expect(await (await oauth.get('/api/public/credential', access_token)).json()).toMatchObject({
      type: 'oauth_token',
      user_id: Number(known!.accountId),
      client_id: known!.clientId,
      key_id: null,
      scopes: known!.scope!.split(' '),
    });
    await oauth.age('oauth_tokens', 601);
    expect(await provider.AccessToken.find(access_token)).toBeUndefined();
    expect(await oauth.me(access_token)).toBe(401);
  });
});

describe('a token bound by DPoP', () => {
  async function bound() {
    const proof = await dpopSigner();
    const form = await newCode();
    const htu = `${oauth.issuer}/oauth/token`;
    const { body } = await oauth.token(form, { DPoP: await proof({ htm: 'POST', htu }) });
    const good = { htm: 'GET', htu: `${oauth.issuer}/api/public/me`, ath: athOf(body.access_token) };
    const me = (dpop: string | undefined, scheme = 'DPoP') => {
      const headers = { Authorization: `${scheme} ${body.access_token}`, ...(dpop ? { DPoP: dpop } : {}) };
      return fetch(`${oauth.issuer}/api/public/me`, { headers });
    };
    return { body, proof, good, me };
  }

  it('is accepted with a fresh proof, but not with the same proof again', async () => {
    const { proof, good, me, body } = await bound();
    expect(body.token_type).toBe('DPoP');
    const dpop = await proof(good);
    expect((await me(dpop)).status).toBe(200);
    const replayed = await me(dpop);
    expect([replayed.status, replayed.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^DPoP .*error="invalid_dpop_proof".*algs="ES256 Ed25519 EdDSA"/),
    ]);
  });

  it('is rejected as Bearer, with or without a proof', async () => {
    const { proof, good, me } = await bound();
    expect((await me(undefined, 'Bearer')).status).toBe(401);
    expect((await me(await proof(good), 'Bearer')).status).toBe(401);
  });

  it('is rejected without a proof, or with an invalid or old proof or a proof for another request', async () => {
    const { proof, good, me } = await bound();
    const other = await generateKeyPair('ES256');
    const wrong = [
      undefined,
      'garbage',
      await proof({ ...good, htm: 'POST' }),
      await proof({ ...good, htu: `${oauth.issuer}/api/public/profile` }),
      await proof({ ...good, htu: 'https://other.example/api/public/me' }),
      await proof({ ...good, ath: 'x' }),
      await proof({ ...good, ath: undefined }),
      await proof({ ...good, jti: undefined }),
      await proof({ ...good, iat: Math.floor(Date.now() / 1000) - 120 }),
      await proof({ ...good, iat: Math.floor(Date.now() / 1000) + 120 }),
      await proof(good, other.privateKey, await exportJWK(other.publicKey)),
      await proof(good, other.privateKey),
    ];
    for (const dpop of wrong) expect((await me(dpop)).status).toBe(401);
    expect((await me(await proof(good))).status).toBe(200);
  });

  it('is not issued for an invalid or old proof, and the code is not consumed', async () => {
    const { proof } = await bound();
    const form = await newCode();
    const good = { htm: 'POST', htu: `${oauth.issuer}/oauth/token` };
    const wrong = [
      'garbage',
      await proof({ ...good, htm: 'GET' }),
      await proof({ ...good, htu: `${oauth.issuer}/oauth/par` }),
      await proof({ ...good, jti: undefined }),
      await proof(good, (await generateKeyPair('ES256')).privateKey),
    ];
    for (const DPoP of wrong)
      expect((await oauth.token(form, { DPoP })).body.error).toBe('invalid_dpop_proof');
    const old = await proof({ ...good, iat: Math.floor(Date.now() / 1000) - 600 });
    expect((await oauth.token(form, { DPoP: old })).body.error).toBe('use_dpop_nonce'); // RFC 9449 §8
    expect((await oauth.token(form, { DPoP: await proof(good) })).body.token_type).toBe('DPoP');
  });

  thorough.it('is not issued for a used proof, even if the proof’s first request was rejected', async () => {
    const { proof } = await bound();
    const { clientId, refresh_token } = await oauth.signedIn();
    const DPoP = await proof({ htm: 'POST', htu: `${oauth.issuer}/oauth/token` });
    const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token };
    const refused = await oauth.token({ ...form, resource: 'https://other.example/' }, { DPoP });
    expect(refused.body.error).toBe('invalid_target');
    expect((await oauth.token(form, { DPoP })).body.error).toBe('invalid_grant');
    expect((await oauth.token(form)).status).toBe(200);
  });

  it('must be issued with a proof: a bearer token sent as DPoP is rejected', async () => {
    const { access_token } = await oauth.signedIn();
    const response = await fetch(`${oauth.issuer}/api/public/me`, {
      headers: { Authorization: `DPoP ${access_token}` },
    });
    expect(response.status).toBe(401);
  });

  it.each(['public', 'confidential'])(
    'of a %s client cannot be refreshed without its key, and a failed request consumes no token',
    async (kind) => {
      const publicId = await oauth.client();
      const confidential = await clientWithKey(oauth);
      const isPublic = kind === 'public';
      const authentication = async () =>
        isPublic ? { client_id: publicId } : await confidential.assertion();
      const [own, other] = [await dpopKey(oauth), await dpopKey(oauth)];
      const { username } = await oauth.member();
      const code = await oauth.code(isPublic ? publicId : confidential.id, username);
      const first = await oauth.token({ ...code, ...(await authentication()) }, await own());
      expect([first.status, first.body.token_type]).toEqual([200, 'DPoP']);
      const refresh = async (token: string, proof: Record<string, string>) =>
        oauth.token(
          { grant_type: 'refresh_token', refresh_token: token, ...(await authentication()) },
          proof,
        );
      for (const wrong of [await other(), {}]) {
        const { status, body } = await refresh(first.body.refresh_token, wrong);
        expect([status, body.error]).toEqual([400, 'invalid_grant']);
      }
      const second = await refresh(first.body.refresh_token, await own());
      expect([second.status, second.body.token_type]).toEqual([200, 'DPoP']);
      // The used token in its grace period and the new token require the key.
      for (const used of [first, second])
        expect((await refresh(used.body.refresh_token, await other())).status).toBe(400);
      expect((await refresh(second.body.refresh_token, await own())).status).toBe(200);
    },
  );
});

it('another client learns nothing about a token from introspection, and cannot revoke the token', async () => {
  const { access_token } = await oauth.signedIn();
  const other = await oauth.client();
  const seen = await oauth.post('/oauth/introspect', { token: access_token, client_id: other });
  expect(seen.body).toEqual({ active: false });
  await oauth.post('/oauth/revoke', { token: access_token, client_id: other });
  expect(await oauth.me(access_token)).toBe(200);
});

describe('a page of another origin', () => {
  it('is not allowed to send cookies, or to read a page', async () => {
    const { clientId, access_token } = await oauth.signedIn();
    const authorize = oauth.request(clientId).url;
    for (const origin of ['https://app.example', 'https://evil.example', 'null']) {
      const preflight = { Origin: origin, 'Access-Control-Request-Method': 'POST' };
      const paths = '/oauth/token /oauth/revoke /oauth/userinfo /account/apps /interaction/x/consent'.split(
        ' ',
      );
      const answers = [
        ...paths.map((path) => fetch(oauth.issuer + path, { method: 'OPTIONS', headers: preflight })),
        fetch(`${oauth.issuer}/oauth/userinfo`, {
          headers: { Origin: origin, Authorization: `Bearer ${access_token}` },
        }),
        fetch(`${oauth.issuer}/oauth/token`, { method: 'POST', headers: { Origin: origin } }),
      ];
      for (const { headers } of await Promise.all(answers))
        expect(headers.get('access-control-allow-credentials')).toBeNull();
      for (const path of [authorize, '/account/apps', '/interaction/x', '/oauth/logout']) {
        const { headers } = await oauth.browser().send(path, { headers: { Origin: origin } });
        expect([path, headers.get('access-control-allow-origin')]).toEqual([path, null]);
      }
    }
  });

  thorough.it('cannot revoke or introspect tokens unless its origin is registered', async () => {
    const client_id = await oauth.client({ allowed_origins: ['https://app.example'] });
    const { access_token: token } = await oauth.tokens(client_id, (await oauth.member()).username);
    for (const path of ['/oauth/introspect', '/oauth/revoke'])
      for (const Origin of ['https://evil.example', 'null'])
        expect((await oauth.post(path, { token, client_id }, { Origin })).status).toBe(400);
    expect(await oauth.me(token)).toBe(200);
    const own = { Origin: 'https://app.example' };
    const { status } = await oauth.post('/oauth/revoke', { token, client_id }, own);
    expect([status, await oauth.me(token)]).toEqual([200, 401]);
  });
});

it('a forged request cannot change URLs in metadata or redirects by its headers', async () => {
  const poisoned = {
    Host: 'evil.example',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'https',
    Forwarded: 'host=evil.example',
  };
  const get = (path: string) => rawRequest(oauth.issuer, 'GET', path, poisoned);
  const metadata = await get('/.well-known/oauth-authorization-server');
  expect(metadata.text).not.toContain('evil.example');
  expect(JSON.parse(metadata.text).token_endpoint).toBe(`${oauth.issuer}/oauth/token`);
  const { url } = oauth.request(await oauth.client());
  const { headers } = await get(url.pathname + url.search);
  expect(new URL(headers.location!, oauth.issuer).origin).toBe(oauth.issuer);
});

describe('a response', () => {
  it('without a body has no Content-Type', async () => {
    const { clientId: client_id, access_token: token } = await oauth.signedIn();
    const headers = { 'Access-Control-Request-Method': 'POST', Origin: 'x' };
    const revoking = { method: 'POST', body: new URLSearchParams({ client_id, token }) };
    for (const [path, init] of [
      ['/oauth/revoke', revoking],
      ['/oauth/token', { method: 'OPTIONS', headers }],
      ['/api/public/me', { method: 'OPTIONS', headers }],
    ] as const) {
      const answer = await fetch(oauth.issuer + path, init);
      expect([path, await answer.text(), answer.headers.get('content-type')]).toEqual([path, '', null]);
    }
  });

  it('of the authorization server has the security headers, also on errors and redirects', async () => {
    const { url } = oauth.request(await oauth.client());
    const browser = oauth.browser();
    const answers = [
      await browser.send(url),
      await browser.send('/oauth/jwks'),
      await browser.send('/oauth/logout'),
      await browser.send('/account/apps'),
      await browser.send('/oauth/authorize?client_id=nobody'),
      await fetch(`${oauth.issuer}/oauth/token`, { method: 'POST' }),
    ];
    for (const { headers } of answers) {
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
    }
  });
});
