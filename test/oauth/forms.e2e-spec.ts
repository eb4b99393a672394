import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { TokenKeys } from '../../src/crypto/hmac.js';
import { NoticeChoices } from '../../src/member-pages/notices/notice-choices.js';
import { RouteTable } from '../../src/http/route-table.js';
import { atOnce } from '../support/concurrent.js';
import {
  asksForPassword,
  type OauthTest,
  PASSWORD,
  REDIRECT_URI,
  type Browser,
  type FormPage,
  csrfOf,
} from '../support/oauth.js';
import { PIXEL } from '../support/images.js';
import { addPasskey, Authenticator, optionsFor, startWithPasskeys } from '../support/passkeys.js';

let oauth: OauthTest;
beforeAll(async () => {
  // No mail server listens on this port.
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'no-reply@platform.example' };
  oauth = await startWithPasskeys({ developerConsole: true, mail });
});
afterAll(() => oauth.close());

const LINK = /value="http[^"]*\/calendar\/[\w-]{43}\.ics"/;
const KEY = /pua_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/;

interface Signed {
  readonly id: number;
  readonly username: string;
  readonly browser: Browser;
  readonly page: FormPage;
}

async function signedIn(path: string): Promise<Signed> {
  const member = await oauth.member();
  const browser = oauth.browser();
  const after = await browser.signIn(path, member.username);
  expect(after.url.pathname).toBe(path);
  return { ...member, browser, page: after };
}

const count = async (from: string, userId: number) =>
  (await oauth.query<{ count: number }>(`SELECT count(*) AS count FROM ${from} = $1`, [userId]))[0]!.count;

/** Sends a page's form twice concurrently and then once more. @returns the three result pages */
async function sendThrice(
  { browser }: Signed,
  page: FormPage,
  fields: Record<string, string | string[]>,
  form: RegExp,
): Promise<FormPage[]> {
  const send = () => browser.press(page, fields, form);
  return [...(await atOnce(2, send)), await send()];
}

const KEY_FIELDS = { name: 'Mine', days: '7', scopes: ['profile:read'] };
const APP_FIELDS = { name: 'Mine', type: 'web', redirect_uris: REDIRECT_URI };

describe('a form that creates a resource', () => {
  it('creates one calendar link, even if sent several times, and shows the link once', async () => {
    const signed = await signedIn('/account/calendar');
    const pages = await sendThrice(signed, signed.page, { name: 'Phone' }, /create$/);
    for (const { status, url } of pages) expect([status, url.pathname]).toEqual([200, '/account/calendar']);
    expect(pages.filter(({ html }) => LINK.test(html))).toHaveLength(1);
    const shown = pages.find(({ html }) => LINK.test(html))!;
    expect((await signed.browser.view(shown.url)).html).not.toMatch(LINK);
    expect(await count('calendar_links WHERE user_id', signed.id)).toBe(1);
    // The new form on the result page creates another link.
    const next = await signed.browser.press(pages[2]!, { name: 'Laptop' }, /create$/);
    expect(next.html).toMatch(LINK);
    expect(await count('calendar_links WHERE user_id', signed.id)).toBe(2);
    const without = await signed.browser.press(next, { name: 'Tablet', form: '' }, /create$/);
    expect(without.status).toBe(400); // could not be recognized if it was sent again
    expect(await count('calendar_links WHERE user_id', signed.id)).toBe(2);
  });

  it('creates or rotates a key once, even if sent several times, and shows the key once', async () => {
    const signed = await signedIn('/developer/new-key');
    const made = await sendThrice(signed, signed.page, KEY_FIELDS, /keys$/);
    expect(made.filter(({ html }) => KEY.test(html))).toHaveLength(1);
    expect(await count('api_keys WHERE user_id', signed.id)).toBe(1);
    const rotated = await sendThrice(signed, await signed.browser.view('/developer'), {}, /rotate$/);
    expect(rotated.filter(({ html }) => KEY.test(html))).toHaveLength(1);
    expect(rotated.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await count('api_keys WHERE user_id', signed.id)).toBe(2);
  });

  it('registers one app, even if sent several times, and redirects to the app’s page each time', async () => {
    const signed = await signedIn('/developer');
    const form = await signed.browser.view('/developer/new-client');
    const pages = await sendThrice(signed, form, APP_FIELDS, /clients$/);
    expect(new Set(pages.map(({ url }) => url.pathname)).size).toBe(1);
    expect(pages[0]!.url.pathname).toMatch(/^\/developer\/clients\/[\w-]{36}$/);
    expect(await count('oauth_clients WHERE owner_id', signed.id)).toBe(1);
  });

  it('shows its result only to the member who sent it, even if another member sends the same form id', async () => {
    const [ada, eve] = [await signedIn('/account/calendar'), await signedIn('/account/calendar')];
    const idOf = ({ html }: FormPage) => /name="form" value="([^"]*)"/.exec(html)![1]!;
    const fields = { form: idOf(ada.page), name: 'Phone' };
    const made = await ada.browser.post(ada.page, '/account/calendar/create', fields);
    const location = made.headers.get('location')!;
    expect(location).toBe(`/account/calendar?made=${idOf(ada.page)}`);
    expect((await eve.browser.view(location)).html).not.toMatch(LINK);
    const taken = { ...eve.page, html: eve.page.html.replaceAll(idOf(eve.page), idOf(ada.page)) };
    expect((await eve.browser.press(taken, { name: 'Mine' }, /create$/)).html).toMatch(LINK);
    expect((await ada.browser.view(location)).html).toMatch(LINK);
    for (const wrong of ['', 'x', '%00', 'a'.repeat(24)]) {
      const { status } = await ada.browser.view(`/account/calendar?made=${wrong}`);
      expect([wrong, status]).toEqual([wrong, 200]);
    }
  });

  it('can be sent again after a rejection', async () => {
    const signed = await signedIn('/account/calendar');
    const links = oauth.api.app.get(CalendarLinks);
    for (let n = 0; n < 10; n++) await links.create(signed.id, `Link ${n}`, { actor: 'user' });
    const full = await signed.browser.press(signed.page, { name: 'Phone' }, /create$/);
    expect([full.status, full.html]).toEqual([422, expect.stringContaining('limit of 10 links')]);
    await links.revokeAll(signed.id, { actor: 'user' }, oauth.dataSource);
    expect((await signed.browser.press(signed.page, { name: 'Phone' }, /create$/)).html).toMatch(LINK);
  });
});

it.each<[string, string, Record<string, string>, RegExp]>([
  ['/account/calendar', 'create', { name: 'Phone' }, LINK],
  ['/account/data', 'download', {}, /"profile":/],
])(
  'a form for a secret link or the data export requires a sign-in within five minutes, which the page requests: %s',
  async (path, step, fields, made) => {
    const { id, username, browser, page } = await signedIn(path);
    await oauth.ageSignIns(id, 301);
    const again = await browser.press(page, fields, new RegExp(`${step}$`));
    expect(again.url.pathname).toBe(`${path}/confirm`);
    expect(again.html).toContain('Sign in again to confirm that it’s you');
    expect(await count('calendar_links WHERE user_id', id)).toBe(0);
    const shown = await browser.view(path);
    expect(shown.html).not.toContain(`action="${path}/${step}"`);
    expect(shown.html).toContain(`href="${path}/confirm"`);
    const fresh = await browser.press(again, { username, password: PASSWORD });
    expect((await browser.press(fresh, fields, new RegExp(`${step}$`))).html).toMatch(made);
  },
);

/** Sends a form once more from the same browser. */
type Sending = () => Promise<FormPage | URL>;

/** By route, functions that fill in a form. @returns a function that sends the form */
const FORMS: Readonly<Record<string, () => Promise<Sending>>> = {
  '/account/apps/sign-in': async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view('/account/apps');
    return () => browser.submit(page, { username, password: PASSWORD }, /sign-in$/);
  },
  '/account/language': async () => {
    const browser = oauth.browser();
    const page = await browser.view('/oauth/logout/success');
    return () => browser.submit(page, { language: 'de' }, /language$/);
  },
  '/account/keys/:key/revoke': () => on('/account/keys', /revoke$/, {}, ({ id }) => oauth.api.key(id)),
  '/account/apps/revoke': () =>
    on('/account/apps', /revoke$/, {}, async ({ username }) => oauth.tokens(await oauth.client(), username)),
  '/account/apps/change': () =>
    on('/account/apps', /change$/, { duration: '30' }, async ({ username }) =>
      oauth.tokens(await oauth.client(), username),
    ),
  '/account/sessions/:session/end': async () => {
    const { username, browser } = await signedIn('/account/apps');
    await oauth.tokens(await oauth.client(), username); // signs in from another browser
    const page = await browser.view('/account/sessions');
    const other = page.html.match(/\/account\/sessions\/\w+\/end(?=")/g)!.at(-1)!; // the first session is this browser's
    return () => browser.submit(page, {}, new RegExp(`^${other}$`));
  },
  '/account/sessions/end-others': () =>
    on('/account/sessions', /end-others$/, { also: ['apps', 'links'] }, async ({ username }) =>
      oauth.tokens(await oauth.client(), username),
    ),
  '/account/calendar/create': () => on('/account/calendar', /create$/, { name: 'Phone' }),
  '/account/calendar/:link/revoke': () =>
    on('/account/calendar', /revoke$/, {}, ({ id }) =>
      oauth.api.app.get(CalendarLinks).create(id, 'Phone', { actor: 'user' }),
    ),
  '/account/sign-out': () => on('/account/apps', /sign-out$/, {}),
  '/account/security/passkeys/:passkey/remove': () => on('/account/security', /remove$/, {}, withPasskey),
  '/account/security/password': () =>
    on('/account/security', /password$/, {
      current_password: PASSWORD,
      new_password: 'another horse battery staple',
      end_others: 'yes',
    }),
  '/account/security/password/off': () => on('/account/security', /off$/, {}, withPasskey),
  '/account/security/password/on': () =>
    on('/account/security', /on$/, {}, async (signed) => {
      await withPasskey(signed);
      await signed.browser.submit(await signed.browser.view('/account/security'), {}, /off$/);
    }),
  '/account/security/notices': () => on('/account/security', /notices$/, { notice: ['key.created'] }),
  '/account/unsubscribe/:token': async () => {
    const { id } = await oauth.member();
    const browser = oauth.browser();
    const page = await browser.view(oauth.api.app.get(NoticeChoices).linkTo(id, 'key.created'));
    return () => browser.submit(page, {});
  },
  '/account/password-reset/send': async () => {
    const browser = oauth.browser();
    const page = await browser.view('/account/password-reset');
    return () => browser.submit(page, { username: 'somebody' }, /send$/);
  },
  '/account/new-password/:token/set': async () => {
    const { browser, page } = await atNewPassword();
    return () => browser.submit(page, { new_password: 'another horse battery staple' }, /set$/);
  },
  '/developer/clients': () => on('/developer/new-client', /clients$/, APP_FIELDS),
  '/developer/clients/:client': () => onClient(/clients\/[^/]+$/, APP_FIELDS),
  '/developer/clients/:client/logo': async () => {
    const { browser, page, action } = await atClient();
    return () => {
      const body = new FormData();
      body.append('csrf', csrfOf(page));
      body.append('logo', new Blob([PIXEL], { type: 'image/png' }), 'logo.png');
      return browser.open(`${action}/logo`, { method: 'POST', body });
    };
  },
  '/developer/clients/:client/remove-logo': () => toClient('remove-logo'),
  '/developer/clients/:client/rotate-secret': () =>
    toClient(
      'rotate-secret',
      { form: 'a'.repeat(24) },
      { profile: 'oidc', secret_auth_method: 'client_secret_basic' },
    ),
  '/developer/clients/:client/disable': () => onClient(/disable$/),
  '/developer/clients/:client/enable': () => toClient('enable'),
  '/developer/clients/:client/delete': () => onClient(/delete$/),
  '/developer/keys': () => on('/developer/new-key', /keys$/, KEY_FIELDS),
  '/developer/keys/:key/rotate': () => on('/developer', /rotate$/, {}, withKey),
  '/developer/keys/:key/revoke': () => on('/developer', /revoke$/, {}, withKey),
  '/interaction/:uid/sign-in': () =>
    atStep(false, (username) => ({ username, password: PASSWORD }), /sign-in$/),
  '/interaction/:uid/switch-user': () => atStep(true, () => ({}), /switch-user$/),
  '/oauth/logout/confirm': async () => {
    const { browser } = await signedIn('/account/apps');
    const page = await browser.view('/oauth/logout');
    return () => browser.submit(page, { logout: 'yes' }, /confirm$/);
  },
};

/** Excluded routes: requests by scripts, and actions that cannot be repeated. */
const OTHERS = [
  /\/options$/,
  /\/redirect-uris$/,
  /\/backchannel-logout$/,
  /\/passkey$/, // the server accepts a passkey response once
  /^\/account\/security\/passkeys$/, // a separate test covers this form
  /^\/interaction\/:uid\/(consent|cancel)$/, // separate tests cover these forms
  /^\/account\/data\/download$/, // the server allows one download at a time
  /^\/developer\/review\/|\/apps\/(accept|leave)$/, // test/oauth/review.e2e-spec.ts sends each form twice
  /^\/developer\/webhooks\/|\/redeliver$/, // test/webhooks/developer.e2e-spec.ts sends each form twice
];

async function on(
  path: string,
  form: RegExp,
  fields: Record<string, string | string[]>,
  prepare: (signed: Signed) => Promise<unknown> = () => Promise.resolve(),
): Promise<Sending> {
  const signed = await signedIn('/account/apps');
  await prepare(signed);
  const page = await signed.browser.view(path);
  return () => signed.browser.submit(page, fields, form);
}

/** Opens the page of a password-reset link. */
async function atNewPassword() {
  const { id } = await oauth.member();
  const token = randomBytes(32).toString('base64url');
  await oauth.query(
    `INSERT INTO oauth_state (key, model, user_id, expires_at) VALUES ($1, 'PasswordReset', $2, now() + interval '1 hour')`,
    [oauth.api.app.get(TokenKeys).keyOf('PasswordReset', token), id],
  );
  const browser = oauth.browser();
  return { browser, page: await browser.view(`/account/new-password/${token}`) };
}

const withPasskey = ({ browser }: Signed) => addPasskey(browser, new Authenticator(oauth.issuer));

async function withKey({ browser }: Signed): Promise<void> {
  await browser.submit(await browser.view('/developer/new-key'), KEY_FIELDS, /keys$/);
}

async function atClient(fields: Record<string, string> = {}) {
  const { id, browser } = await signedIn('/account/apps');
  const clientId = await oauth.client({ owner: { userId: id, ip: null }, actor: 'user', ...fields });
  const action = `/developer/clients/${clientId}`;
  return { browser, action, page: await browser.view(action) };
}

async function onClient(form: RegExp, fields: Record<string, string> = {}): Promise<Sending> {
  const { browser, page } = await atClient();
  return () => browser.submit(page, fields, form);
}

/** Sends a form that the app’s page does not show in this state. */
async function toClient(
  step: string,
  more: Record<string, string> = {},
  fields: Record<string, string> = {},
) {
  const { browser, page, action } = await atClient(fields);
  const body = new URLSearchParams({ csrf: csrfOf(page), ...more });
  return () => browser.open(`${action}/${step}`, { method: 'POST', body });
}

async function atStep(
  isSignedIn: boolean,
  fieldsOf: (username: string) => Record<string, string>,
  form: RegExp,
): Promise<Sending> {
  const { username } = await oauth.member();
  const browser = oauth.browser();
  const first = await browser.view(oauth.request(await oauth.client()).url);
  const page = isSignedIn ? await browser.press(first, { username, password: PASSWORD }, /sign-in$/) : first;
  return () => browser.submit(page, fieldsOf(username), form);
}

describe('a form that is sent several times', () => {
  /** All pages with a sign-in use the same form. */
  const routeOf = (path: string) =>
    path.replace(/^\/(account|developer)(\/[\w-]+)?\/sign-in$/, '/account/apps/sign-in');

  it('is tested for each POST route outside /api, except the routes in OTHERS', () => {
    const routes = oauth.api.app
      .get(RouteTable)
      .routes.filter(({ method, path }) => method === 'POST' && !path.startsWith('/api/'))
      .map(({ path }) => routeOf(path))
      .filter((path) => !OTHERS.some((other) => other.test(path)));
    expect([...new Set([...routes, '/oauth/logout/confirm'])].sort()).toEqual(Object.keys(FORMS).sort());
  });

  it.each(Object.entries(FORMS))('gets no error, concurrently or after a minute: %s', async (_, fillIn) => {
    const send = await fillIn();
    const responses = await atOnce(2, send);
    await oauth.age('oauth_state', 60);
    responses.push(await send());
    for (const response of responses)
      if (!(response instanceof URL)) expect([response.status, faultOn(response)]).toEqual([200, undefined]);
  });

  it('shows the confirmation of a new passkey each time', async () => {
    const { browser } = await signedIn('/account/security');
    const page = await browser.view('/account/security');
    const credential = new Authenticator(oauth.issuer).register(await optionsFor(browser, page));
    for (let n = 0; n < 2; n++) {
      const { html } = await browser.press(page, { credential, name: 'Laptop' }, /passkeys$/);
      expect(html).toContain('You can sign in with your new passkey.');
    }
  });

  it('does not confirm a password that differs from the first form’s password', async () => {
    const { browser, page } = await atNewPassword();
    const set = async (new_password: string) => (await browser.press(page, { new_password }, /set$/)).status;
    expect(await set('another horse battery staple')).toBe(200);
    expect(await set('a different horse battery staple')).toBe(410);
  });

  it('redirects each time to the app that requested the sign-out', async () => {
    const bye = 'https://app.example/bye';
    const clientId = await oauth.client({ post_logout_redirect_uris: [bye] });
    for (const fields of [{ logout: 'yes' }, {}] as Record<string, string>[]) {
      const { browser } = await signedIn('/account/apps');
      const url = `/oauth/logout?${new URLSearchParams({ client_id: clientId, post_logout_redirect_uri: bye, state: 's' })}`;
      const page = await browser.view(url);
      for (let n = 0; n < 2; n++)
        expect(await browser.submit(page, fields, /confirm$/)).toEqual(new URL(`${bye}?state=s`));
    }
  });
});

/** The error text of a page. */
const faultOn = ({ html }: FormPage) => /role="alert">([^]*?)<\/div>/.exec(html)?.[1];

describe('a completed sign-in step', () => {
  async function atSignIn(parameters: Record<string, string> = {}, fields = {}) {
    const member = await oauth.member();
    const clientId = await oauth.client(fields);
    const browser = oauth.browser();
    return { ...member, browser, page: await browser.view(oauth.request(clientId, parameters).url) };
  }

  it('redirects to the open consent page, or to the sign-in page if the browser lost its cookies', async () => {
    const { browser, page, username } = await atSignIn();
    const before = new Map(browser.cookies);
    const signIn = () => browser.submit(page, { username, password: PASSWORD }) as Promise<FormPage>;
    const consent = await signIn();
    expect(consent.html).toContain('name="decision"');
    for (const again of [await browser.open(page.url), await signIn()] as FormPage[])
      expect(again.url.href).toBe(consent.url.href);
    browser.cookies.clear(); // the browser loses the cookies of the sign-in response
    for (const [name, cookie] of before) browser.cookies.set(name, cookie);
    expect(asksForPassword(await signIn())).toBe(true);
    expect((await signIn()).url.pathname).toMatch(/^\/interaction\//);
  });

  it('redirects to the open consent page even if a second click’s response arrives late', async () => {
    const { browser, page, username } = await atSignIn();
    const signIn = () => browser.post(page, `${page.url.pathname}/sign-in`, { username, password: PASSWORD });
    const [first, second] = [await signIn(), await signIn()].map(({ headers }) => headers.get('location')!);
    const consent = (await browser.open(first!)) as FormPage;
    expect(consent.html).toContain('name="decision"');
    expect(((await browser.open(second!)) as FormPage).url.href).toBe(consent.url.href);
  });

  it('shows “This is done already” with a link to the app after Back, a reload or a second click', async () => {
    const { browser, page, username } = await atSignIn();
    const consent = await browser.press(page, { username, password: PASSWORD });
    expect(consent.html).toContain('name="decision"');
    const allow = () => browser.submit(consent, { decision: 'allow', scope: 'profile:read' }, /consent$/);
    expect(await allow()).toBeInstanceOf(URL);
    for (const done of [
      await browser.open(page.url),
      await browser.submit(page, { username, password: PASSWORD }),
      await browser.open(consent.url),
      await allow(),
    ] as FormPage[]) {
      expect([done.status, done.html]).toEqual([410, expect.stringContaining('This is done already')]);
      expect(done.html).toContain(`href="${new URL(REDIRECT_URI).origin}"`);
    }
  });

  it('has a link to a web app’s page, and no link to a native app', async () => {
    const web = await atSignIn({}, { client_uri: 'https://site.example/start' });
    const native = await atSignIn(
      { redirect_uri: 'com.example.app:/cb' },
      { type: 'native', redirect_uris: ['com.example.app:/cb'] },
    );
    for (const [{ browser, page }, href] of [
      [web, 'href="https://site.example/start"'],
      [native, undefined],
    ] as const) {
      await browser.submit(page, {}, /cancel$/);
      const { html } = await browser.view(page.url);
      expect(html).toContain('This is done already');
      if (href === undefined) expect(html).not.toContain('Go back to the app</a>');
      else expect(html).toContain(href);
    }
  });

  it('is shown as expired in another browser, and after all of the member’s sign-ins end', async () => {
    const { browser, page, username, id } = await atSignIn();
    const consent = await browser.press(page, { username, password: PASSWORD });
    await browser.allow(consent);
    expect((await oauth.browser().view(consent.url)).html).toContain('has expired');
    await oauth.query('UPDATE users SET sign_ins_valid_since = clock_timestamp() WHERE id = $1', [id]);
    expect((await browser.view(consent.url)).html).toContain('has expired');
  });
});

it('POST /account/sign-out redirects to the signed-out page each time that the form is sent', async () => {
  const { browser, page } = await signedIn('/account/apps');
  for (let n = 0; n < 2; n++) {
    const after = await browser.press(page, {}, /sign-out$/);
    expect([after.status, after.url.pathname]).toEqual([200, '/sign-in/signed-out']);
    expect(after.html).toContain('You are signed out');
    expect(await browser.isSignedIn()).toBe(false);
  }
});

it('ending all other sessions keeps the apps’ access and the calendar links unless the member ticks them', async () => {
  const { id, username, browser } = await signedIn('/account/sessions');
  const links = oauth.api.app.get(CalendarLinks);
  await links.create(id, 'Phone', { actor: 'user' });
  const app = await oauth.client();
  const tokens = await oauth.tokens(app, username);
  const open = () => browser.view('/account/sessions');
  const end = async (also: string[]) => browser.press(await open(), { also }, /end-others$/);

  const page = await open();
  expect(page.html).toContain('Also end the access of all connected apps (1)');
  expect(page.html).toContain('Also revoke all calendar links (1)');
  expect((await end([])).html).toContain('All other sessions are signed out.');
  expect([await oauth.me(tokens.access_token), (await links.list(id)).length]).toEqual([200, 1]);

  await oauth.tokens(app, username); // from another browser
  expect((await end(['links'])).html).toContain('the access that you chose has ended');
  expect([await oauth.me(tokens.access_token), (await links.list(id)).length]).toEqual([200, 0]);

  await oauth.tokens(app, username);
  expect((await end(['apps'])).html).not.toContain('too (');
  expect(await oauth.me(tokens.access_token)).toBe(401);
  expect(await oauth.details({ user: id, type: 'calendar_link.revoked' })).toEqual([{ links: 1 }]);
  expect(await oauth.details({ user: id, type: 'access.revoked' })).toEqual([{ grants: 3 }]);
});
