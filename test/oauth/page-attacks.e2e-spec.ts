import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { RouteTable } from '../../src/http/route-table.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { Encryption } from '../../src/crypto/encryption.js';
import { thorough } from '../support/database.js';
import { atOnce } from '../support/concurrent.js';
import {
  asksForPassword,
  csrfOf,
  OauthTest,
  PASSWORD,
  type Browser,
  type FormPage,
} from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => {
  // No mail server listens there.
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'no-reply@platform.example' };
  oauth = await OauthTest.start({ developerConsole: true, mail });
});
afterAll(() => oauth.close());

const sessionOf = (browser: Browser) => browser.cookies.get('pua_session;/')?.value;

function post(
  browser: Browser,
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
) {
  return browser.send(path, { method: 'POST', body: new URLSearchParams(form), headers });
}

/** A browser at the sign-in page of an authorization request. */
async function atSignIn(parameters: Record<string, string> = {}, browser = oauth.browser()) {
  const page = await browser.view(oauth.request(await oauth.client(), parameters).url);
  return { browser, page, path: page.url.pathname };
}

/** A browser in which a member is signed in, at the consent page of an authorization request. */
async function atConsent() {
  const member = await oauth.member();
  const { browser, page, path } = await atSignIn();
  const consent = await browser.press(page, { username: member.username, password: PASSWORD });
  expect(consent.html).toContain('value="allow"');
  return { member, browser, page: consent, path: consent.url.pathname, before: path };
}

async function signedIn(username: string, browser = oauth.browser()): Promise<Browser> {
  expect(asksForPassword(await browser.signIn('/account/apps', username))).toBe(false);
  return browser;
}

describe('a form sent by another site', () => {
  const foreign: [string, Record<string, string>][] = [
    ['a foreign Origin', { Origin: 'https://evil.example' }],
    ['a neighbour of our origin', { Origin: 'http://127.0.0.1:1' }],
    ['Sec-Fetch-Site: cross-site behind Origin: null', { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }],
  ];

  it('is rejected at the sign-in, consent, access and sign-out forms, even with a valid CSRF token', async () => {
    const { member, browser, page, path } = await atConsent();
    const begun = await atSignIn();
    const own = await signedIn(member.username);
    const account = await own.view('/account/apps');
    const stranger = oauth.browser();
    const login = await stranger.view('/account/apps');
    const leaving = await signedIn(member.username);
    const leave = await leaving.view('/oauth/logout');
    const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(leave.html)!;
    const password = { username: member.username, password: PASSWORD };
    const forms: [Browser, string, Record<string, string>][] = [
      [begun.browser, `${begun.path}/sign-in`, { csrf: csrfOf(begun.page), ...password }],
      [begun.browser, `${begun.path}/cancel`, { csrf: csrfOf(begun.page) }],
      [browser, `${path}/consent`, { csrf: csrfOf(page), decision: 'allow' }],
      [browser, `${path}/switch-user`, { csrf: csrfOf(page) }],
      [stranger, '/account/apps/sign-in', { csrf: csrfOf(login), ...password }],
      [own, '/account/apps/revoke', { csrf: csrfOf(account), client_id: 'x' }],
      [own, '/account/sessions/end-others', { csrf: csrfOf(account) }],
      [own, '/account/sign-out', { csrf: csrfOf(account) }],
      [leaving, '/oauth/logout/confirm', { csrf: csrfOf(leave), xsrf: xsrf!, logout: 'yes' }],
    ];
    for (const [from, action, form] of forms) {
      for (const [why, headers] of foreign)
        expect([action, why, (await post(from, action, form, headers)).status]).toEqual([action, why, 403]);
      const { csrf: _, ...without } = form;
      expect([action, (await post(from, action, without)).status]).toEqual([action, 403]);
      const stolen = { ...form, csrf: csrfOf(await oauth.browser().view('/account/apps')) };
      expect([action, (await post(from, action, stolen)).status]).toEqual([action, 403]);
    }
    // Each form succeeds from this server's page, as Chromium sends it; two forms are omitted, since they end a session that other forms need.
    for (const [from, action, form] of forms.filter(([, action]) => !/switch-user|sign-out/.test(action))) {
      const { status } = await post(from, action, form, { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' });
      expect([action, status]).toEqual([action, 303]);
    }
  });

  thorough.it('is rejected at each member and developer form except the unsubscribe form', async () => {
    const { username } = await oauth.member();
    const browser = await signedIn(username);
    const csrf = csrfOf(await browser.view('/account/apps'));
    const forms = oauth.api.app
      .get(RouteTable)
      // Mail programs post the unsubscribe form without a page: the token is the proof (RFC 8058).
      .routes.filter(
        ({ method, path }) => method === 'POST' && /^\/(account(?!\/unsubscribe)|developer)\b/.test(path),
      )
      .map(({ path }) => path.replaceAll(/:\w+/g, '1'));
    expect(forms.length).toBeGreaterThan(25);
    // The browser sends a logo file as multipart/form-data.
    const send = async (
      action: string,
      fields: Record<string, string>,
      headers: Record<string, string> = {},
    ) => {
      const body = action.endsWith('/logo') ? new FormData() : new URLSearchParams();
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      return (await browser.send(action, { method: 'POST', body, headers })).status;
    };
    for (const action of forms) {
      for (const [why, headers] of foreign)
        expect([action, why, await send(action, { csrf }, headers)]).toEqual([action, why, 403]);
      expect([action, await send(action, { csrf: 'x' })]).toEqual([action, 403]);
    }
  });

  it('cannot sign the member out through /oauth/logout/confirm', async () => {
    const { username } = await oauth.member();
    const browser = await signedIn(username);
    for (const form of [{ logout: 'yes' }, { logout: 'yes', xsrf: 'x' }] as Record<string, string>[]) {
      const { status } = await post(browser, '/oauth/logout/confirm', form, { Origin: 'null' });
      expect(status).toBe(403);
    }
    expect(await browser.isSignedIn()).toBe(true);
  });
});

describe('a session id that an attacker planted or copied', () => {
  /** A new browser without a member, with all cookies that any client can get. */
  async function planted(): Promise<{ attacker: Browser; victim: Browser }> {
    const [attacker, victim] = [oauth.browser(), oauth.browser()];
    await attacker.open('/oauth/logout');
    expect(sessionOf(attacker)).toBeDefined();
    for (const [name, cookie] of attacker.cookies) victim.cookies.set(name, cookie);
    return { attacker, victim };
  }

  it('is replaced when the member signs in for an app', async () => {
    const { attacker, victim } = await planted();
    await oauth.code(await oauth.client(), (await oauth.member()).username, {}, victim);
    expect(sessionOf(victim)).not.toBe(sessionOf(attacker));
    expect(await victim.isSignedIn()).toBe(true);
    expect(await attacker.isSignedIn()).toBe(false);
  });

  it('is replaced and deleted when the member signs in for the account pages', async () => {
    const { attacker, victim } = await planted();
    await signedIn((await oauth.member()).username, victim);
    expect(sessionOf(victim)).not.toBe(sessionOf(attacker));
    expect(await attacker.isSignedIn()).toBe(false);
    const keys = new TokenKeys(oauth.api.config.secrets).keysOf('Session', sessionOf(attacker)!);
    expect(await oauth.query('SELECT FROM oauth_sessions WHERE key = ANY ($1)', [keys])).toEqual([]);
  });

  it('ends when the member signs in again: the previous id is rejected', async () => {
    const { username, clientId } = await oauth.memberAndClient();
    const [browser, thief] = [oauth.browser(), oauth.browser()];
    await oauth.code(clientId, username, {}, browser);
    for (const [name, cookie] of browser.cookies) thief.cookies.set(name, cookie);
    await oauth.code(clientId, username, { prompt: 'login' }, browser);
    expect(await thief.isSignedIn()).toBe(false);
    expect(await browser.isSignedIn()).toBe(true);
  });

  it('is ignored if its cookie is unsigned', async () => {
    const browser = await signedIn((await oauth.member()).username);
    browser.cookies.delete('pua_session.sig;/');
    expect(await browser.isSignedIn()).toBe(false);
  });
});

describe('an interaction', () => {
  it('is shown as expired in another browser', async () => {
    const { path } = await atSignIn();
    const stolen = await oauth.browser().view(path);
    expect([stolen.status, /expired/.test(stolen.html)]).toEqual([400, true]);
  });

  it('rejects a form with the cookies and token of another interaction', async () => {
    const { username } = await oauth.member();
    const mine = await atSignIn();
    const other = await atSignIn();
    const cookies = [...mine.browser.cookies].map(([key, { value }]) => `${key.split(';')[0]}=${value}`);
    const form = { csrf: csrfOf(mine.page), username, password: PASSWORD };
    const answer = await oauth.post(`${other.path}/sign-in`, form, { Cookie: cookies.join('; ') });
    expect(answer.status).toBe(400);
  });

  it('rejects a consent that is posted before the sign-in', async () => {
    const { browser, page, path } = await atSignIn();
    const form = { decision: 'allow', scope: 'profile:read', csrf: csrfOf(page) };
    expect((await post(browser, `${path}/consent`, form)).status).toBe(400);
  });

  it('rejects a consent that is posted before the re-authentication, and stores no grant', async () => {
    const { id, username } = await oauth.member();
    const { browser, page, path } = await atSignIn({ prompt: 'login' }, await signedIn(username));
    expect(asksForPassword(page)).toBe(true);
    const form = { decision: 'allow', scope: 'profile:read', csrf: csrfOf(page) };
    expect((await post(browser, `${path}/consent`, form)).status).toBe(400);
    expect(await oauth.query('SELECT FROM oauth_grants WHERE user_id = $1', [id])).toEqual([]);
  });

  it('grants no scope that the request did not contain', async () => {
    const { clientId, ...member } = await oauth.memberAndClient();
    const { url, redeem } = oauth.request(clientId, { scope: 'profile:read' });
    const browser = oauth.browser();
    const page = await browser.signIn(url, member.username);
    const back = await browser.allow(page, ['profile:read', 'profile:write', 'events:read']);
    expect((await redeem(back)).body.scope).toBe('profile:read');
  });

  it('is stored without its session’s id', async () => {
    const { username } = await oauth.member();
    const { browser, path } = await atSignIn({ prompt: 'login' }, await signedIn(username));
    const { secrets } = oauth.api.config;
    const [row] = await oauth.query<{ key: Buffer; payload: Buffer }>(
      `SELECT key, payload FROM oauth_state WHERE key = ANY($1)`,
      [new TokenKeys(secrets).keysOf('Interaction', path.split('/').pop()!)],
    );
    const { key, payload } = row!;
    const stored = new Encryption(secrets, 'oauth-state').open<{ params: object }>(
      payload,
      'Interaction',
      key,
    )!;
    expect(stored.params).toMatchObject({ prompt: 'login' });
    expect(JSON.stringify(stored)).not.toContain(sessionOf(browser));
  });
});

describe('untrusted text', () => {
  const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(2)>`;

  /** The hostile text may appear as text, never as markup. */
  function expectText(html: string): void {
    expect(html).not.toMatch(/<script>alert|<img src=x/i); // this server's scripts have other attributes
    expect(html).not.toContain(`"'>`);
  }

  it('in names of clients and members is escaped on the sign-in, consent and account pages', async () => {
    const member = await oauth.member({ stored_display_name: HOSTILE.slice(0, 100) });
    const clientId = await oauth.client({ name: HOSTILE });
    const browser = oauth.browser();
    const signIn = await browser.view(oauth.request(clientId).url);
    const refused = await browser.press(signIn, { username: HOSTILE, password: HOSTILE });
    const consent = await browser.press(refused, { username: member.username, password: PASSWORD });
    await browser.allow(consent);
    await oauth.tokens(clientId, member.username);
    const apps = await browser.view('/account/apps');
    const named = HOSTILE.slice(0, 60);
    await oauth.query(
      `INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
VALUES ($1, $2, $2, $2, 0, false, false, $3)`,
      [member.id, Buffer.from(member.username), named],
    );
    await oauth.api.app.get(CalendarLinks).create(member.id, named, { actor: 'user' });
    const own = { userId: member.id, ip: null };
    await oauth.api.key(member.id, ['profile:read'], { name: named, environment: 'test', owner: own });
    const ownApp = await oauth.client({ name: HOSTILE, owner: own });
    const held: FormPage[] = [];
    for (const path of ['security', 'calendar', 'keys', 'activity'])
      held.push(await browser.view(`/account/${path}`));
    for (const path of ['', '/requests', `/clients/${ownApp}`])
      held.push(await browser.view(`/developer${path}`));
    await browser.send('/account/sessions', { headers: { 'User-Agent': HOSTILE } });
    const sessions = await browser.view('/account/sessions');
    const logout = await browser.view(`/oauth/logout?client_id=${clientId}`);
    for (const { html } of [signIn, refused, consent, apps, logout, ...held]) {
      expect(html).toContain('&lt;script&gt;');
      expectText(html);
    }
    expectText(sessions.html);
  });

  const PARAMETERS = `client_id redirect_uri response_type response_mode scope state nonce prompt max_age resource
code_challenge code_challenge_method login_hint ui_locales id_token_hint request request_uri claims dpop_jkt`;
  it.each(PARAMETERS.split(/\s/))(
    'is never markup in a response to an authorization request: %s',
    async (name) => {
      const { url } = oauth.request(await oauth.client(), { [name]: HOSTILE });
      const answer = await oauth.browser().open(url);
      if (!(answer instanceof URL)) {
        expectText(answer.html);
        expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
        expect(answer.status).toBeLessThan(500);
        return;
      }
      expect(answer.origin).toBe('https://app.example');
      expect(answer.searchParams.get('error_description') ?? '').not.toMatch(/[<>]/);
    },
  );

  it('is never markup on a sign-out page, and never causes a redirect', async () => {
    const clientId = await oauth.client({ post_logout_redirect_uris: ['https://app.example/bye'] });
    const { username } = await oauth.member();
    const hints: Record<string, string>[] = [{ client_id: clientId }, { id_token_hint: HOSTILE }, {}];
    const targets = ['https://evil.example/', 'https://app.example/bye/..', 'javascript:alert(1)', HOSTILE];
    for (const browser of [oauth.browser(), await signedIn(username)])
      for (const post_logout_redirect_uri of targets)
        for (const hint of hints) {
          const query = new URLSearchParams({ ...hint, post_logout_redirect_uri, state: HOSTILE });
          const page = await browser.view(`/oauth/logout?${query}`);
          expectText(page.html);
          expect(page.headers.get('content-security-policy')).not.toMatch(/evil/);
        }
  });

  it('is never markup in an error response of the token endpoint', async () => {
    const { headers, body } = await oauth.token({ grant_type: HOSTILE, client_id: HOSTILE, code: HOSTILE });
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(JSON.stringify(body)).not.toMatch(/<script/);
  });
});

it('a sign-in with a guessed username gets the same page for an unknown name, a wrong password, and a disabled member', async () => {
  const [member, disabled, without] = [
    await oauth.member(),
    await oauth.member({ disabled_at: '2026-01-01T00:00:00Z' }),
    await oauth.member({ password_hash: null }),
  ];
  const answers = await Promise.all(
    [member.username, disabled.username, without.username, 'nobody-at-all'].map(async (username) => {
      const { browser, page } = await atSignIn();
      const refused = await browser.press(page, { username, password: 'wrong password' });
      const html = refused.html
        .replaceAll(username, 'NAME')
        .replaceAll(csrfOf(page), 'CSRF')
        .replaceAll(page.url.pathname, 'PATH')
        .replace(/value="NAME"|>NAME</g, '');
      return [refused.status, html, [...refused.headers.keys()].join()];
    }),
  );
  expect(answers[0]![0]).toBe(401);
  for (const answer of answers) expect(answer).toEqual(answers[0]);
});

describe('guessing passwords to lock a member out', () => {
  const attempt = (browser: Browser, username: string, password = PASSWORD) =>
    browser.signIn('/account/apps', username, password);
  const leave = async (browser: Browser) => {
    await post(browser, '/account/sign-out', { csrf: csrfOf(await browser.view('/account/apps')) });
  };

  thorough.it(
    'does not lock the owner out in a known browser, at the sign-in for an app or an account page',
    async () => {
      const { username } = await oauth.member();
      const [onAccount, onApp] = [await signedIn(username), oauth.browser()];
      await oauth.code(await oauth.client(), username, {}, onApp);
      for (const browser of [onAccount, onApp]) await leave(browser);
      for (let i = 0; i < 2; i++) await atOnce(8, () => attempt(oauth.browser(), username, 'guess'));
      const stranger = await attempt(oauth.browser(), username);
      expect([stranger.status, asksForPassword(stranger)]).toEqual([429, true]);

      expect(asksForPassword(await attempt(onAccount, username))).toBe(false);
      await oauth.code(await oauth.client(), username, { prompt: 'login' }, onApp); // fails without a code
      const other = await oauth.member();
      const thief = await signedIn(other.username);
      await leave(thief);
      expect((await attempt(thief, username)).status).toBe(429);
    },
  );

  it('sets the device cookie for the right password, but not for a wrong password', async () => {
    const { username } = await oauth.member();
    const device = (browser: Browser) => browser.cookies.get('pua_device;/');
    const browser = oauth.browser();
    await attempt(browser, username, 'guess');
    expect(device(browser)).toBeUndefined();
    await attempt(browser, username);
    expect(device(browser)).toBeDefined();
  });
});

it('another member’s sessions cannot be ended by sending their ids in forms', async () => {
  const [mine, theirs] = [await oauth.member(), await oauth.member()];
  const victim = await signedIn(theirs.username);
  const page = await victim.view('/account/sessions');
  const action = /\/account\/sessions\/[0-9a-f]{64}\/end/.exec(page.html)![0];
  const browser = await signedIn(mine.username);
  const csrf = csrfOf(await browser.view('/account/sessions'));
  for (const path of [action, '/account/sessions/x/end', `/account/sessions/${'0'.repeat(64)}/end`])
    expect((await post(browser, path, { csrf })).status).toBe(303);
  expect(asksForPassword(await victim.open('/account/sessions'))).toBe(false);
});
