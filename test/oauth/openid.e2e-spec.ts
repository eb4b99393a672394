import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from 'jose';
import * as client from 'openid-client';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { puaJson } from '../support/command-line.js';
import { thorough } from '../support/database.js';
import { OauthTest, REDIRECT_URI, scopesOn, type FormPage } from '../support/oauth.js';
import { until } from '../support/timing.js';
import { clientWithKey } from '../support/client-kinds.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const userinfo = async (accessToken: string) => (await oauth.get('/oauth/userinfo', accessToken)).json();

async function signedIn(scope: string, fields: Record<string, unknown> = {}) {
  const member = await oauth.member(fields);
  const clientId = await oauth.client();
  const { status, body } = await oauth.token(await oauth.code(clientId, member.username, { scope }));
  expect(status).toBe(200);
  return { member, clientId, body, claims: decodeJwt(body.id_token!) };
}

describe('an OpenID Connect request', () => {
  const ADA = { stored_display_name: 'Ada Lovelace', profile_picture: 'https://img.example/ada.png' };
  const SAID = { name: 'Ada Lovelace', picture: ADA.profile_picture };

  it('for the profile scope gets name, username and picture in the ID token, also after a refresh', async () => {
    const { member, clientId, body, claims } = await signedIn('openid profile email', ADA);
    const said = { ...SAID, sub: String(member.id), preferred_username: member.username };
    expect(claims).toMatchObject(said);
    expect(decodeJwt((await oauth.refresh(clientId, body.refresh_token)).body.id_token!)).toMatchObject(said);
  });

  it('gets no picture claim if the member has no picture', async () => {
    const { body, claims } = await signedIn('openid profile');
    expect(claims).not.toHaveProperty('picture');
    expect(await userinfo(body.access_token)).not.toHaveProperty('picture');
  });

  it.each([
    ['openid', false],
    ['events:read', false],
    ['openid events:read', false],
    ['profile:read', true],
    ['openid profile:read', true],
    ['openid profile', true],
    ['openid profile events:read', true],
  ])(
    'for %j gets the profile from userinfo: %s; only the profile scope adds it to the ID token',
    async (scope, withProfile) => {
      const { username, id } = await oauth.member(ADA);
      const { access_token, id_token } = await oauth.tokens(await oauth.client(), username, { scope });
      if (id_token && !/profile( |$)/.test(scope)) {
        const claims = decodeJwt(id_token);
        expect(claims.sub).toBe(String(id));
        for (const claim of ['name', 'preferred_username', 'picture', 'email'])
          expect(claims).not.toHaveProperty(claim);
      }
      const profile = withProfile ? { ...SAID, preferred_username: username } : {};
      expect(await userinfo(access_token)).toEqual({ sub: String(id), ...profile });
    },
  );

  it('for the email scope gets no email claim; the consent page does not list the scope, and appears once', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const scope = 'openid profile email profile:read';
    const { url, redeem } = oauth.request(clientId, { scope });
    const consent = await browser.signIn(url, username);
    expect(scopesOn(consent.html)).toEqual(['openid', 'profile', 'profile:read']);
    const { body } = await redeem(await browser.allow(consent));
    expect(decodeJwt(body.id_token!)).not.toHaveProperty('email');
    expect(body.scope).toBe('profile:read');
    const stored = `SELECT FROM oauth_consents WHERE 'email' = ANY(granted || rejected)`;
    expect(await oauth.query(stored)).toEqual([]);
    const again = await browser.leave(oauth.request(clientId, { scope, prompt: 'none' }).url);
    expect(again.searchParams.has('code')).toBe(true);
  });

  it('for unknown scopes is accepted without them (Core §3.1.2.1), or gets invalid_scope if it has no known scope', async () => {
    const { body } = await signedIn('openid groups profile:read https://graph.example/User.Read phone');
    expect(body.scope).toBe('profile:read');
    const none = oauth.request(await oauth.client(), { scope: 'groups phone' }).url;
    expect(Object.fromEntries((await oauth.browser().leave(none)).searchParams)).toMatchObject({
      error: 'invalid_scope',
      error_description: 'scope must contain at least one of scopes_supported',
    });
  });
});

describe('an authorization request by POST', () => {
  const send = (path: string, form: URLSearchParams | string, browser = oauth.browser()) =>
    browser.open(path, {
      method: 'POST',
      body: String(form),
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    });

  it('gets a sign-in page, or a code and the state if the member is signed in (Core §3.1.2.1)', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const first = oauth.request(clientId, { scope: 'openid', state: 'a b&c=ä' }).url;
    const page = (await send('/oauth/authorize', first.searchParams, browser)) as FormPage;
    expect(page.url.pathname).toMatch(/^\/interaction\//);
    await browser.authorize(first, { username });
    const back = (await send('/oauth/authorize', first.searchParams, browser)) as URL;
    expect(back.searchParams.get('code')).not.toBeNull();
    expect(back.searchParams.get('state')).toBe('a b&c=ä');
  });

  it('gets status 400 instead of a redirect if the redirect URI is unregistered or missing', async () => {
    const clientId = await oauth.client();
    const { searchParams } = oauth.request(clientId, { redirect_uri: 'https://evil.example/' }).url;
    for (const form of [
      searchParams,
      'a=%0d%0aSet-Cookie:x=y',
      'a=ä\u0001',
      `state=%00&${searchParams}`,
      '',
    ]) {
      const page = (await send('/oauth/authorize', form)) as FormPage;
      expect([String(form), page.status]).toEqual([String(form), 400]);
    }
  });
});

thorough.describe('a client that is registered for RS256', () => {
  const CREATE = ['clients', 'create', '--name', 'Old', '--type', 'web', '--redirect-uri', REDIRECT_URI];
  const create = (...more: string[]) =>
    puaJson<{ client_id: string; id_token_signed_response_alg: string }>(oauth.api.environment, [
      ...CREATE,
      ...more,
    ]);

  /** Gets an ID token. An algorithm's first client makes the server create keys; it responds 503 until it has loaded them. */
  async function idToken(clientId: string): Promise<string> {
    const { username } = await oauth.member();
    const { url } = oauth.request(clientId, { scope: 'openid profile' });
    await until(async () => (await fetch(url, { redirect: 'manual' })).status !== 503);
    return (await oauth.tokens(clientId, username)).id_token!;
  }

  it('gets ID tokens signed with RS256, and the server publishes and rotates the RS256 keys', async () => {
    const { client_id: clientId, id_token_signed_response_alg } = await create('--id-token-alg', 'RS256');
    expect(id_token_signed_response_alg).toBe('RS256');
    const before = await idToken(clientId);
    expect(decodeProtectedHeader(before).alg).toBe('RS256');
    const keySet = () => oauth.json<JSONWebKeySet>('/oauth/jwks');
    const verify = async (token: string) =>
      jwtVerify(token, createLocalJWKSet(await keySet()), {
        issuer: oauth.issuer,
        audience: clientId,
        algorithms: ['RS256'],
      });
    await verify(before);

    const service = new SigningKeysService(oauth.dataSource, oauth.api.config);
    const next = (await service.list()).find(({ alg, status }) => alg === 'RS256' && status === 'next')!.kid;
    await service.rotate();
    let after = before;
    await until(async () => {
      after = await idToken(clientId);
      return decodeProtectedHeader(after).kid === next;
    });
    await verify(after);
    await verify(before);
    await service.rotate(); // retires one key: the database requires the deletion of its private half
    const kept = (await service.list()).filter(({ status }) => status !== 'retired');
    expect(kept.map(({ alg, status }) => `${alg} ${status}`).sort()).toEqual(
      ['ES256', 'RS256'].flatMap((alg) =>
        ['current', 'next', 'previous'].map((status) => `${alg} ${status}`),
      ),
    );

    for (const key of (await keySet()).keys)
      for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi']) expect(key).not.toHaveProperty(member);
  });

  it('does not change other clients, which get ES256', async () => {
    const { client_id: clientId } = await create();
    expect(decodeProtectedHeader(await idToken(clientId)).alg).toBe('ES256');
  });

  it('gets ID tokens that pass verification in a library that accepts only RS256', async () => {
    const { client_id: clientId } = await create('--id-token-alg', 'RS256');
    await idToken(clientId);
    const metadata = { id_token_signed_response_alg: 'RS256' };
    const configuration = await oauth.configuration(clientId, client.None(), metadata);
    const { url, verifier } = oauth.request(clientId, { scope: 'openid' });
    const { id, username } = await oauth.member();
    const back = await oauth.browser().authorize(url, { username });
    const tokens = await client.authorizationCodeGrant(configuration, back, { pkceCodeVerifier: verifier });
    expect(tokens.claims()?.sub).toBe(String(id));
  });
});

describe('an HTTP Basic header', () => {
  const basic = (id: string, password = '') => ({
    Authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${password}`).toString('base64')}`,
  });

  it.each(['with its client_id also in the body', 'without a client_id in the body'])(
    'with an empty password identifies a public client, %s',
    async (how) => {
      const { username, clientId } = await oauth.memberAndClient();
      const { client_id, ...code } = await oauth.code(clientId, username);
      const named: Record<string, string> = how.startsWith('with its') ? { client_id: client_id! } : {};
      const { status, body } = await oauth.token({ ...code, ...named }, basic(clientId));
      expect(status).toBe(200);
      const refreshing = { grant_type: 'refresh_token', refresh_token: body.refresh_token, ...named };
      const refreshed = await oauth.token(refreshing, basic(clientId));
      expect(refreshed.status).toBe(200);
      const revoking = { token: refreshed.body.access_token, ...named };
      expect((await oauth.post('/oauth/revoke', revoking, basic(clientId))).status).toBe(200);
      expect(await oauth.me(refreshed.body.access_token)).toBe(401);
    },
  );

  it('is rejected if the body names another client, the client has keys, or the header has a password or no client', async () => {
    const [clientId, other] = [await oauth.client(), await oauth.client()];
    const { id: confidential } = await clientWithKey(oauth);
    const { username } = await oauth.member();
    const { client_id: _, ...code } = await oauth.code(clientId, username);
    const statusOf = async (form: Record<string, string>, headers: Record<string, string>) => {
      const { status, body } = await oauth.token(form, headers);
      return `${status} ${body.error}`;
    };
    expect(await statusOf({ ...code, client_id: other }, basic(clientId))).toBe('400 invalid_request');
    expect(await statusOf({ ...code, client_id: clientId }, basic(clientId, 'x'))).toBe('401 invalid_client');
    expect(await statusOf(code, basic(confidential))).toBe('401 invalid_client');
    expect(await statusOf(code, { Authorization: 'Basic Og==' })).toBe('400 invalid_request');
    expect((await oauth.token(code, basic(clientId))).status).toBe(200); // the refresh token is not consumed
  });
});
