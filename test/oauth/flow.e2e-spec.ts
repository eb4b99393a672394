import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPair, exportJWK } from 'jose';
import * as client from 'openid-client';
import { ALL, asksForPassword, OauthTest, REDIRECT_URI, scopesOn } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const apiUrl = (path: string) => new URL(`/api/public${path}`, oauth.issuer);

async function signIn(
  configuration: client.Configuration,
  username: string,
  parameters: Record<string, string> = {},
  options: client.AuthorizationCodeGrantOptions = {},
) {
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: REDIRECT_URI,
    scope: ALL,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    ...parameters,
  });
  const back = await oauth.browser().authorize(url, { username });
  const tokens = await client.authorizationCodeGrant(
    configuration,
    back,
    { pkceCodeVerifier: verifier, expectedState: state },
    undefined,
    options,
  );
  return { tokens, back };
}

describe('a public web client', () => {
  it('signs a member in with code and PKCE, reads the API, refreshes its token, and reads userinfo', async () => {
    const member = await oauth.member({ first_name: 'Ada' });
    const configuration = await oauth.configuration(await oauth.client());
    const { tokens, back } = await signIn(configuration, member.username);
    expect(back.origin + back.pathname).toBe(REDIRECT_URI);
    expect(tokens.claims()?.sub).toBe(String(member.id));
    expect(tokens.expires_in).toBe(600);
    expect(`openid ${tokens.scope}`.split(' ').sort()).toEqual(ALL.split(' ').sort());
    const { access_token } = tokens;
    const profile = await client.fetchProtectedResource(configuration, access_token, apiUrl('/me'), 'GET');
    expect(await profile.json()).toMatchObject({ id: member.id, first_name: 'Ada' });
    const refreshed = await client.refreshTokenGrant(configuration, tokens.refresh_token!);
    expect(refreshed.refresh_token).not.toBe(tokens.refresh_token);
    expect(await client.fetchUserInfo(configuration, refreshed.access_token, String(member.id))).toEqual({
      sub: String(member.id),
      name: 'Ada',
      preferred_username: member.username,
    });
  });

  it('may push its authorization request', async () => {
    const member = await oauth.member();
    const configuration = await oauth.configuration(await oauth.client());
    const verifier = client.randomPKCECodeVerifier();
    const url = await client.buildAuthorizationUrlWithPAR(configuration, {
      redirect_uri: REDIRECT_URI,
      scope: 'profile:read',
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    expect(url.searchParams.get('request_uri')).toMatch(/^urn:/);
    const browser = oauth.browser();
    const back = await browser.authorize(url, { username: member.username });
    const tokens = await client.authorizationCodeGrant(configuration, back, { pkceCodeVerifier: verifier });
    expect(tokens.scope).toBe('profile:read');
    expect((await browser.view(url)).status).toBe(400);
  });

  it('binds its tokens to a DPoP key, and sends the tokens with a proof', async () => {
    const member = await oauth.member();
    const configuration = await oauth.configuration(await oauth.client());
    const DPoP = client.getDPoPHandle(configuration, await client.randomDPoPKeyPair('ES256'));
    const { tokens } = await signIn(configuration, member.username, {}, { DPoP });
    expect(tokens.token_type).toBe('dpop');
    const profile = await client.fetchProtectedResource(
      configuration,
      tokens.access_token,
      apiUrl('/me'),
      'GET',
      undefined,
      undefined,
      { DPoP },
    );
    expect(profile.status).toBe(200);
    const options = { DPoP };
    const refreshed = await client.refreshTokenGrant(
      configuration,
      tokens.refresh_token!,
      undefined,
      options,
    );
    expect(refreshed.token_type).toBe('dpop');
  });

  it('introspects its token, and revokes the token together with its refresh token', async () => {
    const member = await oauth.member();
    const configuration = await oauth.configuration(await oauth.client());
    const { tokens } = await signIn(configuration, member.username);
    expect(await client.tokenIntrospection(configuration, tokens.access_token)).toMatchObject({
      active: true,
      sub: String(member.id),
      aud: `${oauth.issuer}/api/public`,
    });
    await client.tokenRevocation(configuration, tokens.access_token);
    expect(await client.tokenIntrospection(configuration, tokens.access_token)).toEqual({ active: false });
    expect(await oauth.me(tokens.access_token)).toBe(401);
    const refreshing = client.refreshTokenGrant(configuration, tokens.refresh_token!);
    await expect(refreshing).rejects.toMatchObject({ error: 'invalid_grant' });
  });
});

describe('a native client', () => {
  it.each(['http://127.0.0.1:51234/cb', 'http://[::1]:9/cb'])(
    'may use a loopback port that is not registered: %s',
    async (uri) => {
      const member = await oauth.member();
      const redirect_uris = ['http://127.0.0.1/cb', 'http://[::1]/cb'];
      const configuration = await oauth.configuration(await oauth.client({ type: 'native', redirect_uris }));
      const { tokens, back } = await signIn(configuration, member.username, { redirect_uri: uri });
      expect(back.href.startsWith(`${uri}?`)).toBe(true);
      expect(await oauth.me(tokens.access_token)).toBe(200);
    },
  );

  it('may use a redirect URI with its own scheme; the member must consent each time', async () => {
    const member = await oauth.member();
    const redirect_uri = 'com.example.app:/callback';
    const clientId = await oauth.client({ type: 'native', redirect_uris: [redirect_uri] });
    const browser = oauth.browser();
    const { url } = oauth.request(clientId, { redirect_uri });
    expect((await browser.authorize(url, { username: member.username })).protocol).toBe('com.example.app:');
    expect(scopesOn((await browser.view(url)).html)).toContain('events:read');
  });
});

it('a confidential client authenticates with private_key_jwt, and is rejected without it', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const member = await oauth.member();
  const clientId = await oauth.client({ jwks: { keys: [(await exportJWK(publicKey)) as never] } });
  const configuration = await oauth.configuration(clientId, client.PrivateKeyJwt(privateKey as never));
  const { tokens } = await signIn(configuration, member.username);
  const refreshed = await client.refreshTokenGrant(configuration, tokens.refresh_token!);
  expect(await oauth.me(refreshed.access_token)).toBe(200);
  const { status, body } = await oauth.refresh(clientId, refreshed.refresh_token!);
  expect([status, body.error]).toEqual([401, 'invalid_client']);
});

describe('consent', () => {
  /** A browser in which a new member has allowed profile:read, and declined events:read. */
  async function declining(scope: string) {
    const [{ username }, clientId, browser] = [await oauth.member(), await oauth.client(), oauth.browser()];
    const ask = (parameters: Record<string, string>) => oauth.request(clientId, parameters).url;
    await browser.authorize(ask({ scope }), { username, untick: ['events:read'] });
    return { username, clientId, browser, ask };
  }

  it('grants the ticked scopes, is remembered, and is requested again for more scopes', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    const scope = 'openid profile:read events:read';
    const first = oauth.request(clientId, { scope });
    const back = await browser.authorize(first.url, { username: member.username, untick: ['events:read'] });
    const { body } = await first.redeem(back);
    expect(body.scope).toBe('profile:read');
    expect((await oauth.get('/api/public/events', body.access_token)).status).toBe(403);

    expect((await browser.leave(oauth.request(clientId, { scope }).url)).searchParams.has('code')).toBe(true);

    const more = await browser.view(oauth.request(clientId, { scope: `${scope} connections:read` }).url);
    expect(scopesOn(more.html)).toContain('connections:read');
  });

  it('is requested again for a declined scope only if the app requests no other API scope', async () => {
    const both = 'openid profile:read events:read';
    const { username, clientId, browser, ask } = await declining(both);
    await browser.leave(ask({ scope: both }));
    for (const scope of ['events:read', 'openid events:read', 'openid offline_access events:read'])
      expect((await browser.view(ask({ scope }))).html).toMatch(
        / asks again<[^]*value="events:read" checked/,
      );
    const more = await browser.view(ask({ scope: 'events:read connections:read' }));
    expect(more.html).toMatch(/value="events:read"(?! checked)/);
    const silent = await browser.leave(ask({ scope: 'openid events:read', prompt: 'none' }));
    expect(silent.searchParams.get('error')).toBe('consent_required');

    const alone = oauth.request(clientId, { scope: 'events:read' });
    const { body } = await alone.redeem(await browser.authorize(alone.url, { username }));
    expect(body.scope).toBe('events:read');
    await browser.leave(ask({ scope: 'events:read' }));
  });

  it('is requested again for prompt=consent; declined scopes are unticked', async () => {
    const scope = 'openid profile:read events:read';
    const { browser, ask } = await declining(scope);
    const page = await browser.view(ask({ scope, prompt: 'consent' }));
    expect(page.html).toMatch(/value="profile:read" checked/);
    expect(page.html).toMatch(/value="events:read"(?! checked)/);
    expect((await browser.allow(page)).searchParams.has('code')).toBe(true);
  });

  it('returns access_denied to the client each time that the member declines all scopes', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    const refusing = { username: member.username, untick: ['events:read'] };
    for (let i = 0; i < 2; i++) {
      const { url } = oauth.request(clientId, { scope: 'events:read' });
      expect((await browser.authorize(url, refusing)).searchParams.get('error')).toBe('access_denied');
    }
  });

  it('returns access_denied, state and iss to the client if the member denies the request', async () => {
    const member = await oauth.member();
    const { url } = oauth.request(await oauth.client(), { state: 's1' });
    const back = await oauth.browser().authorize(url, { username: member.username, deny: true });
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'access_denied',
      state: 's1',
      iss: oauth.issuer,
    });
  });

  it('is not requested if the client is not registered for a scope: the client gets invalid_scope', async () => {
    const { url } = oauth.request(await oauth.client({ scopes: ['profile:read'] }));
    expect((await oauth.browser().leave(url)).searchParams.get('error')).toBe('invalid_scope');
  });
});

describe('sign-in', () => {
  it('as another member is possible with prompt=login; the token is then for that member', async () => {
    const [one, two] = [await oauth.member(), await oauth.member()];
    const clientId = await oauth.client();
    const browser = oauth.browser();
    await oauth.code(clientId, one.username, {}, browser);
    const second = await oauth.code(clientId, two.username, { prompt: 'login' }, browser);
    const { body } = await oauth.token(second);
    expect(await (await oauth.get('/api/public/me', body.access_token)).json()).toMatchObject({ id: two.id });
  });

  it('is possible as another member from the consent page', async () => {
    const [one, two] = [await oauth.member(), await oauth.member()];
    const clientId = await oauth.client();
    const browser = oauth.browser();
    const { url, redeem } = oauth.request(clientId, { scope: 'profile:read' });
    const again = await browser.press(await browser.signIn(url, one.username), {}, /\/switch-user$/);
    expect(asksForPassword(again)).toBe(true);
    const { body } = await redeem(await browser.authorize(again.url, { username: two.username }));
    expect(await (await oauth.get('/api/public/me', body.access_token)).json()).toMatchObject({ id: two.id });
  });

  it('is requested again from a disabled member, without an error', async () => {
    const { clientId, browser, ...member } = await oauth.memberAndClient();
    await oauth.code(clientId, member.username, {}, browser);
    await oauth.query('ALTER TABLE users DISABLE TRIGGER end_sign_ins');
    await oauth.query('UPDATE users SET disabled_at = now() WHERE id = $1', [member.id]);
    await oauth.query('ALTER TABLE users ENABLE ALWAYS TRIGGER end_sign_ins');
    const page = await browser.view(oauth.request(clientId).url);
    expect([page.status, asksForPassword(page)]).toEqual([200, true]);
  });
});

describe('an error without a redirect to the app', () => {
  it.each([
    ['an unknown client', { client_id: 'nobody' }, 'This app is not known here', 'invalid_client'],
    ['no client', { client_id: undefined }, 'The app made a mistake', 'invalid_request'],
    [
      'an unregistered redirect URI',
      { redirect_uri: 'https://app.example/other' },
      'We can’t send you back to this app',
      'invalid_redirect_uri',
    ],
    ['no redirect URI', { redirect_uri: undefined }, 'The app made a mistake', 'invalid_request'],
    [
      'a deleted pushed request',
      { request_uri: 'urn:ietf:params:oauth:request_uri:gone', redirect_uri: undefined },
      'This sign-in has expired',
      'invalid_request_uri',
    ],
  ])('has an explanation for members and a code for developers: %s', async (...row) => {
    const [, parameters, title, code] = row;
    const page = await oauth.browser().view(oauth.request(await oauth.client(), parameters).url);
    expect([page.status, /<h1>([^<]*)</.exec(page.html)![1]]).toEqual([400, title]);
    expect(page.html).toContain(`For developers: <code>${code}</code>`);
    expect(page.html).toMatch(/error id: <code>[\w-]{36}<\/code>/);
    const words = page.html.replace(/<code>[^<]*<\/code>|<[^>]*>/g, '');
    expect(words).not.toMatch(/redirect_uri|client is invalid|request_uri|parameter|registered redirect/);
  });

  it.each([
    ['client_id', { client_id: 'no<b>ody' }, 'no&lt;b&gt;ody', undefined],
    [
      'redirect_uri',
      { redirect_uri: 'https://app.example/other?x=1' },
      'https://app.example/other?x=1',
      REDIRECT_URI,
    ],
  ])(
    'shows developers the %s that the app sent, and the registered value, if any',
    async (name, sent, shown, registered) => {
      const { url } = oauth.request(await oauth.client(), sent);
      const { html } = await oauth.browser().view(url);
      expect(html.replace(/\n/g, '')).toContain(
        `The app sent this value, which is not registered:</p><p><code>${name}=${shown}</code></p>`,
      );
      const shownOf = /Registered for this app:[^]*?<ul>\s*<li><code>([^<]*)<\/code>/.exec(html)?.[1];
      expect(shownOf).toBe(registered);
    },
  );

  it('has an explanation for a wrong sign-out URI, which the page shows, and for an expired sign-in', async () => {
    const browser = oauth.browser();
    const bye = `/oauth/logout?client_id=${await oauth.client()}&post_logout_redirect_uri=https://evil.example`;
    const wrong = await browser.view(bye);
    expect(wrong.html).toContain('<h1>You were not signed out</h1>');
    expect(wrong.html).not.toContain('post_logout_redirect_uri not registered');
    expect(wrong.html).toContain('<code>post_logout_redirect_uri=https://evil.example</code>');
    const late = await browser.view('/oauth/authorize/no-such-sign-in');
    expect(late.html).toContain('<h1>This sign-in has expired</h1>');
    expect(late.html).not.toMatch(/interaction|session not found/);
  });

  it('is sent as JSON with oidc-provider’s text to clients that accept JSON', async () => {
    const answer = await fetch(`${oauth.issuer}/oauth/logout?id_token_hint=x`, {
      headers: { Accept: 'application/json' },
    });
    expect(await answer.json()).toMatchObject({
      error: 'invalid_request',
      error_description: expect.stringContaining('id_token_hint'),
    });
  });
});

it('sign-out without a session redirects immediately, without a confirmation page', async () => {
  const bye = 'https://app.example/bye';
  const clientId = await oauth.client({ post_logout_redirect_uris: [bye] });
  const query = `client_id=${clientId}&post_logout_redirect_uri=${bye}&state=y`;
  expect((await oauth.browser().leave(`/oauth/logout?${query}`)).href).toBe(`${bye}?state=y`);
  const page = await oauth.browser().view('/oauth/logout');
  expect([page.status, /<script/i.test(page.html)]).toEqual([200, false]);
});
