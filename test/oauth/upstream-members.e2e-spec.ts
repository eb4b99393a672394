import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { decodeJwt, type JWTPayload } from 'jose';
import { createApp } from '../../src/app.js';
import type { Config } from '../../src/config/config.js';
import { endApp } from '../support/api.js';
import { withoutAudit } from '../support/audit.js';
import { postgres, thorough } from '../support/database.js';
import { freePort, type Browser, type FormPage, type OauthTest, PASSWORD } from '../support/oauth.js';
import { startWithUpstream, type UpstreamServer } from '../support/upstream.js';

type Settings = Parameters<typeof startWithUpstream>[0];

let oauth: OauthTest;
let upstream: UpstreamServer;
const stop = () => oauth.close();
const start = async (settings: Settings, overrides: Partial<Config> = {}) =>
  void ({ oauth, upstream } = await startWithUpstream(settings, overrides));

/** Signs in to the account pages as the provider's account. */
async function signIn(claims: Record<string, unknown>, browser = oauth.browser()): Promise<FormPage> {
  upstream.account = { sub: (claims.sub as string | undefined) ?? randomUUID(), claims };
  return browser.view(await upstream.answerTo(browser, '/account/sessions'));
}

/** Follows the link to authenticate again at the provider. */
const confirmAt = async (browser: Browser) =>
  browser.view(await upstream.visit(await browser.leave('/account/security/upstream?other=1')));

const nobody = (page: FormPage) =>
  expect([page.status, /There is no account for you here/.test(page.html)]).toEqual([403, true]);
const signedInAs = (page: FormPage, name: string) => {
  expect(page.status).toBe(200);
  expect(page.html).toContain(`<bdi>@${name}</bdi>`);
};
describe('matching a member by a claim', () => {
  afterEach(stop);

  it('by username is exact and case-sensitive', async () => {
    await start({ claim: 'preferred_username', match: 'username', scopes: 'openid profile' });
    const { username } = await oauth.member();
    signedInAs(await signIn({ preferred_username: username }), username);
    nobody(await signIn({ preferred_username: username.toUpperCase() }));
    nobody(await signIn({ preferred_username: `${username}x` }));
    nobody(await signIn({ preferred_username: 'nul\0' }));
    nobody(await signIn({ preferred_username: 'x'.repeat(5000) }));
    nobody(await signIn({ preferred_username: ['a'] }));
  });

  thorough.it('by id is exact: an id with a leading zero matches no member', async () => {
    await start({ claim: 'preferred_username', match: 'id', scopes: 'openid profile' });
    const { id, username } = await oauth.member();
    signedInAs(await signIn({ preferred_username: String(id) }), username);
    signedInAs(await signIn({ preferred_username: id }), username);
    const others = [`0${id}`, ` ${id}`, `${id}.0`, `${id};`, '99999999999999999999', '-1', 1.5, true, {}];
    for (const other of others) nobody(await signIn({ preferred_username: other }));
  });

  thorough.it('by email address requires a verified address', async () => {
    await start({ claim: 'email', match: 'external_id', scopes: 'openid email' });
    const { username } = await oauth.member({ external_id: 'ada@example.com' });
    nobody(await signIn({ email: 'ada@example.com' }));
    nobody(await signIn({ email: 'ada@example.com', email_verified: false }));
    nobody(await signIn({ email: 'ada@example.com', email_verified: 'true' }));
    signedInAs(await signIn({ email: 'ada@example.com', email_verified: true }), username);
  });

  it('by email address requires the address and email_verified in one document: the ID token or userinfo', async () => {
    await start({ claim: 'email', match: 'external_id', scopes: 'openid email' });
    const { username } = await oauth.member({ external_id: 'ada@example.com' });
    const inIdToken = (more: object) =>
      void (upstream.faults = { claims: (claims) => ({ ...claims, ...more }) });
    // A provider lets any user enter an address, and its ID token may state an earlier verified address.
    inIdToken({ email_verified: true });
    nobody(await signIn({ email: 'ada@example.com' }));
    nobody(await signIn({ email: 'ada@example.com', email_verified: false }));
    inIdToken({ email: 'ada@example.com' });
    nobody(await signIn({ email: 'mallory@example.com', email_verified: true }));
    inIdToken({ email: 'x@example.com', email_verified: false });
    nobody(await signIn({ email: 'ada@example.com', email_verified: true }));
    inIdToken({ email: 'ada@example.com', email_verified: true });
    signedInAs(await signIn({ email: 'mallory@example.com', email_verified: false }), username);
  });

  thorough.it('without the claim causes a general error, which does not name the claim', async () => {
    await start({ claim: 'employee_number' });
    const page = await signIn({});
    expect([page.status, /did not work/.test(page.html)]).toEqual([502, true]);
    expect(page.html).not.toContain('employee_number');
  });
});

describe('UPSTREAM_CREATE_MEMBERS', () => {
  afterEach(stop);

  it('creates a member from the provider’s claims at the first sign-in only', async () => {
    await start({ createMembers: true, scopes: 'openid profile' });
    const claims = {
      sub: randomUUID(),
      preferred_username: 'grace',
      name: 'Rear Admiral Hopper',
      given_name: 'Grace',
      family_name: 'Hopper',
      picture: 'https://example.com/grace.png',
    };
    signedInAs(await signIn(claims), 'grace');
    signedInAs(await signIn({ ...claims, preferred_username: 'renamed' }), 'grace');
    expect(
      await oauth.query(
        `SELECT username, external_id, first_name, last_name, display_name, profile_picture, password_hash
FROM users WHERE external_id IS NOT NULL`,
      ),
    ).toEqual([
      {
        username: 'grace',
        external_id: claims.sub,
        first_name: 'Grace',
        last_name: 'Hopper',
        display_name: 'Rear Admiral Hopper',
        profile_picture: claims.picture,
        password_hash: null,
      },
    ]);
    expect(await oauth.query(`SELECT type, actor FROM auth_events ORDER BY id LIMIT 2`)).toEqual([
      { type: 'user.created', actor: 'system' },
      { type: 'sign_in.succeeded', actor: 'user' },
    ]);
  });

  it('creates no member without an audit event', async () => {
    await start({ createMembers: true });
    const claims = { sub: randomUUID() };
    await withoutAudit(oauth.dataSource, 'user.created', () => signIn(claims).catch(() => undefined));
    const made = () => oauth.query('SELECT FROM users WHERE external_id = $1', [claims.sub]);
    expect(await made()).toEqual([]);
    await signIn(claims);
    expect(await made()).toHaveLength(1);
  });

  thorough.it('generates a username if the provider’s username is missing, taken or invalid', async () => {
    await start({ createMembers: true, scopes: 'openid profile' });
    const { username } = await oauth.member();
    const invalid = ['12345', 'erased-7', ' x', 'x'.repeat(101), 7, 'a\0', 'ann\u200b', 'ａｎｎ'];
    for (const preferred_username of [undefined, username, username.toUpperCase(), ...invalid])
      expect((await signIn({ preferred_username })).html).toMatch(/<bdi>@member-[a-z2-9]{10}<\/bdi>/);
  });

  thorough.it('shortens a long name to 200 characters, and omits invalid names and pictures', async () => {
    await start({ createMembers: true, scopes: 'openid profile' });
    const names = { name: 'n'.repeat(300), given_name: 'a\0b', family_name: 5 };
    signedInAs(await signIn({ preferred_username: 'odd', ...names, picture: 'javascript:alert(1)' }), 'odd');
    const stored = `SELECT char_length(stored_display_name) AS name, first_name, last_name, profile_picture FROM users`;
    expect(await oauth.query(stored)).toEqual([
      { name: 200, first_name: null, last_name: null, profile_picture: null },
    ]);
  });

  thorough.it(
    'creates no member for an unverified address, and no second member for a disabled member',
    async () => {
      await start({ createMembers: true, claim: 'email', scopes: 'openid email' });
      nobody(await signIn({ email: 'new@example.com' }));
      await oauth.member({ external_id: 'gone@example.com', disabled_at: '2026-01-01T00:00:00Z' });
      nobody(await signIn({ email: 'gone@example.com', email_verified: true }));
      expect(await oauth.query('SELECT external_id FROM users')).toEqual([
        { external_id: 'gone@example.com' },
      ]);
    },
  );

  postgres.it('creates one member for 12 concurrent sign-ins on two instances', async () => {
    await start({ createMembers: true, scopes: 'openid profile' });
    const port = await freePort();
    const second = await createApp({ ...oauth.api.config, port });
    await second.listen(port, '127.0.0.1');
    try {
      const claims = { sub: randomUUID(), preferred_username: 'racer' };
      upstream.account = { sub: claims.sub, claims };
      const browsers: [Browser, URL][] = [];
      for (let i = 0; i < 12; i++) {
        const browser = oauth.browser(i % 2 ? `http://127.0.0.1:${port}` : undefined);
        browsers.push([browser, await upstream.answerTo(browser, '/account/sessions')]);
      }
      const pages = await Promise.all(browsers.map(([browser, back]) => browser.view(back)));
      for (const page of pages) signedInAs(page, 'racer');
      expect(await oauth.query('SELECT username FROM users')).toEqual([{ username: 'racer' }]);
    } finally {
      await endApp(second);
    }
  });
});

describe('a member who signed in with the external identity provider', () => {
  afterEach(stop);

  thorough.it('may disable the password, unlike a member who signed in with the password', async () => {
    await start({});
    const sub = randomUUID();
    const { id, username } = await oauth.member({ external_id: sub });
    const browser = oauth.browser();
    await signIn({ sub }, browser);
    const off = () => oauth.query('SELECT password_off_at IS NOT NULL AS off FROM users WHERE id = $1', [id]);
    const page = await browser.press(await browser.view('/account/security'), {}, /password\/off$/);
    expect(page.html).toContain('Your password is disabled.');
    expect(await off()).toEqual([{ off: true }]);
    await browser.submit(page, {}, /password\/on$/);
    expect(await off()).toEqual([{ off: false }]);

    const own = await oauth.browser().signIn('/account/security', username);
    expect(own.html).not.toContain('/account/security/password/off');
  });

  thorough.it('must authenticate again to change sign-in methods after 400 s', async () => {
    await start({});
    const sub = randomUUID();
    await oauth.member({ external_id: sub });
    const browser = oauth.browser();
    upstream.decision = { ts: Math.floor(Date.now() / 1000) - 400 };
    await signIn({ sub }, browser);
    upstream.decision = {};
    expect((await browser.view('/account/security')).html).toContain('Confirm that it is you');
    const confirm = await browser.view('/account/security/confirm');
    expect(confirm.html).toContain('href="/account/security/upstream?other=1"');
    expect((await confirmAt(browser)).html).not.toContain('Confirm that it is you');
    expect(upstream.asked.get('prompt')).toBe('login');
  });
});

describe('a provider that does not state the time of the sign-in', () => {
  const withoutTime = { claims: (claims: JWTPayload) => ({ ...claims, auth_time: undefined }) };

  beforeAll(() => start({}, { developerConsole: true }));
  afterAll(stop);
  beforeEach(() => void (upstream.faults = withoutTime));

  const member = async () => {
    const sub = randomUUID();
    return { sub, browser: oauth.browser(), ...(await oauth.member({ external_id: sub })) };
  };

  it('cannot confirm a recent authentication for account changes or new keys', async () => {
    const { sub, browser, username } = await member();
    signedInAs(await signIn({ sub }, browser), username);
    expect((await browser.view('/account/security')).html).toContain('Confirm that it is you');
    expect((await browser.view('/developer/new-key')).html).toContain('type="password"');
    const refused = await confirmAt(browser);
    expect([upstream.asked.get('prompt'), upstream.asked.get('max_age')]).toEqual(['login', '0']);
    expect([refused.status, /did not work/.test(refused.html)]).toEqual([502, true]);
    expect((await browser.view('/account/security')).html).toContain('Confirm that it is you');
    upstream.faults = {};
    expect((await confirmAt(browser)).html).not.toContain('Confirm that it is you');
  });

  it('lets a person whose first account has no member here use another account', async () => {
    const { sub, browser, username } = await member();
    nobody(await signIn({}, browser));
    upstream.account = { sub };
    signedInAs(await confirmAt(browser), username);
    expect([upstream.asked.get('prompt'), upstream.asked.get('max_age')]).toEqual(['login', '2592000']);
  });

  it.each<[string, Record<string, string>]>([
    ['prompt=login', { prompt: 'login' }],
    ['max_age', { max_age: '600' }],
  ])('cannot satisfy an app that requests %s', async (_, parameters) => {
    const { sub, browser, id } = await member();
    upstream.account = { sub };
    const back = await upstream.answerTo(browser, oauth.request(await oauth.client(), parameters).url);
    expect((await browser.view(back)).status).toBe(502);
    expect(await oauth.query('SELECT FROM oauth_sessions WHERE user_id = $1', [id])).toEqual([]);
  });

  it('causes ID tokens without auth_time, and a new sign-in if an app sends max_age', async () => {
    const { sub, browser, username, id } = await member();
    const clientId = await oauth.client();
    signedInAs(await signIn({ sub }, browser), username);
    const asked = async (parameters: Record<string, string>) => {
      const { url, redeem } = oauth.request(clientId, parameters);
      return { page: await browser.view(url), redeem };
    };
    const { page, redeem } = await asked({});
    const { body } = await redeem(await browser.submit(page, { decision: 'allow' }, /\/consent$/));
    expect(Object.keys(decodeJwt(body.id_token!))).not.toContain('auth_time');
    expect((await asked({ max_age: '1000' })).page.html).toMatch(/Continue with/);
    expect(
      await oauth.query(
        `SELECT signed_in_at BETWEEN now() - interval '1 minute' AND now() AS today FROM oauth_sessions WHERE user_id = $1`,
        [id],
      ),
    ).toEqual([{ today: true }]);
  });
});

describe('LOCAL_SIGN_IN=false', () => {
  afterAll(stop);

  it('redirects to the external identity provider, for apps and account pages, and rejects passwords', async () => {
    await start({}, { localSignIn: false });
    const sub = randomUUID();
    const { username } = await oauth.member({ external_id: sub });
    upstream.account = { sub };
    const clientId = await oauth.client();
    const { url } = oauth.request(clientId);
    const browser = oauth.browser();
    const away = await browser.leave(url);
    expect(away.origin).toBe(upstream.issuer);
    const consent = await browser.view(await upstream.visit(away));
    expect(consent.html).toMatch(/to use your account/);
    expect((await oauth.browser().leave('/account/apps')).origin).toBe(upstream.issuer);

    const fields = { username, password: PASSWORD };
    for (const path of ['/account/apps/sign-in', '/account/sessions/sign-in'])
      expect([path, (await browser.post(consent, path, fields)).status]).toEqual([path, 400]);
    const step = oauth.browser();
    await step.open(oauth.request(clientId).url);
    const [interaction] = [...step.cookies.keys()].filter((name) => name.startsWith('pua_interaction;'));
    const token = [...browser.cookies].find(([name]) => name.startsWith('pua_csrf;'))!;
    step.cookies.set(...token); // with a valid token
    const refused = await step.post(consent, `${interaction!.split(';')[1]}/sign-in`, fields);
    expect(refused.status).toBe(400);
  });
});
