import { afterAll, beforeAll, beforeEach, describe, expect, it, afterEach, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { decodeJwt, type JWTPayload } from 'jose';
import { atOnce, tally } from '../support/concurrent.js';
import { thorough } from '../support/database.js';
import { Browser, REDIRECT_URI, type FormPage, type OauthTest } from '../support/oauth.js';
import { startWithUpstream, upstreamLink, type UpstreamServer, logOf } from '../support/upstream.js';

let oauth: OauthTest;
let upstream: UpstreamServer;
let clientId: string;
beforeAll(async () => {
  ({ oauth, upstream } = await startWithUpstream());
  clientId = await oauth.client();
});
afterAll(() => oauth.close());
beforeEach(() => {
  upstream.faults = {};
  upstream.decision = {};
});
afterEach(() => void jest.restoreAllMocks());

const without = <Of extends object>(of: Of, name: string) =>
  Object.fromEntries(Object.entries(of).filter(([key]) => key !== name));

describe('this server as a client of the provider', () => {
  thorough.it('sends its id and secret without unnecessary encoding', async () => {
    const plain = await startWithUpstream({ clientSecret: 'a-b_c.d e+f%ü:' });
    await using server = plain.oauth;
    const sent = new Promise<string>((resolve) =>
      plain.upstream.server.on('request', ({ url, headers }) => {
        if (url === '/token') resolve(headers.authorization!);
      }),
    );
    plain.upstream.account = { sub: randomUUID() };
    const browser = server.browser();
    await browser.open(await plain.upstream.answerTo(browser, '/account/apps'));
    const [scheme, credentials] = (await sent).split(' ');
    expect(scheme).toBe('Basic');
    expect(Buffer.from(credentials!, 'base64').toString()).toBe('public-user-api:a-b_c.d+e%2Bf%25%C3%BC%3A');
  });
});

/** A member without a password, with another name at the provider. */
async function member(): Promise<{ id: number; sub: string }> {
  const sub = randomUUID();
  const { id } = await oauth.member({ external_id: sub, password_hash: null });
  upstream.account = { sub };
  return { id, sub };
}

/** Signs in for an app, through consent. @returns the ID token's claims */
async function idToken(
  parameters: Record<string, string> = {},
  browser = oauth.browser(),
): Promise<JWTPayload> {
  const { url, redeem } = oauth.request(clientId, parameters);
  let at = await browser.open(await upstream.answerTo(browser, url));
  if (!(at instanceof URL)) at = await browser.submit(at, { decision: 'allow' }, /\/consent$/);
  const { body } = await redeem(at);
  return decodeJwt(body.id_token!);
}

describe('the external identity provider', () => {
  it('signs a member without a local password in to an app, whose ID token has the provider’s auth_time, amr and acr', async () => {
    const { id } = await member();
    upstream.decision = { amr: ['pwd', 'otp'], acr: 'gold', ts: Math.floor(Date.now() / 1000) - 1000 };
    expect(await idToken({ nonce: 'n' })).toMatchObject({
      sub: String(id),
      nonce: 'n',
      amr: ['pwd', 'otp'],
      acr: 'gold',
      auth_time: upstream.decision.ts,
    });
    expect(await oauth.details({ user: id, type: 'sign_in.succeeded' })).toEqual([
      { method: 'upstream', language: 'en' },
    ]);
  });

  it('does not replace the sign-in with a password', async () => {
    const { username } = await oauth.member();
    const { id_token: token } = await oauth.tokens(clientId, username);
    expect(decodeJwt(token!)).toMatchObject({ amr: ['pwd'], auth_time: expect.any(Number) });
  });

  it('gets the callback URL, PKCE, state, nonce, and the app’s login_hint, ui_locales, max_age and acr_values', async () => {
    await member();
    const ofApp = { login_hint: 'ada@example.com', ui_locales: 'de en', max_age: '3600', acr_values: 'gold' };
    await idToken(ofApp);
    const random = expect.stringMatching(/^[\w-]{43}$/);
    expect(Object.fromEntries(upstream.asked)).toEqual({
      response_type: 'code',
      client_id: 'public-user-api',
      redirect_uri: `${oauth.issuer}/sign-in/callback`,
      scope: 'openid',
      state: random,
      nonce: random,
      code_challenge: random,
      code_challenge_method: 'S256',
      ...ofApp,
    });
  });

  it('gets prompt=login only if the app sends it', async () => {
    await member();
    const browser = oauth.browser();
    await idToken({}, browser);
    expect(upstream.asked.get('prompt')).toBeNull();
    await idToken({ prompt: 'login' }, browser);
    expect(upstream.asked.get('prompt')).toBe('login');
  });

  it('signs a member in with a new session id, and remembers the browser', async () => {
    const { id } = await member();
    const browser = oauth.browser();
    expect((await browser.view('/account/sessions')).status).toBe(200);
    await idToken({}, browser);
    const before = [...browser.cookies].find(([name]) => name.startsWith('pua_session;'))![1].value;
    expect([...browser.cookies.keys()].some((name) => name.startsWith('pua_device;'))).toBe(true);
    await idToken({ prompt: 'login' }, browser);
    expect([...browser.cookies].find(([name]) => name.startsWith('pua_session;'))![1].value).not.toBe(before);
    const other = oauth.browser();
    for (const [key, { path }] of browser.cookies) other.cookies.set(key, { value: before, path });
    expect((await other.view('/account/sessions')).html).toMatch(/Continue with/);
    expect(
      await oauth.query(`SELECT FROM oauth_state WHERE model = 'UpstreamSignIn' AND user_id = $1`, [id]),
    ).toEqual([]);
  });

  thorough.it('signs a member in while guesses make the server reject the member’s password', async () => {
    const sub = randomUUID();
    const { id, username } = await oauth.member({ external_id: sub });
    const guesser = oauth.browser();
    let page = await guesser.view('/account/apps');
    for (let guess = 0; page.status !== 429; guess++)
      page = await guesser.press(page, { username, password: `guess ${guess}` }, /\/sign-in$/);
    upstream.account = { sub };
    expect(await idToken()).toMatchObject({ sub: String(id) });
  });
});

describe('a person authenticated by the external identity provider', () => {
  const refusedPage = async (browser = oauth.browser()) =>
    browser.view(await upstream.answerTo(browser, oauth.request(clientId).url));
  const said = ({ html }: FormPage) => html.replace(/<code>[^<]*<\/code>|uid|\/interaction\/[\w-]+/g, '');

  it('without an account at this server gets a page that says so, with a link to use another account', async () => {
    upstream.account = { sub: randomUUID() };
    const browser = oauth.browser();
    const page = await refusedPage(browser);
    expect(page.status).toBe(403);
    expect(page.html).toMatch(/There is no account for you here/);
    expect(page.html).toMatch(/You signed in with <bdi>Example<\/bdi>/);
    const [, href] = /href="([^"]*\/upstream\?other=1)"/.exec(page.html)!;
    const { id } = await member();
    const end = await browser.view(await upstream.visit(await browser.leave(href!)));
    expect(upstream.asked.get('prompt')).toBe('login');
    expect(end.html).toMatch(/to use your account/);
    expect(await oauth.events({ user: id })).toHaveLength(1);
  });

  it('with a disabled account gets the page of a person without an account; only the audit log names the reason', async () => {
    upstream.account = { sub: randomUUID() };
    const unknown = await refusedPage();
    const { id } = await member();
    await oauth.query('UPDATE users SET disabled_at = now() WHERE id = $1', [id]);
    const disabled = await refusedPage();
    expect([disabled.status, said(disabled)]).toEqual([unknown.status, said(unknown)]);
    expect(await oauth.events({ user: id })).toMatchObject([
      { type: 'sign_in.refused', details: { method: 'upstream', reason: 'disabled' } },
    ]);
  });

  it('is not signed in if the member’s sign-ins are ended before the consent', async () => {
    const { id } = await member();
    const browser = oauth.browser();
    const { url } = oauth.request(clientId);
    const consent = await browser.view(await upstream.answerTo(browser, url));
    expect(consent.html).toMatch(/to use your account/);
    await oauth.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [id]);
    await browser.press(consent, { decision: 'allow' }, /\/consent$/);
    expect((await browser.view('/account/apps')).html).toMatch(/Continue with/);
  });
});

describe('a callback from the external identity provider', () => {
  const begin = async (browser: Browser, parameters: Record<string, string> = {}) => {
    return browser.leave(upstreamLink(await browser.view(oauth.request(clientId, parameters).url)));
  };
  /** Opens a page, begins a sign-in there, and returns from the provider. */
  const answered = async (parameters?: Record<string, string>) => {
    await member();
    const browser = oauth.browser();
    return { browser, back: await upstream.visit(await begin(browser, parameters)) };
  };
  const expired = ({ status, html }: FormPage) =>
    expect([status, html]).toEqual([400, expect.stringMatching(/This sign-in has expired/)]);
  /** A page with an error id and a link to retry, without text of the response. */
  const failed = (
    { status: got, html }: FormPage,
    status = 502,
    title = /Signing in with <bdi>Example<\/bdi> did not work/,
  ) => {
    expect([got, html]).toEqual([status, expect.stringMatching(title)]);
    expect(html).toMatch(/error id: <code>[\w-]+<\/code>/);
    expect(html).toMatch(/href="\/interaction\/[\w-]+">Try again</);
  };

  it('is rejected the second time', async () => {
    const { browser, back } = await answered();
    expect((await browser.view(back)).html).toMatch(/to use your account/);
    expired(await browser.view(back));
  });

  it('is rejected in another browser without being consumed', async () => {
    const { browser, back } = await answered();
    const thief = oauth.browser();
    expired(await thief.view(back));
    await begin(thief);
    expired(await thief.view(back));
    expect((await browser.view(back)).html).toMatch(/to use your account/);
  });

  thorough.it('is accepted in only one of 20 concurrent requests', async () => {
    const { browser, back } = await answered();
    const statuses = await atOnce(20, async () => (await browser.send(back)).status);
    expect(tally(statuses)).toEqual({ 303: 1, 400: 19 });
  });

  it('with the state and code of different sign-ins is rejected', async () => {
    const { browser, back } = await answered();
    back.searchParams.set('code', (await upstream.visit(await begin(browser))).searchParams.get('code')!);
    failed(await browser.view(back));
  });

  thorough.it('completes its sign-in, even if the browser has another sign-in in progress', async () => {
    await member();
    const browser = oauth.browser();
    const [one, other] = [await begin(browser), await begin(browser)];
    for (const url of [one, other])
      expect((await browser.view(await upstream.visit(url))).html).toMatch(/to use your account/);
  });

  it('with an unknown state, no state or two states is shown as expired', async () => {
    const browser = oauth.browser();
    await begin(browser);
    for (const search of [
      '',
      '?state=',
      `?state=${'x'.repeat(43)}&code=c`,
      '?state=a&state=b',
      '?state=%00',
      '?state[a]=b',
    ])
      expired(await browser.view(`/sign-in/callback${search}`));
  });

  thorough.it('is shown as expired after 30 minutes', async () => {
    const { browser, back } = await answered();
    await oauth.age('oauth_state', 1801);
    expired(await browser.view(back));
  });

  it('with the member’s denial redirects to the app with access_denied and the state', async () => {
    upstream.decision = { error: 'access_denied', error_description: '<script>alert(1)</script>' };
    const { browser, back } = await answered({ state: 'mine' });
    const end = await browser.leave(back);
    expect(end.href.startsWith(`${REDIRECT_URI}?`)).toBe(true);
    expect(Object.fromEntries(end.searchParams)).toEqual({
      error: 'access_denied',
      error_description: 'the member did not sign in',
      state: 'mine',
      iss: oauth.issuer,
    });
  });

  thorough.it.each([
    'login_required',
    'server_error',
    'temporarily_unavailable',
    'invalid_request',
    '"><script>',
    'x'.repeat(2000),
  ])('with the error %s gets a page with an error id and no text from the response', async (error) => {
    await member();
    const browser = oauth.browser();
    const state = (await begin(browser)).searchParams.get('state')!;
    const back = new URL('/sign-in/callback', oauth.issuer);
    back.search = String(
      new URLSearchParams({ state, error, error_description: 'evil words', iss: upstream.issuer }),
    );
    const page = await browser.view(back);
    failed(page);
    expect(page.html).not.toMatch(/evil words|<script>|xxxx/);
  });

  it('of another issuer is rejected before its code is sent (mix-up)', async () => {
    const { browser, back } = await answered();
    back.searchParams.set('iss', 'https://attacker.example');
    let asked = false;
    upstream.faults = { answer: (told) => ((asked = true), told) };
    failed(await browser.view(back));
    expect(asked).toBe(false);
  });

  thorough.it('never redirects to a URL in its parameters', async () => {
    const { browser, back } = await answered();
    for (const name of ['redirect_uri', 'returnTo', 'next', 'target_link_uri', 'RelayState'])
      back.searchParams.append(name, 'https://evil.example/');
    const end = await browser.view(back);
    expect([end.status, end.url.origin]).toEqual([200, oauth.issuer]);
  });

  const now = () => Math.floor(Date.now() / 1000);
  thorough.it.each<[string, string, (claims: JWTPayload) => JWTPayload]>([
    ['with another nonce', 'nonce', (claims) => ({ ...claims, nonce: 'x' })],
    ['without a nonce', 'nonce', (claims) => without(claims, 'nonce')],
    ['of another issuer', 'iss', (claims) => ({ ...claims, iss: 'https://attacker.example' })],
    ['for another client', 'aud', (claims) => ({ ...claims, aud: 'somebody-else' })],
    [
      'for several clients, authorized for another client',
      'azp',
      (claims) => ({ ...claims, aud: [claims.aud as string, 'x'], azp: 'x' }),
    ],
    ['that has expired', 'exp', (claims) => ({ ...claims, iat: now() - 600, exp: now() - 300 })],
    ['without a subject', 'sub', (claims) => without(claims, 'sub')],
    ['whose subject is not a string', 'sub', (claims) => ({ ...claims, sub: 5 as never })],
    ['whose auth_time is a string', 'auth_time', (claims) => ({ ...claims, auth_time: '1' })],
  ])('with an ID token %s gets an error page, and the log names the claim %s', async (_, claim, claims) => {
    const log = logOf(oauth);
    const { browser, back } = await answered();
    upstream.faults = { claims };
    failed(await browser.view(back));
    expect(log()).toMatch(new RegExp(`"detail":"(?:[^"\\\\]|\\\\.)*\\b${claim}\\b`));
  });

  thorough.it.each([60, -60])('is accepted with a clock skew of %s seconds', async (seconds) => {
    const { id } = await member();
    upstream.faults = {
      claims: ({ iat, exp, auth_time, ...claims }) => ({
        ...claims,
        iat: iat! + seconds,
        exp: exp! - 60 + Math.min(0, seconds) + 5,
        ...(typeof auth_time === 'number' ? { auth_time: auth_time + seconds } : {}),
      }),
    };
    expect(await idToken({ max_age: '10' })).toMatchObject({ sub: String(id) });
  });

  it.each<[string, Record<string, string>]>([
    ['max_age', { max_age: '600' }],
    ['prompt=login', { prompt: 'login' }],
  ])('with a sign-in older than the app allows is rejected: %s', async (_, parameters) => {
    const { browser, back } = await answered(parameters);
    upstream.faults = { claims: (claims) => ({ ...claims, auth_time: now() - 3600 }) };
    failed(await browser.view(back));
  });

  it('with an ID token signed by an unknown key gets an error page, and the next callback succeeds', async () => {
    await upstream.rotate();
    const { browser, back } = await answered();
    upstream.faults = { otherKeys: true };
    failed(await browser.view(back));
    upstream.faults = {};
    expect(await idToken()).toMatchObject({ sub: expect.any(String) });
  });

  it('with an unsigned ID token, or an ID token with the algorithm HS256, is rejected', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    for (const alg of ['none', 'HS256']) {
      const { browser, back } = await answered();
      upstream.faults = {
        answer: (told) => ({
          ...told,
          id_token: `${part({ alg })}.${part(decodeJwt(told.id_token as string))}.${alg === 'none' ? '' : 'AAAA'}`,
        }),
      };
      failed(await browser.view(back));
    }
  });

  thorough.it('with an ID token signed by a key newer than the last fetch is accepted at once', async () => {
    const { id } = await member();
    for (let rotations = 0; rotations < 3; rotations++) {
      expect(await idToken()).toMatchObject({ sub: String(id) });
      await upstream.rotate();
    }
  });

  thorough.it.each<[string, UpstreamServer['faults']]>([
    ['while the token endpoint is unavailable', { away: /^\/token$/ }],
    ['while the token endpoint does not respond for 3 seconds', { silent: /^\/token$/ }],
    ['while the token endpoint responds 500', { broken: [/^\/token$/, 500] }],
    ['while the keys are unavailable', { broken: [/^\/jwks$/, 503] }],
  ])('%s gets a page that suggests a retry, which then succeeds', async (_, faults) => {
    await upstream.rotate(); // cached keys do not match
    const { browser, back } = await answered();
    upstream.faults = faults;
    const page = await browser.view(back);
    failed(page, 503, /<bdi>Example<\/bdi> does not respond/);
    expect(page.headers.get('retry-after')).toBe('1');
    upstream.faults = {};
    const [, href] = /href="(\/interaction\/[\w-]+)">Try again/.exec(page.html)!;
    expect((await browser.view(await upstream.answerTo(browser, href!))).html).toMatch(/to use your account/);
  });

  thorough.it.each<[string, UpstreamServer['faults']]>([
    ['rejects with an error', { broken: [/^\/token$/, 400] }],
    ['exchanges for a page', { broken: [/^\/token$/, 200] }],
    ['exchanges without an ID token', { answer: (told) => without(told, 'id_token') }],
    ['exchanges for a token of another type', { answer: (told) => ({ ...told, token_type: 'mac' }) }],
    ['exchanges for an invalid ID token', { answer: (told) => ({ ...told, id_token: 'x.y.z' }) }],
  ])('with a code that the token endpoint %s gets an error page', async (_, faults) => {
    const { browser, back } = await answered();
    upstream.faults = faults;
    failed(await browser.view(back));
  });
});
