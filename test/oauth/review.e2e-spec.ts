import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { AppTesters, MAX_TESTERS } from '../../src/clients/app-testers.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { ClientReviews } from '../../src/clients/reviews.js';
import { newFormId } from '../../src/member-pages/rendering/pages.js';
import { PersonalData } from '../../src/personal-data/personal-data.js';
import { pua, puaJson } from '../support/command-line.js';
import { PIXEL } from '../support/images.js';
import { OauthTest, PASSWORD, REDIRECT_URI, csrfOf } from '../support/oauth.js';

let oauth: OauthTest;
let clients: ClientsService;
let reviews: ClientReviews;
let testers: AppTesters;
beforeAll(async () => {
  oauth = await OauthTest.start({ developerConsole: true, reviewsApps: true, platformName: 'Gipfel' });
  clients = new ClientsService(oauth.dataSource, oauth.api.config);
  reviews = new ClientReviews(oauth.dataSource);
  testers = oauth.api.app.get(AppTesters, { strict: false });
});
afterAll(() => oauth.close());

const SCOPES = ['profile:read', 'events:read'] as const;
const SCOPE = SCOPES.join(' ');
const OTHER_URI = 'https://other.example/callback';
const application = {
  purpose: 'Shows events on a map.',
  policy_uri: 'https://app.example/privacy',
  reasons: { 'profile:read': 'To greet you.', 'events:read': 'To show them.' },
};
const run = (...parameters: string[]) => pua(oauth.api.environment, parameters);
const json = <Result = Record<string, unknown>>(...parameters: string[]) =>
  puaJson<Result>(oauth.api.environment, parameters);

/** A member signed in to their account pages. */
async function signedIn(of = oauth) {
  const member = await of.member();
  const browser = of.browser();
  const open = (path: string) => browser.view(path);
  const page = await browser.signIn('/account/apps', member.username);
  const post = async (path: string, fields: Record<string, string> = {}) => {
    const body = new URLSearchParams({ csrf: csrfOf(page), form: newFormId(), ...fields });
    return browser.view(path, { method: 'POST', body });
  };
  return { ...member, browser, open, post };
}

/** An app that a member registered. */
async function ownApp(of = oauth) {
  const developer = await signedIn(of);
  const owner = { userId: developer.id, ip: null };
  return { id: await of.client({ owner, actor: 'user', scopes: [...SCOPES] }), developer, owner };
}

async function approvedApp(logo?: Buffer) {
  const app = await ownApp();
  if (logo) await clients.update(app.id, () => ({ logo }), 'user', app.owner);
  await reviews.apply(app.id, application, app.owner);
  await reviews.review(app.id, { approved: true });
  return app;
}

/** The result of a sign-in for the app. */
async function atConsent(clientId: string, username: string, parameters = {}, of = oauth) {
  const browser = of.browser();
  const { url } = of.request(clientId, { scope: SCOPE, ...parameters });
  const signIn = await browser.view(url);
  if (signIn.status !== 200) return { browser, page: signIn };
  return { browser, page: await browser.press(signIn, { username, password: PASSWORD }, /\/sign-in$/) };
}

const isAsked = async (clientId: string, username: string, of = oauth) => {
  const { page } = await atConsent(clientId, username, {}, of);
  return page.status === 200 && page.html.includes('name="decision" value="allow"');
};

async function testerOf(app: Awaited<ReturnType<typeof ownApp>>) {
  const tester = await signedIn();
  await testers.invite(app.id, tester.username, app.owner);
  await testers.accept(tester.id, app.id, { actor: 'user' });
  return tester;
}

describe('An app that the platform has not approved', () => {
  it('signs its owner in', async () => {
    const { id, developer } = await ownApp();
    const { access_token } = await oauth.tokens(id, developer.username, { scope: SCOPE });
    expect(await oauth.me(access_token)).toBe(200);
  });

  it('shows other members an explanation instead of the consent page, and stores neither consent nor grant', async () => {
    const { id } = await ownApp();
    const { browser, page } = await atConsent(id, (await oauth.member()).username);
    expect(page.status).toBe(403);
    expect(page.html).toContain('The platform has not approved this app.');
    expect(page.html).not.toContain('name="decision"');
    const body = new URLSearchParams({ csrf: csrfOf(page), decision: 'allow', scope: 'profile:read' });
    expect((await browser.view(`${page.url.pathname}/consent`, { method: 'POST', body })).status).toBe(403);
    const back = await browser.submitAndLeave(page, {}, /\/cancel$/);
    expect(back.searchParams.get('error')).toBe('access_denied');
    for (const table of ['oauth_consents', 'oauth_grants'])
      expect(await oauth.query(`SELECT FROM ${table} WHERE client_id = $1`, [id])).toEqual([]);
  });

  it('returns consent_required to prompt=none for a member who may no longer use the app', async () => {
    const app = await ownApp();
    const member = await testerOf(app);
    await oauth.tokens(app.id, member.username, { scope: SCOPE });
    await oauth.query('DELETE FROM app_testers WHERE client_id = $1', [app.id]);
    const back = await member.browser.leave(oauth.request(app.id, { scope: SCOPE, prompt: 'none' }).url);
    expect(back.searchParams.get('error')).toBe('consent_required');
  });

  it('shows the consent page to a member who is not a tester if DEVELOPER_CONSOLE is open', async () => {
    await using open = await OauthTest.start({ developerConsole: true }, oauth);
    const { id } = await ownApp(open);
    expect(await isAsked(id, (await open.member()).username, open)).toBe(true);
  });

  it('offers no unlimited access; after approval, a native app offers it', async () => {
    const { id, owner, developer } = await ownApp();
    const redirect_uri = 'com.example.app:/cb';
    const native = `UPDATE oauth_clients SET type = 'native', redirect_uris = $2 WHERE id = $1`;
    await oauth.query(native, [id, [redirect_uri]]);
    const { page } = await atConsent(id, developer.username, { redirect_uri });
    expect(page.html).not.toContain('value="unlimited"');
    await reviews.apply(id, application, owner);
    await reviews.review(id, { approved: true });
    oauth.api.app.get(RevocationChannel).announce({ kind: 'client', id });
    const after = await atConsent(id, developer.username, { redirect_uri });
    expect(after.page.html).toContain('value="unlimited"');
  });
});

describe('A tester', () => {
  it('uses the app from accepting the invitation until leaving the test, which ends the app’s access', async () => {
    const app = await ownApp();
    const tester = await signedIn();
    const invited = await app.developer.post(`/developer/review/${app.id}/testers`, {
      username: tester.username.toUpperCase(),
    });
    expect(invited.html).toContain('The invitation is saved.');
    expect(await isAsked(app.id, tester.username)).toBe(false);
    const page = await tester.open('/account/apps');
    expect(page.html).toContain(`@${app.developer.username}`);
    for (let n = 0; n < 2; n++)
      expect(await tester.browser.press(page, {}, /\/accept$/)).toMatchObject({ status: 200 });
    const { access_token } = await oauth.tokens(app.id, tester.username, { scope: SCOPE });
    expect(await oauth.me(access_token)).toBe(200);
    const accepted = await tester.open('/account/apps');
    for (let n = 0; n < 2; n++) await tester.browser.submit(accepted, {}, /\/leave$/);
    expect(await oauth.me(access_token)).toBe(401);
    expect(await isAsked(app.id, tester.username)).toBe(false);
    expect(await oauth.events({ client: app.id, type: 'tester.%' })).toMatchObject([
      { type: 'tester.invited', actor: 'user', user_id: app.developer.id },
      { type: 'tester.accepted', actor: 'user', user_id: tester.id },
      { type: 'tester.left', actor: 'user', user_id: tester.id },
    ]);
  });

  it('cannot use the app after the owner removes the tester, which ends the app’s access', async () => {
    const app = await ownApp();
    const tester = await testerOf(app);
    const { access_token } = await oauth.tokens(app.id, tester.username, { scope: SCOPE });
    const page = await app.developer.open(`/developer/review/${app.id}`);
    for (let n = 0; n < 2; n++) await app.developer.browser.submit(page, {}, /\/remove$/);
    expect(await oauth.me(access_token)).toBe(401);
    expect(await isAsked(app.id, tester.username)).toBe(false);
    expect(await oauth.events({ client: app.id, type: 'tester.removed' })).toHaveLength(1);
  });

  it('gets no code if the owner removes the tester between consent and code', async () => {
    const app = await ownApp();
    const { browser, page } = await atConsent(app.id, (await testerOf(app)).username);
    await oauth.query(
      `CREATE FUNCTION remove_tester() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
DELETE FROM app_testers WHERE user_id = NEW.user_id; RETURN NULL; END $$`,
    );
    await oauth.query(
      'CREATE TRIGGER remove_tester AFTER INSERT ON oauth_consents FOR EACH ROW EXECUTE FUNCTION remove_tester()',
    );
    const after = await browser.press(page, { decision: 'allow', scope: [...SCOPES] }, /\/consent$/);
    await oauth.query('DROP FUNCTION remove_tester CASCADE');
    expect(after.status).toBe(403);
    expect(await oauth.query('SELECT FROM oauth_grants WHERE client_id = $1', [app.id])).toEqual([]);
  });

  it(`is one of at most ${MAX_TESTERS} testers, even if two members are invited at once`, async () => {
    const app = await ownApp();
    for (let n = 1; n < MAX_TESTERS; n++) await testers.invite(app.id, `tester ${n}`, app.owner);
    const both = ['one', 'two'].map((name) => testers.invite(app.id, name, app.owner));
    const outcomes = (await Promise.allSettled(both)).map(({ status }) => status);
    expect(outcomes.toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await testers.list(app.id)).toHaveLength(MAX_TESTERS);
    const full = await app.developer.post(`/developer/review/${app.id}/testers`, { username: 'three' });
    expect([full.status, full.html]).toEqual([409, expect.stringContaining('This app has 25 testers,')]);
  });

  it('is invited with the same response as an unknown name', async () => {
    const app = await ownApp();
    const member = await oauth.member();
    const pages: string[] = [];
    for (const username of [member.username, `x${member.username}`]) {
      const { html } = await app.developer.post(`/developer/review/${app.id}/testers`, { username });
      pages.push(html.match(/class="notice[^]*?<\/div>/)![0]);
    }
    expect(new Set(pages).size).toBe(1);
    expect((await testers.list(app.id)).map(({ accepted_at }) => accepted_at)).toEqual([null, null]);
    const parts: string[] = [];
    for await (const part of oauth.api.app.get(PersonalData).of(app.developer.id, () => Promise.resolve()))
      parts.push(part.toString());
    expect(parts.join('')).not.toContain(`"user_id":${member.id}`);
  });

  it.each(['', ' ', 'x'.repeat(101), '\u202e'])('is not invited as %j', async (username) => {
    const app = await ownApp();
    const page = await app.developer.post(`/developer/review/${app.id}/testers`, { username });
    expect([page.status, page.html]).toEqual([400, expect.stringContaining('This is not a valid username.')]);
    expect(await testers.list(app.id)).toEqual([]);
  });

  it('can be invited only by the owner', async () => {
    const app = await ownApp();
    const other = await signedIn();
    for (const path of ['', '/testers', '/testers/remove'])
      expect((await other.post(`/developer/review/${app.id}${path}`, { username: 'ada' })).status).toBe(404);
    expect((await other.open(`/developer/review/${app.id}`)).status).toBe(404);
    expect(await testers.list(app.id)).toEqual([]);
  });
});

const FORM = {
  purpose: application.purpose,
  policy_uri: application.policy_uri,
  'reason-profile:read': 'To greet you.',
  'reason-events:read': 'To show them.',
};

describe('An application for review', () => {
  it('is shown to the admin and approved; the developer sees the approval and gets one notice', async () => {
    const { id, developer } = await ownApp();
    expect((await developer.post(`/developer/review/${id}`, FORM)).html).toContain('Waiting for review');
    const pending = await json<{ data: { client_id: string }[] }>('clients', 'list', '--pending');
    expect(pending.data.map(({ client_id }) => client_id)).toContain(id);
    await oauth.query(
      `INSERT INTO developer_request_counts (client_id, hour, method, route, status, error, requests)
VALUES ($1, now(), 'GET', '/api/public/events', 403, 'insufficient_scope', 7)`,
      [id],
    );
    const shown = await json('clients', 'review', id);
    expect(shown).toMatchObject({
      application: { purpose: FORM.purpose, reasons: application.reasons },
      policy_uri: FORM.policy_uri,
      review: 'pending',
      owner: { username: developer.username },
      testers: 0,
      requests: { apps: [{ month: 7, errors_month: 7 }] },
    });
    const { stdout, stderr } = await run('clients', 'review', id);
    expect(stdout).toContain('To greet you.');
    expect(stderr).toContain(`clients approve ${id} --applied-at '${String(shown.applied_at)}'`);
    const approved = await json('clients', 'approve', id, '--applied-at', String(shown.applied_at));
    expect(approved).toMatchObject({ review: 'approved', applied_at: null, scopes: [...SCOPES] });
    expect((await developer.open('/developer')).html).toContain('>Approved<');
    const notices = await oauth.query(
      `SELECT notice, name, by_id FROM platform_changes WHERE user_id = $1 AND notice = 'client.reviewed'`,
      [developer.id],
    );
    expect(notices).toEqual([{ notice: 'client.reviewed', name: 'Test app', by_id: id }]);
    const page = (await atConsent(id, (await oauth.member()).username)).page;
    expect(page.html).toContain('Reviewed by Gipfel');
    expect(page.html).not.toContain('A member of the platform registered this app.');
  });

  it('is rejected with a reason that the developer sees, and can be sent again', async () => {
    const { id, developer } = await ownApp();
    await developer.post(`/developer/review/${id}`, FORM);
    const rejected = await json('clients', 'reject', id, '--reason', 'No contact in the privacy policy.');
    expect(rejected).toMatchObject({ review: 'rejected', approved_at: null });
    const page = await developer.open(`/developer/review/${id}`);
    expect(page.html).toContain('No contact in the privacy policy.');
    expect(page.html).toContain(FORM.purpose);
    expect(await isAsked(id, (await oauth.member()).username)).toBe(false);
    await developer.post(`/developer/review/${id}`, FORM);
    expect(await clients.find(id)).toMatchObject({ review: 'pending', rejection: null });
  });

  it.each([
    ['purpose', ''],
    ['purpose', 'x'.repeat(1_001)],
    ['policy_uri', 'http://app.example/privacy'],
    ['policy_uri', 'javascript:alert(1)'],
    ['reason-events:read', ''],
    ['reason-events:read', 'x'.repeat(301)],
  ])('gets 400 if the field %s is %j', async (field, value) => {
    const { id, developer } = await ownApp();
    expect((await developer.post(`/developer/review/${id}`, { ...FORM, [field]: value })).status).toBe(400);
    expect(await clients.find(id)).toMatchObject({ review: 'none', application: null, policy_uri: null });
  });

  it('is canceled if the developer changes the app', async () => {
    const { id, owner } = await ownApp();
    await reviews.apply(id, application, owner);
    const { applied_at } = await clients.find(id);
    await clients.update(id, () => ({ name: 'Bank' }), 'user', owner);
    expect(await clients.find(id)).toMatchObject({ review: 'none', applied_at: null });
    await expect(reviews.review(id, { approved: true }, applied_at!)).rejects.toThrow(
      'no pending application',
    );
    expect(await clients.find(id)).toMatchObject({ approved_at: null });
  });

  it('gets one result if an approval and a rejection race', async () => {
    const { id, owner } = await ownApp();
    await reviews.apply(id, application, owner);
    const both = [reviews.review(id, { approved: true }), reviews.review(id, { rejection: 'No.' })];
    expect((await Promise.allSettled(both)).filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await oauth.details({ client: id, type: 'client.reviewed' })).toMatchObject([
      { result: (await clients.find(id)).review },
    ]);
  });

  it('that is approved during a sign-in leaves all records of the consent, or none', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, owner } = await ownApp();
      await reviews.apply(id, application, owner);
      const { username } = await oauth.member();
      const { url } = oauth.request(id, { scope: SCOPE });
      const [approved, signedIn] = await Promise.allSettled([
        reviews.review(id, { approved: true }),
        oauth.browser().authorize(url, { username }),
      ]);
      expect(approved.status).toBe('fulfilled');
      const count = signedIn.status === 'fulfilled' ? 1 : 0;
      for (const table of ['oauth_consents', 'oauth_grants'])
        expect(await oauth.query(`SELECT FROM ${table} WHERE client_id = $1`, [id])).toHaveLength(count);
      expect(await oauth.events({ client: id, type: 'consent.granted' })).toHaveLength(count);
      expect(await isAsked(id, (await oauth.member()).username)).toBe(true);
    }
  });

  it('can be approved with fewer scopes, but not with scopes that it does not request', async () => {
    const { id, owner } = await ownApp();
    await expect(reviews.review(id, { approved: true })).rejects.toThrow('no pending application');
    await reviews.apply(id, application, owner);
    for (const scopes of [['profile:write'], ['connections:read', 'profile:read']])
      await expect(reviews.review(id, { approved: true, scopes })).rejects.toThrow('did not apply for');
    const { scopes } = await json('clients', 'approve', id, '--scopes', 'profile:read');
    expect(scopes).toEqual(['profile:read']);
    const { stderr } = await run('clients', 'review', await oauth.client());
    expect(stderr).toContain('needs no review');
  });
});

describe('A change of an approved app', () => {
  it.each([
    ['name', { name: 'Other name' }],
    ['redirect_uris', { redirect_uris: [REDIRECT_URI, OTHER_URI] }],
    ['scopes', { scopes: [...SCOPES, 'connections:read'] }],
    ['logo', { logo: null }],
  ])('waits for another approval: %s', async (column, change) => {
    const { id, owner, developer } = await approvedApp(PIXEL);
    const before = await clients.find(id);
    await clients.update(id, () => change, 'user', owner);
    const shown = column === 'logo' ? 'has_logo' : column;
    const waiting = await clients.find(id);
    expect(waiting[shown as 'name']).toEqual(before[shown as 'name']);
    expect(Object.keys(waiting.pending_changes!)).toEqual([shown]);
    expect((await developer.open(`/developer/review/${id}`)).html).toContain('These changes need approval');
    expect(await isAsked(id, (await oauth.member()).username)).toBe(true);

    const reasons = { ...application.reasons, 'connections:read': 'To list them.' };
    await reviews.apply(id, { ...application, reasons }, owner);
    expect(await isAsked(id, (await oauth.member()).username)).toBe(true);
    await reviews.review(id, { approved: true });
    const after = await clients.find(id);
    expect(after.pending_changes).toBeNull();
    expect(after[shown as 'name']).toEqual(column === 'logo' ? false : Object.values(change)[0]);
  });

  it.each([
    ['fewer scopes', { scopes: ['profile:read'] }],
    ['another path on the same host', { redirect_uris: [REDIRECT_URI, 'https://app.example/other'] }],
    ['an origin', { allowed_origins: ['https://app.example'] }],
  ])('applies at once: %s', async (_, change) => {
    const { id, owner } = await approvedApp();
    await clients.update(id, () => change, 'user', owner);
    expect(await clients.find(id)).toMatchObject({ ...change, pending_changes: null, review: 'approved' });
  });

  it('waits only in its new scopes and origins: removals apply at once', async () => {
    const { id, owner } = await approvedApp();
    const redirect_uris = ['https://app.example/other', OTHER_URI];
    const scopes = ['profile:read', 'connections:read'] as const;
    await clients.update(id, () => ({ redirect_uris, scopes: [...scopes] }), 'user', owner);
    expect(await clients.find(id)).toMatchObject({
      redirect_uris: ['https://app.example/other'],
      scopes: ['profile:read'],
      pending_changes: { redirect_uris, scopes },
    });
  });

  it('needs no approval after the developer reverts it; the same change again has no effect', async () => {
    const { id, owner } = await approvedApp();
    const name = (wanted: string) => clients.update(id, () => ({ name: wanted }), 'user', owner);
    expect((await name('Other name')).changed).toEqual(['pending_changes']);
    expect((await name('Other name')).changed).toEqual([]);
    expect((await name('Test app')).changed).toEqual(['pending_changes']);
    expect(await clients.find(id)).toMatchObject({ review: 'approved', pending_changes: null });
    await expect(reviews.apply(id, application, owner)).rejects.toThrow('nothing to review');
  });

  it('rejected by the platform leaves the app approved with its previous name', async () => {
    const { id, owner } = await approvedApp();
    await clients.update(id, () => ({ name: 'Bank' }), 'user', owner);
    await reviews.apply(id, application, owner);
    await reviews.review(id, { rejection: 'This is not your name.' });
    expect(await clients.find(id)).toMatchObject({ name: 'Test app', pending_changes: { name: 'Bank' } });
    expect(await isAsked(id, (await oauth.member()).username)).toBe(true);
  });
});

it('The consent page states whether the platform has reviewed the app', async () => {
  const { id, developer } = await ownApp();
  expect((await atConsent(id, developer.username)).page.html).toContain('>Not reviewed<');
  const ofPlatform = await atConsent(await oauth.client(), developer.username);
  expect(ofPlatform.page.html).toContain('>Reviewed by Gipfel<');
});
