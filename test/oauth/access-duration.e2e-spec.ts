import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import type { Duration } from '../../src/clients/access-durations.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { clientWithKey } from '../support/client-kinds.js';
import { OauthTest, REDIRECT_URI, type Browser, type FormPage } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const DAY = 86_400;
const SCOPE = 'openid profile:read events:read';
const NATIVE = 'com.example.app:/cb';
const native = () => oauth.client({ type: 'native', redirect_uris: [NATIVE] });
const confidential = async () => (await clientWithKey(oauth)).id;

/** The durations that a page offers, and the preselected duration. */
function durationsOn(html: string) {
  const radios = [...html.matchAll(/<input type="radio" name="duration" value="(\w+)"( checked)?>/g)];
  return {
    offered: radios.map(([, value]) => value),
    selected: radios.filter(([, , checked]) => checked).map(([, value]) => value),
  };
}

async function atConsent(clientId: string, username: string, parameters = {}, server = oauth) {
  const browser = server.browser();
  const page = await browser.signIn(server.request(clientId, { scope: SCOPE, ...parameters }).url, username);
  return { browser, page };
}

const offers = async (clientId: string, parameters = {}, server = oauth) =>
  durationsOn((await atConsent(clientId, (await server.member()).username, parameters, server)).page.html);

/** Signs in, chooses a duration, and redeems the code. */
async function access(
  clientId: string,
  username: string,
  duration: string,
  { browser = oauth.browser(), ...parameters }: { browser?: Browser; redirect_uri?: string } = {},
) {
  const { url, redeem } = oauth.request(clientId, { scope: SCOPE, ...parameters });
  const { status, body } = await redeem(await browser.authorize(url, { username, duration }));
  expect([status, body.error]).toEqual([200, undefined]);
  return body;
}

async function credential(accessToken: string) {
  const response = await oauth.get('/api/public/credential', accessToken);
  return (await response.json()) as { access_ends_at: string | null; expires_at: string };
}

/** Days from now to `time`. */
const daysTo = (time: string) => (Date.parse(`${time.replace(' ', 'T')}Z`) - Date.now()) / 86_400_000;

const UP_TO_180 = ['once', '30', '180'];
const ALL = [...UP_TO_180, 'unlimited'];
const limited = (longest_access: Duration) => () => oauth.client({ longest_access });
const ofMember = async () => {
  const owner = { userId: (await oauth.member()).id, ip: null };
  return oauth.client({ type: 'native', redirect_uris: [NATIVE], owner });
};

describe('the consent page', () => {
  it.each<[string, () => Promise<string>, object, string[], string]>([
    ['a public web app', () => oauth.client(), {}, UP_TO_180, '30'],
    ['a native app', native, { redirect_uri: NATIVE }, ALL, '180'],
    ['a confidential app', confidential, {}, ALL, '180'],
    [
      'a public web app that proves a DPoP key',
      () => oauth.client(),
      { dpop_jkt: 'x'.repeat(43) },
      ALL,
      '180',
    ],
    ['a web app that an admin limited to one-time access', limited('once'), {}, ['once'], 'once'],
    ['a web app that an admin limited to 30 days', limited('30'), {}, ['once', '30'], '30'],
    ['a web app for which an admin allowed unlimited access', limited('unlimited'), {}, ALL, '30'],
    ['a native app that a member registered', ofMember, { redirect_uri: NATIVE }, UP_TO_180, '180'],
  ])('offers the durations that are allowed for %s', async (_, make, parameters, offered, selected) => {
    expect(await offers(await make(), parameters)).toEqual({ offered, selected: [selected] });
  });

  it.each(['unlimited', '31', '', 'constructor'])(
    'rejects the duration "%s" for a web app',
    async (duration) => {
      const clientId = await oauth.client();
      const { browser, page } = await atConsent(clientId, (await oauth.member()).username);
      const form = { scope: ['profile:read'], decision: 'allow', duration };
      expect((await browser.press(page, form, /\/consent$/)).status).toBe(400);
      expect(await oauth.query('SELECT FROM oauth_consents WHERE client_id = $1', [clientId])).toEqual([]);
    },
  );

  it('follows ACCESS_LONGEST and ACCESS_PRESELECTED', async () => {
    await using other = await OauthTest.start({ accessLongest: '180', accessPreselected: 'once' }, oauth);
    expect(await offers(await native(), { redirect_uri: NATIVE }, other)).toEqual({
      offered: UP_TO_180,
      selected: ['once'],
    });
  });
});

describe('access for a limited time', () => {
  it('ends 30 days after a 30-day consent, even if the app refreshes its tokens', async () => {
    const [clientId, { username }] = [await native(), await oauth.member()];
    const first = await access(clientId, username, '30', { redirect_uri: NATIVE });
    expect(first.refresh_token_expires_in).toBeGreaterThan(30 * DAY - 60);
    expect(first.refresh_token_expires_in).toBeLessThanOrEqual(30 * DAY);
    await oauth.passTime(29 * DAY);
    const second = await oauth.refresh(clientId, first.refresh_token);
    expect(second.status).toBe(200);
    expect(second.body.refresh_token_expires_in).toBeLessThanOrEqual(DAY);
    expect(second.body.refresh_token_expires_in).toBeGreaterThan(DAY - 60);
    await oauth.passTime(DAY - 300);
    const third = await oauth.refresh(clientId, second.body.refresh_token);
    expect(third.body.expires_in).toBeLessThanOrEqual(300); // the access token expires when the access ends
    expect(await oauth.me(third.body.access_token)).toBe(200);
    await oauth.passTime(300);
    expect(await oauth.me(third.body.access_token)).toBe(401);
    const late = await oauth.refresh(clientId, third.body.refresh_token);
    expect([late.status, late.body.error]).toEqual([400, 'invalid_grant']);
  });

  it('has the same end in the credential and introspection responses', async () => {
    const [client, { username }] = [await clientWithKey(oauth), await oauth.member()];
    const { url, redeem } = oauth.request(client.id, { scope: SCOPE });
    const back = await oauth.browser().authorize(url, { username, duration: '30' });
    const { body } = await redeem(back, await client.assertion());
    const { access_ends_at } = await credential(body.access_token);
    expect(daysTo(access_ends_at!)).toBeCloseTo(30, 2);
    const form = { ...(await client.assertion()), token: body.refresh_token };
    const { body: introspected } = await oauth.post('/oauth/introspect', form);
    expect(introspected.active).toBe(true);
    expect(((introspected.exp as number) - Date.now() / 1000) / DAY).toBeCloseTo(30, 2);
  });

  it('ends at the same time for all sign-ins under one consent', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    await access(clientId, username, '30', { browser });
    await oauth.passTime(DAY);
    await access(clientId, username, '30', { browser });
    const ends = await oauth.query<{ is_same: boolean }>(
      `SELECT g.access_ends_at = c.access_ends_at AS is_same FROM oauth_grants g
JOIN oauth_consents c ON c.client_id = g.client_id WHERE g.client_id = $1`,
      [clientId],
    );
    expect(ends).toEqual([{ is_same: true }, { is_same: true }]);
  });

  it('requires no new consent until it ends; then the consent page preselects the earlier choices', async () => {
    const { username, clientId, browser } = await oauth.memberAndClient();
    const page = await browser.signIn(oauth.request(clientId, { scope: SCOPE }).url, username);
    await browser.submit(page, { scope: ['profile:read'], decision: 'allow', duration: '180' }, /\/consent$/);
    const silent = async () =>
      (await browser.leave(oauth.request(clientId, { scope: SCOPE, prompt: 'none' }).url)).searchParams;
    await oauth.passTime(179 * DAY);
    expect((await silent()).has('code')).toBe(true);
    const [grant] = await oauth.query<{ days: number }>(
      `SELECT EXTRACT(epoch FROM max(access_ends_at) - now())::float8 / 86400 AS days FROM oauth_grants WHERE client_id = $1`,
      [clientId],
    );
    expect(grant!.days).toBeCloseTo(1, 2); // access does not last longer than the member allowed
    await oauth.passTime(DAY + 1);
    expect((await silent()).get('error')).toBe('consent_required');
    const again = await browser.view(oauth.request(clientId, { scope: SCOPE }).url);
    expect(durationsOn(again.html).selected).toEqual(['180']);
    expect(again.html.match(/(?<=name="scope" value=")[\w:]+(?=" checked>)/g)).toEqual(['profile:read']);
  });
});

it('one-time access has no refresh token, ends with its access token, and requires a new consent next time', async () => {
  const { username, clientId, browser } = await oauth.memberAndClient();
  const body = await access(clientId, username, 'once', { browser });
  expect(body).not.toHaveProperty('refresh_token');
  expect(body).not.toHaveProperty('refresh_token_expires_in');
  expect(body.expires_in).toBe(600);
  const { access_ends_at, expires_at } = await credential(body.access_token);
  expect(access_ends_at).toBe(expires_at);
  const silent = await browser.leave(oauth.request(clientId, { scope: SCOPE, prompt: 'none' }).url);
  expect(silent.searchParams.get('error')).toBe('consent_required');
  await oauth.passTime(480); // leaves a slow host two minutes
  expect(await oauth.me(body.access_token)).toBe(200);
  await oauth.passTime(120);
  expect(await oauth.me(body.access_token)).toBe(401);
});

describe('unlimited access', () => {
  it('lasts while the app refreshes its tokens; introspection states when unused access ends', async () => {
    const [clientId, { username }] = [await native(), await oauth.member()];
    let body = await access(clientId, username, 'unlimited', { redirect_uri: NATIVE });
    const form = { client_id: clientId, token: body.refresh_token };
    const { body: introspected } = await oauth.post('/oauth/introspect', form);
    expect(((introspected.exp as number) - Date.now() / 1000) / DAY).toBeCloseTo(180, 2); // end of unused access
    for (let halfYear = 0; halfYear < 4; halfYear++) {
      expect(body).not.toHaveProperty('refresh_token_expires_in');
      expect((await credential(body.access_token)).access_ends_at).toBeNull();
      await oauth.passTime(180 * DAY - 60);
      await oauth.api.app.get(Sweeper).sweep();
      const next = await oauth.refresh(clientId, body.refresh_token);
      expect(next.status).toBe(200);
      ({ body } = next);
    }
  });

  it.each([
    ['a native app', 180, native, NATIVE],
    ['a public web app', 30, () => oauth.client({ longest_access: 'unlimited' }), REDIRECT_URI],
  ] as const)('ends if %s does not use it for %i days', async (_, days, make, redirect_uri) => {
    const [clientId, { id, username }] = [await make(), await oauth.member()];
    const { refresh_token } = await access(clientId, username, 'unlimited', { redirect_uri });
    await oauth.passTime(days * DAY - 60);
    const used = await oauth.refresh(clientId, refresh_token);
    expect(used.status).toBe(200);
    await oauth.passTime(days * DAY + 1);
    const late = await oauth.refresh(clientId, used.body.refresh_token);
    expect([late.status, late.body.error]).toEqual([400, 'invalid_grant']);
    expect(await new ConnectedApps(oauth.dataSource).listApps(id)).toMatchObject({ count: 0 });
  });
});

it.each([
  ['a native app', native, NATIVE],
  ['a public web app', () => oauth.client(), REDIRECT_URI],
] as const)('a code exchange does not update the grant row for %s', async (_, make, redirect_uri) => {
  const [clientId, { username }] = [await make(), await oauth.member()];
  const grant = 'SELECT ctid::text, expires_at FROM oauth_grants WHERE client_id = $1';
  const code = await oauth.code(clientId, username, { redirect_uri });
  const before = await oauth.query(grant, [clientId]);
  expect(before).toHaveLength(1);
  expect((await oauth.token(code)).status).toBe(200);
  expect(await oauth.query(grant, [clientId])).toEqual(before);
});

describe('/account/apps', () => {
  const change = (browser: Browser, page: FormPage, duration: string) =>
    browser.press(page, { duration }, /\/apps\/change$/);

  async function withAccess(duration: string) {
    const { id, username, clientId, browser } = await oauth.memberAndClient();
    return { clientId, id, browser, tokens: await access(clientId, username, duration, { browser }) };
  }
  const ends = async (clientId: string) =>
    oauth.query<{ days: number }>(
      `SELECT round(EXTRACT(epoch FROM access_ends_at - now()) / 86400)::int AS days FROM oauth_grants WHERE client_id = $1`,
      [clientId],
    );

  it('extends access up to the app’s limit, or shortens it, with one click', async () => {
    const { clientId, id, browser, tokens } = await withAccess('30');
    const page = await browser.view('/account/apps');
    const buttons = [...page.html.matchAll(/name="duration" value="(\w+)"/g)].map(([, value]) => value);
    expect(buttons).toEqual(['30', '180']);
    await change(browser, page, '180');
    expect(await ends(clientId)).toEqual([{ days: 180 }]);
    expect(daysTo((await credential(tokens.access_token)).access_ends_at!)).toBeCloseTo(180, 2);
    await oauth.passTime(29 * DAY);
    const { body } = await oauth.refresh(clientId, tokens.refresh_token);
    expect(body.refresh_token_expires_in).toBeGreaterThan(150 * DAY);
    expect((await change(browser, page, '30')).html).toContain('You changed how long the app has access.');
    expect(await ends(clientId)).toEqual([{ days: 30 }]);
    expect(await oauth.details({ user: id, type: 'access.changed' })).toEqual([
      { grants: 1, duration: '180' },
      { grants: 1, duration: '30' },
    ]);
  });

  it.each(['unlimited', 'once', '', '31'])('rejects the duration "%s" for a web app', async (duration) => {
    const { clientId, browser } = await withAccess('30');
    expect((await change(browser, await browser.view('/account/apps'), duration)).status).toBe(400);
    expect(await ends(clientId)).toEqual([{ days: 30 }]);
  });

  it('neither restores ended access nor extends one-time access', async () => {
    const { clientId, id, browser } = await withAccess('30');
    const page = await browser.view('/account/apps');
    await new ConnectedApps(oauth.dataSource).revoke(id, clientId, { actor: 'user' });
    await change(browser, page, '180');
    expect(await ends(clientId)).toEqual([]);

    const once = await withAccess('once');
    const shown = await once.browser.view('/account/apps');
    expect(shown.html).not.toContain('name="duration"');
    const form = { client_id: once.clientId, duration: '180' };
    expect((await once.browser.post(shown, '/account/apps/change', form)).status).toBe(303);
    expect(await ends(once.clientId)).toEqual([{ days: 0 }]);
    expect(await oauth.events({ user: once.id, type: 'access.changed' })).toEqual([]);
  });

  it('ends access on request, even during a concurrent change of duration and a token refresh', async () => {
    for (let round = 0; round < 5; round++) {
      const { clientId, browser, tokens } = await withAccess('30');
      const page = await browser.view('/account/apps');
      await Promise.all([
        change(browser, page, '180'),
        browser.submit(page, {}, /\/apps\/revoke$/),
        oauth.refresh(clientId, tokens.refresh_token),
      ]);
      expect(await ends(clientId)).toEqual([]);
      expect(await oauth.me(tokens.access_token)).toBe(401);
    }
  });
});

describe('a refresh request for ended access', () => {
  const [BY_MEMBER, BY_ADMIN] = [{ actor: 'user' }, { actor: 'admin' }] as const;
  const [MEMBER, PLATFORM] = ['ended by the member', 'ended by the platform'];
  const sweep = () => oauth.api.app.get(Sweeper).sweep();
  const apps = () => new ConnectedApps(oauth.dataSource);
  const users = () => new UsersService(oauth.dataSource);
  const pass = async (days: number) => {
    await oauth.passTime(days * DAY);
    // The sweeper deletes tokens a minute after they expire.
    await oauth.passTime(120);
  };

  type Ended = { clientId: string; id: number; browser: Browser; token: string };

  async function refused(clientId: string, token: string) {
    const { status, body } = await oauth.refresh(clientId, token);
    expect([status, body.error]).toEqual([400, 'invalid_grant']);
    return body.error_description as string;
  }

  it.each<[string, string, (of: Ended) => Promise<unknown>]>([
    [
      'the member ended the access on /account/apps',
      MEMBER,
      async ({ browser }) => browser.submit(await browser.view('/account/apps'), {}, /\/apps\/revoke$/),
    ],
    ['the member ended all access', MEMBER, ({ id }) => apps().revokeAll(id, BY_MEMBER)],
    ['an admin ended the access', PLATFORM, ({ id, clientId }) => apps().revoke(id, clientId, BY_ADMIN)],
    ['an admin disabled the member', PLATFORM, ({ id }) => users().disable(id, 'admin')],
    ['an admin erased the member', PLATFORM, ({ id }) => eraseMembers(oauth.dataSource, [id], BY_ADMIN)],
    ['an admin set a new password', PLATFORM, ({ id }) => users().setPassword(id, 'quiet herons', 'admin')],
    [
      'the app revoked a token',
      'ended by the app',
      ({ clientId, token }) => oauth.post('/oauth/revoke', { client_id: clientId, token }),
    ],
    ['the access expired', 'expired', () => pass(30)],
    ['the access expired and the sweeper deleted its row', 'expired', () => pass(30).then(sweep)],
  ])('is rejected with the reason if %s: %s', async (_, reason, end) => {
    const [clientId, { id, username }, browser] = [await native(), await oauth.member(), oauth.browser()];
    const parameters = { browser, redirect_uri: NATIVE };
    const { refresh_token: token } = await access(clientId, username, '30', parameters);
    await end({ clientId, id, browser, token });
    const told = await refused(clientId, token);
    expect(told).toMatch(/^the access ended at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: /);
    expect(told.split(': ')[1]).toBe(reason);
    const foreign = await refused(await oauth.client(), token);
    expect(foreign).toBe(await refused(clientId, 'x'.repeat(43)));
  });

  it.each([false, true])(
    'is rejected with “not used for 30 days”, or 180 for a native app (the sweeper has run: %s)',
    async (isSwept) => {
      const web = await oauth.client({ longest_access: 'unlimited' });
      const [clientId, { username }] = [await native(), await oauth.member()];
      const { refresh_token } = await access(clientId, username, 'unlimited', { redirect_uri: NATIVE });
      await oauth.passTime(150 * DAY);
      const { refresh_token: ofWeb } = await access(web, username, 'unlimited');
      await pass(30);
      if (isSwept) for (let i = 0; i < 2; i++) await sweep();
      expect(await refused(web, ofWeb)).toMatch(/: not used for 30 days$/);
      expect(await refused(clientId, refresh_token)).toMatch(/: not used for 180 days$/);
    },
  );

  it('is rejected with the reason if the member ended the access during this or the previous request', async () => {
    for (let round = 0; round < 5; round++) {
      const [clientId, { id, username }] = [await oauth.client(), await oauth.member()];
      const { refresh_token } = await access(clientId, username, '30');
      const [{ body }] = await Promise.all([
        oauth.refresh(clientId, refresh_token),
        apps().revoke(id, clientId, { actor: 'user' }),
      ]);
      const last = body.error === undefined ? body.refresh_token : refresh_token;
      expect(await refused(clientId, last)).toMatch(/: ended by the member$/);
      if (body.error !== undefined) expect(body.error_description).toMatch(/: ended by the member$/);
    }
  });
});

it('a consent given before members could choose a duration still gives a sign-in 14 days of access', async () => {
  const { username, clientId, browser } = await oauth.memberAndClient();
  await access(clientId, username, '180', { browser });
  const earlier = 'UPDATE oauth_consents SET duration = NULL, access_ends_at = NULL WHERE client_id = $1';
  await oauth.query(earlier, [clientId]);
  const { url, redeem } = oauth.request(clientId, { scope: SCOPE, prompt: 'none' });
  const { body } = await redeem(await browser.leave(url));
  expect((body.refresh_token_expires_in as number) / DAY).toBeCloseTo(14, 2);
});
