import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { newFormId } from '../../src/member-pages/rendering/pages.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { thorough } from '../support/database.js';
import { basic } from '../support/client-kinds.js';
import { atOnce, tally } from '../support/concurrent.js';
import { csrfOf, OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { soon } from '../support/timing.js';
import { startWithUpstream } from '../support/upstream.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start({ developerConsole: true })));
afterAll(() => oauth.close());

const APP = { name: 'Own app', type: 'web', redirect_uris: REDIRECT_URI };

/** Signs a new member in to the console. */
async function developer(of = oauth) {
  const member = await of.member();
  const browser = of.browser();
  const first = await browser.signIn('/developer', member.username);
  expect(first.url.pathname).toBe('/developer');
  const open = (path: string) => browser.view(path);
  /** Fills in and sends a form of the page. */
  const submit = (page: FormPage, action: RegExp, fields: Record<string, string | string[]> = {}) =>
    browser.press(page, fields, action);
  return {
    ...member,
    browser,
    open,
    submit,
    /** Sends a form with values that the page does not offer, with a valid CSRF token. */
    post: (path: string, fields: Record<string, string> = {}) =>
      browser.post(first, path, { form: newFormId(), ...fields }),
    async register(fields: Record<string, string> = {}) {
      const app = { ...APP, scopes: ['profile:read', 'events:read'], ...fields };
      const page = await submit(await open('/developer/new-client'), /^\/developer\/clients$/, app);
      const [, id] = /^\/developer\/clients\/([\w-]{36})$/.exec(page.url.pathname) ?? [];
      if (id === undefined) throw new Error(`not registered: ${page.status} ${page.html}`);
      return id;
    },
    async makeKey(name = 'My key') {
      const fields = { name, scopes: ['profile:read'], days: '7' };
      const page = await submit(await open('/developer/new-key'), /^\/developer\/keys$/, fields);
      const [key] = /pua_(test|live)_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/.exec(page.html) ?? [];
      if (key === undefined) throw new Error(`no key: ${page.status} ${page.html}`);
      return key;
    },
  };
}

/** Lets five minutes pass since the member signed in. */
const longAgo = (userId: number, of = oauth) => of.ageSignIns(userId, 301);

const clients = () => new ClientsService(oauth.dataSource, oauth.api.config);
const idOfKey = (key: string) => key.split('_')[2]!;

/** Text of each request that the console shows. */
function rowsOf({ html }: FormPage): string[] {
  return [...html.matchAll(/<tr id="request-\d+">\n([^]*?)<\/tr>/g)].map(([, row]) =>
    row!
      .replace(/<[^>]+>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  );
}

const call = (path: string, headers: Record<string, string>, of = oauth) =>
  fetch(new URL(path, of.issuer), { headers });
/** The status of GET /me with a key. */
const meWith = async (key: string, of = oauth) =>
  (await call('/api/public/me', { 'X-API-Key': key }, of)).status;

it('/developer, with DEVELOPER_CONSOLE disabled, responds 404, like an unknown page', async () => {
  await using without = await OauthTest.start({}, oauth);
  for (const Accept of ['text/html', 'application/json']) {
    const ask = async (path: string) => {
      const response = await fetch(new URL(path, without.issuer), { headers: { Accept } });
      const body = (await response.text()).replace(/"(instance|request_id)":"[^"]*"/g, '');
      return [response.status, response.headers.get('content-type'), body];
    };
    const nothing = await ask('/nothing');
    expect(nothing[0]).toBe(404);
    for (const path of ['/developer', '/developer/requests', '/developer/new-key'])
      expect([path, ...(await ask(path))]).toEqual([path, ...nothing]);
  }
  expect((await without.browser().view('/account/apps')).html).not.toContain('/developer');
});

describe('a member’s app', () => {
  it('is registered with an audit event, signs another member in, and gets invalid_scope for an unregistered scope', async () => {
    const ada = await developer();
    const clientId = await ada.register();
    const tokens = await oauth.tokens(clientId, (await oauth.member()).username, { scope: 'profile:read' });
    expect(await oauth.me(tokens.access_token)).toBe(200);
    const refused = await oauth.browser().view(oauth.request(clientId, { scope: 'connections:read' }).url);
    expect(refused).toMatchObject({ status: 400, html: expect.stringContaining('invalid_scope') });
    expect(await oauth.events({ client: clientId, type: 'client.%' })).toMatchObject([
      { type: 'client.created', actor: 'user', user_id: ada.id, ip: '127.0.0.1' },
    ]);
  });

  thorough.it('is marked on the consent page as registered by a member, unlike a platform app', async () => {
    const ada = await developer();
    const { username } = await oauth.member();
    const consent = (clientId: string) =>
      oauth.browser().signIn(oauth.request(clientId, { scope: 'profile:read' }).url, username);
    const said = 'A member of the platform registered this app.';
    expect((await consent(await ada.register())).html).toContain(said);
    expect((await consent(await oauth.client())).html).not.toContain(said);
  });

  // client-rules.spec.ts tests the rules for redirect URIs.
  thorough.it.each([
    ['web', 'javascript:alert(1)'],
    ['web', 'http://app.example/callback'],
    ['web', 'https:app.example/callback'],
    ['web', 'https:\\\\app.example\\callback'],
    ['web', '//app.example/callback'],
    ['native', 'data:text/html,x'],
  ])('of the kind %s is rejected with the redirect URI %s, on input and on submission', async (type, uri) => {
    const ada = await developer();
    const form = await ada.open('/developer/new-client');
    const redirect_uris = `${REDIRECT_URI}\n${uri}`;
    const typed = await ada.post('/developer/redirect-uris', { type, redirect_uris });
    expect(await typed.json()).toMatchObject({ faults: [expect.stringContaining(uri)] });
    const refused = await ada.submit(form, /clients$/, { name: 'App', type, redirect_uris: uri });
    expect([refused.status, refused.html.includes('The app was not registered.')]).toEqual([400, true]);
    expect(await clients().list({ userId: ada.id, ip: null })).toEqual([]);
  });

  thorough.it.each([
    { name: '\0\u200b' },
    { name: 'a'.repeat(101) },
    { redirect_uris: '' },
    { redirect_uris: Array.from({ length: 51 }, (_, i) => `https://app.example/${i}`).join('\n') },
    { post_logout_redirect_uris: 'javascript:alert(1)' },
    { policy_uri: 'javascript:alert(1)' },
    { backchannel_logout_uri: 'http://app.example/logout' },
    { jwks: '{' },
    { jwks: '{"keys": [null]}' },
    { jwks: '{"keys": ["key"]}' },
    { jwks: '{"keys": [{"kty": "EC"}]}' },
    { jwks: '{"keys": [{"kty": "EC", "crv": "P-256", "x": "x", "y": "y", "d": "d"}]}' },
    { jwks: '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "\\u0000"}]}' },
    {
      jwks: '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "\\u0000"}]}',
    },
    { jwks: `${'['.repeat(50)}${']'.repeat(50)}` },
  ])('with %j is rejected without a server error', async (fields) => {
    const ada = await developer();
    const form = await ada.open('/developer/new-client');
    const refused = await ada.submit(form, /clients$/, { ...APP, ...fields });
    expect([refused.status, refused.html.includes('role="alert"')]).toEqual([400, true]);
  });

  thorough.it('with a deeply nested key set is rejected', async () => {
    const ada = await developer();
    const nested = `${'['.repeat(3_000)}${']'.repeat(3_000)}`;
    for (const jwks of ['['.repeat(8_000), `{"keys":[{"kty":"EC","x":${nested}}]}`])
      expect((await ada.post('/developer/clients', { ...APP, jwks })).status).toBe(400);
  });

  it('can be changed, disabled, enabled and deleted by its developer, with audit events', async () => {
    const ada = await developer();
    const id = await ada.register({ name: 'First' });
    const page = await ada.open(`/developer/clients/${id}`);
    const lines = page.html.replaceAll('&#39;', "'");
    expect(lines).toContain(`npm i ${oauth.issuer}/clients/typescript.tgz`);
    expect(lines).toContain(`clientId: '${id}',\n  redirectUri: '${REDIRECT_URI}',`);
    const jwks = { keys: [{ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }] };
    const changed = await ada.submit(page, new RegExp(`/clients/${id}$`), {
      name: 'Second',
      redirect_uris: 'https://second.example/callback',
      scopes: ['events:read'],
      jwks: JSON.stringify(jwks),
    });
    expect(changed.html).toContain('The changes are saved');
    expect(await clients().find(id)).toMatchObject({
      name: 'Second',
      redirect_uris: ['https://second.example/callback'],
      scopes: ['events:read'],
      token_endpoint_auth_method: 'private_key_jwt',
      owner_id: ada.id,
    });
    const disabled = await ada.submit(changed, /\/disable$/);
    expect(disabled.html).toContain('The app is disabled');
    expect(await clients().find(id)).toMatchObject({ disabled_by_owner: true });
    const enabled = await ada.submit(disabled, /\/enable$/);
    expect(await clients().find(id)).toMatchObject({ disabled_at: null, disabled_by_owner: false });
    expect((await ada.submit(enabled, /\/delete$/)).html).toContain('The app is deleted');
    await expect(clients().find(id)).rejects.toThrow('There is no client');
    const events = await oauth.events({ client: id, user: ada.id });
    expect(events.map(({ type, actor }) => `${type} ${actor}`)).toEqual(
      ['created', 'updated', 'disabled', 'enabled', 'deleted'].map((type) => `client.${type} user`),
    );
  });

  thorough.it('accepts a PNG of 60 KB as its logo, but no SVG, larger or empty file', async () => {
    const ada = await developer();
    const id = await ada.register();
    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(60_000)]);
    const csrf = csrfOf(await ada.open('/developer'));
    const send = (file: Buffer, token = csrf) => {
      const body = new FormData();
      body.set('csrf', token);
      body.set('logo', new Blob([new Uint8Array(file)], { type: 'image/png' }), 'logo.png');
      return ada.browser.send(`/developer/clients/${id}/logo`, { method: 'POST', body });
    };
    const has = async () => (await clients().find(id)).has_logo;
    for (const wrong of [
      Buffer.from('<svg/>'),
      Buffer.concat([png, Buffer.alloc(10_000)]),
      Buffer.alloc(200_000),
    ])
      expect([(await send(wrong)).status, await has()]).toEqual([400, false]);
    expect((await send(png, 'forged')).status).toBe(403);
    expect([(await send(png)).status, await has()]).toEqual([303, true]);
    expect([(await send(Buffer.alloc(0))).status, await has()]).toEqual([400, true]);
    await ada.post(`/developer/clients/${id}/remove-logo`);
    expect(await has()).toBe(false);
    const broken = await ada.browser.send(`/developer/clients/${id}/logo`, {
      method: 'POST',
      headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
      body: '--x\r\nnonsense',
    });
    expect(broken.status).toBe(400);
  });

  thorough.it('stays disabled if an admin disabled it, regardless of the developer’s requests', async () => {
    const ada = await developer();
    for (const disabledBefore of [false, true]) {
      const id = await ada.register();
      if (disabledBefore) await ada.post(`/developer/clients/${id}/disable`);
      expect(await clients().setDisabled(id, true, 'admin')).toBe(true);
      const page = await ada.open(`/developer/clients/${id}`);
      expect(page.html).toContain('Disabled by the platform');
      expect(page.html).not.toContain(`action="/developer/clients/${id}`);
      for (const path of ['enable', 'disable', 'delete', ''])
        await ada.post(`/developer/clients/${id}/${path}`.replace(/\/$/, ''), {
          name: 'Other',
          type: 'web',
          redirect_uris: 'https://other.example/',
        });
      const found = await clients().find(id);
      expect(found).toMatchObject({ name: 'Own app', disabled_by_owner: false });
      expect(found.disabled_at).not.toBeNull();
    }
  });

  thorough.it(
    'is disabled with its developer, and stays disabled when the developer is enabled',
    async () => {
      const ada = await developer();
      const [one, other] = [await ada.register(), await ada.register()];
      await ada.post(`/developer/clients/${other}/disable`);
      const users = new UsersService(oauth.dataSource);
      await users.disable(ada.id, 'admin');
      await users.enable(ada.id, 'admin');
      for (const id of [one, other])
        expect(await clients().find(id)).toMatchObject({
          disabled_at: expect.any(String),
          disabled_by_owner: false,
        });
    },
  );

  thorough.it('is one of at most ten per member, even after fifty concurrent requests', async () => {
    const ada = await developer();
    const answers = await atOnce(50, (i) => ada.post('/developer/clients', { ...APP, name: `App ${i}` }));
    for (const { status } of answers) expect([303, 503]).toContain(status);
    expect(await clients().list({ userId: ada.id, ip: null })).toHaveLength(10);
    expect((await ada.open('/developer')).html).not.toContain('href="/developer/new-client"');
  });
});

describe('a member’s API key', () => {
  it('reads the member’s data with the chosen scopes, and is shown once', async () => {
    const ada = await developer();
    const empty = (await ada.open('/developer')).html.matchAll(/<div class="card empty">(.*?)<\/div>/gs);
    const buttons = [...empty].map(([, card]) => /<a class="button" href="([^"]+)"/.exec(card!)?.[1]);
    expect(buttons).toEqual(['/developer/new-client', '/developer/new-key']);
    const key = await ada.makeKey();
    expect(key).toMatch(/^pua_test_/);
    expect(await (await call('/api/public/me', { 'X-API-Key': key })).json()).toMatchObject({ id: ada.id });
    expect((await call('/api/public/events', { 'X-API-Key': key })).status).toBe(403);
    const secret = key.slice('pua_test_'.length + 13);
    for (const path of ['/developer', '/developer/requests', '/account/activity'])
      expect((await ada.open(path)).html).not.toContain(secret);
    expect(await oauth.events({ key: idOfKey(key), type: 'key.created' })).toMatchObject([
      { actor: 'user', user_id: ada.id, details: { name: 'My key', scopes: ['profile:read'] } },
    ]);
    const credential = await call('/api/public/credential', { 'X-API-Key': key });
    const { expires_at } = (await credential.json()) as { expires_at: string };
    const days = (Date.parse(`${expires_at.replace(' ', 'T')}Z`) - Date.now()) / 86_400_000;
    expect(Math.abs(days - 7)).toBeLessThan(0.1);
  });

  thorough.it.each([
    { name: '' },
    { name: '\0\u200b' },
    { name: 'x'.repeat(101) },
    { days: '365' },
    { days: 'x' },
    { days: '' },
  ])('is not created with %j', async (fields) => {
    const ada = await developer();
    const form = await ada.open('/developer/new-key');
    const page = await ada.submit(form, /keys$/, { name: 'Key', days: '7', ...fields });
    expect([page.status, page.html.includes('role="alert"')]).toEqual([400, true]);
  });

  it('is created and rotated only after a sign-in within five minutes', async () => {
    const ada = await developer();
    const key = await ada.makeKey();
    await longAgo(ada.id);
    const again = await ada.open('/developer/new-key');
    expect(again.html).toContain('Sign in again to confirm that it’s you');
    const refused = await ada.post('/developer/keys', { name: 'Key', days: '7' });
    expect([refused.status, refused.headers.get('location')]).toEqual([303, '/developer/new-key/confirm']);
    const rotation = await ada.post(`/developer/keys/${idOfKey(key)}/rotate`);
    expect([rotation.status, rotation.headers.get('location')]).toEqual([303, '/developer/confirm']);
    expect(await meWith(key)).toBe(200);
    const form = await ada.browser.press(again, { username: ada.username, password: PASSWORD });
    expect(form.url.pathname).toBe('/developer/new-key');
    expect(form.html).toContain('action="/developer/keys"');
  });

  thorough.it('is rotated once by ten concurrent requests, and the previous key is rejected', async () => {
    const ada = await developer();
    const key = await ada.makeKey();
    const path = `/developer/keys/${idOfKey(key)}/rotate`;
    const pages = await atOnce(10, async () => {
      const location = (await ada.post(path)).headers.get('location')!;
      return (await ada.open(location)).html;
    });
    const made = pages.flatMap((html) => /pua_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/.exec(html)?.[0] ?? []);
    expect(made).toHaveLength(1);
    expect([await meWith(key), await meWith(made[0]!)]).toEqual([401, 200]);
  });

  it('is rejected immediately after its revocation', async () => {
    const ada = await developer();
    const key = await ada.makeKey();
    const page = await ada.submit(await ada.open('/developer'), /\/revoke$/);
    expect(page.html).toContain('That key no longer works.');
    expect(await meWith(key)).toBe(401);
    expect((await ada.open('/developer')).html).not.toContain('/rotate"');
  });

  thorough.it(
    'is one of at most ten per member, even after fifty concurrent requests and concurrent rotations',
    async () => {
      const ada = await developer();
      const answers = await atOnce(50, (i) => ada.post('/developer/keys', { name: `Key ${i}`, days: '1' }));
      for (const { status } of answers) expect([303, 409, 503]).toContain(status);
      const accepted = () =>
        oauth.query<{ id: string }>(
          'SELECT id FROM api_keys WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > now()',
          [ada.id],
        );
      const keys = await accepted();
      expect(keys).toHaveLength(10);
      await Promise.all(keys.map(({ id }) => ada.post(`/developer/keys/${id}/rotate`)));
      expect((await accepted()).length).toBeLessThanOrEqual(10);
    },
  );
});

it('a developer’s audited action gets a 429 at the daily limit; revoking a key and deleting an app still succeed', async () => {
  const ada = await developer();
  const [app, key] = [await ada.register(), await ada.makeKey()];
  await ada.post(`/developer/clients/${app}/disable`);
  const form = await ada.open('/developer/new-client');
  const record = (id: number, events: number) =>
    oauth.query(
      `INSERT INTO auth_events (type, actor, user_id) SELECT 'client.updated', 'user', $1 FROM generate_series(1, $2)`,
      [id, events],
    );
  await record(ada.id, 98);
  const trail = async () => (await oauth.events({ user: ada.id })).length;
  const before = await trail();
  const refused = await ada.submit(form, /clients$/, APP);
  expect([refused.status, refused.html.includes('reached the limit of changes')]).toEqual([429, true]);
  for (const path of [
    `/developer/clients/${app}/enable`,
    `/developer/keys/${idOfKey(key)}/rotate`,
    '/account/calendar/create',
    '/account/security/password/off',
  ])
    expect([path, (await ada.post(path, { name: 'Name' })).status]).toEqual([path, 429]);
  expect((await ada.post('/developer/keys', { name: 'Key', days: '1' })).status).toBe(429);
  expect((await ada.post(`/developer/clients/${app}`, APP)).status).toBe(429);
  expect(await trail()).toBe(before);
  expect((await ada.post(`/developer/keys/${idOfKey(key)}/revoke`)).status).toBe(303);
  expect((await ada.post(`/developer/clients/${app}/delete`)).status).toBe(303);
  expect(await trail()).toBe(before + 2);
  await record((await oauth.member()).id, 100);
  await (await developer()).register(); // other developers are not limited
});

describe('an app or key', () => {
  it('of another member or the platform is neither shown nor changed', async () => {
    const [ada, mallory] = [await developer(), await developer()];
    const clientId = await ada.register({ name: 'Ada’s' });
    const keyId = idOfKey(await ada.makeKey());
    const ofPlatform = await oauth.client();
    const ofAdmin = idOfKey(await oauth.api.key(mallory.id));
    const isRejected = async (path: string) =>
      expect([path, (await mallory.post(path)).status]).toEqual([path, 404]);
    const appIds = [clientId, ofPlatform, randomUUID()];
    const keyIds = [keyId, ofAdmin, 'nobodyskey00']; // keys that an admin created are not the member's own keys
    for (const id of appIds) {
      const { status, html } = await mallory.open(`/developer/clients/${id}`);
      expect([id, status, html]).toEqual([id, 404, expect.stringContaining('There is nothing here')]);
      for (const action of ['', '/disable', '/enable', '/delete'])
        await isRejected(`/developer/clients/${id}${action}`);
    }
    for (const id of keyIds)
      for (const action of ['rotate', 'revoke']) await isRejected(`/developer/keys/${id}/${action}`);
    for (const id of [...appIds, ...keyIds])
      expect((await mallory.open(`/developer/requests?of=${id}`)).status).toBe(404);
    const overview = (await mallory.open('/developer')).html;
    expect(overview).toContain('You have no apps.');
    expect(overview).toContain('You have not created any keys.');
    expect(await clients().find(clientId)).toMatchObject({ name: 'Ada’s', disabled_at: null });
    expect(await clients().find(ofPlatform)).toMatchObject({ disabled_at: null });
  });

  thorough.it('cannot be changed with a forged CSRF token, or without a sign-in', async () => {
    const ada = await developer();
    const id = await ada.register();
    const key = await ada.makeKey();
    const forms = [
      '/developer/clients',
      `/developer/clients/${id}`,
      ...['disable', 'enable', 'delete'].map((action) => `/developer/clients/${id}/${action}`),
      '/developer/redirect-uris',
      '/developer/keys',
      ...['rotate', 'revoke'].map((action) => `/developer/keys/${idOfKey(key)}/${action}`),
      '/developer/sign-in',
      '/developer/new-key/sign-in',
    ];
    for (const path of forms)
      expect([path, (await ada.post(path, { csrf: 'forged' })).status]).toEqual([path, 403]);
    const stranger = oauth.browser();
    const page = await stranger.view('/developer');
    for (const path of forms.slice(0, -2))
      expect([path, (await stranger.post(page, path)).status]).toEqual([path, 401]);
    expect(await meWith(key)).toBe(200);
  });
});

describe('a developer’s recent requests', () => {
  it('show the cause of each rejection with its error id', async () => {
    const ada = await developer();
    const clientId = await ada.register({ name: 'Trailmix' });
    const key = await ada.makeKey('Script');
    const errors: string[] = [];
    const send = async (path: string, headers: Record<string, string>) => {
      const text = await (await call(path, headers)).text();
      const { request_id } = (text.startsWith('{') ? JSON.parse(text) : {}) as { request_id?: string };
      if (request_id !== undefined) errors.push(request_id);
    };
    await send('/api/public/me', { 'X-API-Key': key });
    await send('/api/public/events?limit=x', { 'X-API-Key': key });
    await send('/api/public/connections', { 'X-API-Key': key });
    await send('/api/public/me?nonsense=1', { 'X-API-Key': key });
    await send('/api/public/me', { Authorization: `Bearer ${key}` });
    await send('/api/public/me', { 'X-API-Key': key.slice(0, -3) });
    const wrongUri = oauth.request(clientId, { redirect_uri: `${REDIRECT_URI}/?code=secret` });
    const wrongScope = oauth.request(clientId, { scope: 'profile:read connections:read' });
    const page = await oauth.browser().view(wrongUri.url);
    errors.push(/<code>([0-9a-f-]{36})<\/code>/.exec(page.html)![1]!);
    await oauth.browser().open(wrongScope.url);
    const wrongCode = { grant_type: 'authorization_code', client_id: clientId, code: 'wrong' };
    await oauth.token(wrongCode);
    await oauth.token({ ...wrongCode, redirect_uri: REDIRECT_URI, code_verifier: 'v'.repeat(43) });

    const shown = await ada.open('/developer/requests');
    const rows = rowsOf(shown);
    const has = (...parts: string[]) =>
      expect(rows.filter((row) => parts.every((part) => row.includes(part)))).toHaveLength(1);
    has('Script', 'GET /api/public/me 200');
    has('Script', 'GET /api/public/events 403', 'insufficient_scope', 'events:read');
    has('Script', 'GET /api/public/connections 403', 'insufficient_scope', 'connections:read');
    has('Script', 'GET /api/public/me 400', 'unknown_parameter', 'nonsense');
    has('Script', 'GET /api/public/me 401', 'invalid_credentials', 'send it as X-API-Key');
    has('Script', 'GET /api/public/me 401', 'invalid_credentials', 'The key is incomplete');
    has('Trailmix', 'GET /oauth/authorize', `redirect_uri=${REDIRECT_URI}/?…`, 'is not registered');
    has('Trailmix', 'GET /oauth/authorize 400', 'invalid_scope', 'scope=connections:read');
    has('Trailmix', 'POST /oauth/token 400', 'invalid_request redirect_uri', 'A parameter is missing');
    has('Trailmix', 'POST /oauth/token 400', 'invalid_grant code', 'The code does not exist');
    for (const id of errors) expect(shown.html).toContain(id);
    expect(shown.html).not.toContain('code=secret');
    for (const row of rowsOf(await ada.open(`/developer/requests?of=${clientId}`)))
      expect(row).toContain('Trailmix');
  });

  it('are counted by result for 30 days, including requests that are no longer stored', async () => {
    const ada = await developer();
    const key = await ada.makeKey('Script');
    for (let i = 0; i < 110; i++) await meWith(key);
    for (let i = 0; i < 3; i++) await call('/api/public/events', { 'X-API-Key': key });
    await oauth.api.app.get(Usage).flush();
    const long = (ago: string) =>
      oauth.query(
        `INSERT INTO developer_request_counts (key_id, hour, method, route, status, error, requests)
SELECT $1, date_trunc('hour', now() - $2::interval), 'GET', '/old', 503, 'temporarily_unavailable', 7`,
        [idOfKey(key), ago],
      );
    await long('29 days');
    await long('31 days');
    const { html } = await ada.open('/developer/requests');
    const text = html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    expect(text).toContain('Accepted (below 400) 110 Rejected (4xx) 3 Failed (5xx) 0 Values');
    expect(text).toContain('Accepted (below 400) 110 Rejected (4xx) 3 Failed (5xx) 7 Values');
    expect(text).toMatch(/Script 113, 3 with errors 120, 10 with errors [\d,]+ ms [\d,]+ ms/);
    expect(text).toContain('503 temporarily_unavailable GET /old 0 7 –');
    expect(text).toContain('403 insufficient_scope GET /api/public/events 3 3 Open');
    // The link leads to the latest request with this error.
    const [, row] = /href="#request-(\d+)">Open<span class="only-heard"> insufficient_scope/.exec(html)!;
    expect(new RegExp(`<tr id="request-${row}">[^]*?</tr>`).exec(html)![0]).toContain('/api/public/events');
  });

  thorough.it('include requests with an app’s tokens, and show that the app is disabled', async () => {
    const ada = await developer();
    const clientId = await ada.register({ name: 'Trailmix' });
    const { username } = await oauth.member();
    const tokens = await oauth.tokens(clientId, username, { scope: 'profile:read' });
    expect(await oauth.me(tokens.access_token)).toBe(200);
    await ada.post(`/developer/clients/${clientId}/disable`);
    expect(await oauth.me(tokens.access_token)).toBe(401);
    await oauth.browser().open(oauth.request(clientId).url);
    const page = await ada.open('/developer/requests');
    expect(rowsOf(page)).toEqual(
      expect.arrayContaining([
        expect.stringContaining('GET /api/public/me 200'),
        expect.stringMatching(/ 401 .*The app is disabled/),
        expect.stringMatching(/GET \/oauth\/authorize.*or is disabled/),
      ]),
    );
    expect(page.html).not.toContain(username);
  });

  thorough.it('include only the latest hundred requests with a key', async () => {
    const ada = await developer();
    const key = await ada.makeKey();
    for (let i = 0; i < 60; i++) await meWith(key);
    await oauth.api.app.get(Usage).flush();
    for (let i = 0; i < 60; i++) await call('/api/public/events', { 'X-API-Key': key });
    const rows = rowsOf(await ada.open('/developer/requests'));
    expect(rows).toHaveLength(100);
    expect(rows.filter((row) => row.includes('GET /api/public/events 403'))).toHaveLength(60);
    const kept = 'SELECT FROM developer_requests WHERE key_id = $1';
    expect(await oauth.query(kept, [idOfKey(key)])).toHaveLength(100);
  });

  thorough.it('include requests to another instance once that instance has stored them', async () => {
    await using other = await OauthTest.start({ developerConsole: true }, oauth);
    const ada = await developer();
    const key = await ada.makeKey();
    await meWith(key);
    await fetch(new URL('/api/public/events', other.issuer), { headers: { 'X-API-Key': key } });
    await other.api.app.get(Usage).flush();
    const rows = rowsOf(await ada.open('/developer/requests'));
    expect(tally(rows.map((row) => /\b(200|403)\b/.exec(row)![1]!))).toEqual({ 200: 1, 403: 1 });
  });

  thorough.it('contain no request of an app or key that is unknown or that an admin created', async () => {
    const ada = await developer();
    const count = async () => {
      await oauth.api.app.get(Usage).flush();
      return oauth.query('SELECT count(*) FROM developer_requests');
    };
    const before = await count();
    const { username, clientId } = await oauth.memberAndClient();
    await oauth.me((await oauth.tokens(clientId, username)).access_token);
    await oauth.browser().open(oauth.request(clientId, { redirect_uri: 'https://evil.example/' }).url);
    const adminKey = await oauth.api.key(ada.id, []);
    await meWith(adminKey);
    await call('/api/public/me', { Authorization: `Bearer ${adminKey}` });
    await meWith(`pua_live_nobodyskey00_${'x'.repeat(49)}`);
    for (let i = 0; i < 300; i++) await oauth.token({ grant_type: 'x', client_id: randomUUID() });
    expect(await count()).toEqual(before);
  });

  it('omit an unauthenticated request while requests of 200 unknown apps are buffered, but include requests with a valid key', async () => {
    await using other = await OauthTest.start({ developerConsole: true }, oauth);
    await other.api.app.get(PeriodicWork).beforeApplicationShutdown(); // stops the periodic writes
    const ada = await developer(other);
    const key = await ada.makeKey();
    const shown = async () =>
      rowsOf(await ada.open('/developer/requests')).map((row) => /\b(200|401)\b/.exec(row)?.[1]);
    const nameOnly = () => meWith(key.slice(0, -3), other);
    expect(await shown()).toEqual([]);
    for (let i = 0; i < 200; i++) await other.token({ grant_type: 'x', client_id: randomUUID() });
    await nameOnly();
    await meWith(key, other);
    expect(await shown()).toEqual(['200']);
    await nameOnly();
    expect(await shown()).toEqual(['401', '200']);
  });

  it('contain no key or token, even if a URL, form or request id contains it', async () => {
    const ada = await developer();
    const clientId = await ada.register();
    const key = await ada.makeKey();
    const token = 'T0kenT0kenT0kenT0kenT0kenT0kenT0kenT0kenT0k';
    await call(`/api/public/me?${key}=1`, { 'X-API-Key': key, 'X-Request-Id': token });
    await call(`/api/public/me?${token}=1`, { 'X-API-Key': key });
    await call('/api/public/events', { 'X-API-Key': key, 'X-Request-Id': `x.${key.slice(0, 60)}` });
    for (const wrong of [key, token]) {
      await oauth.browser().open(oauth.request(clientId, { redirect_uri: `https://a.example/${wrong}` }).url);
      await oauth.browser().open(oauth.request(clientId, { scope: `profile:read ${wrong}` }).url);
      const code = { client_id: clientId, code: wrong, code_verifier: wrong };
      await oauth.token({ grant_type: 'authorization_code', ...code });
      await oauth.refresh(clientId, wrong);
    }
    await oauth.api.app.get(Usage).flush();
    const rows = await oauth.query<object>('SELECT d::text AS row FROM developer_requests d');
    expect(rows.length).toBeGreaterThan(8);
    const text = JSON.stringify(rows);
    expect(text).not.toContain(key.slice(22, 40));
    expect(text).not.toContain(token);
  });
});

thorough.describe('with only the external identity provider', () => {
  it('a member signs in to the console, and authenticates again before creating a key', async () => {
    const settings = { developerConsole: true, localSignIn: false };
    const { oauth: here, upstream } = await startWithUpstream({}, settings);
    const sub = randomUUID();
    const { id } = await here.member({ external_id: sub, password_hash: null });
    upstream.account = { sub };
    const browser = here.browser();
    const first = await browser.view(await upstream.visit(await browser.leave('/developer')));
    expect(first.url.pathname).toBe('/developer');
    await longAgo(id, here);
    const asked = await browser.leave('/developer/new-key');
    expect([asked.origin, asked.searchParams.get('prompt')]).toEqual([upstream.issuer, 'login']);
    const form = await browser.view(await upstream.visit(asked));
    expect(form.url.pathname).toBe('/developer/new-key');
    expect(form.html).toContain('action="/developer/keys"');
    await here.close();
  });
});

it('an erased developer leaves no app and no key, and the apps’ access is revoked', async () => {
  const ada = await developer();
  const clientId = await ada.register();
  const key = await ada.makeKey();
  await meWith(key);
  const { username } = await oauth.member();
  const tokens = await oauth.tokens(clientId, username, { scope: 'profile:read' });
  await ada.open('/developer/requests');
  await eraseMembers(oauth.dataSource, [ada.id], { actor: 'admin' });
  expect(await oauth.me(tokens.access_token)).toBe(401);
  await soon(async () => (await meWith(key)) === 401);
  for (const [table, column] of [
    ['oauth_clients', 'id'],
    ['developer_requests', 'client_id'],
    ['developer_request_counts', 'client_id'],
    ['oauth_grants', 'client_id'],
  ])
    expect(await oauth.query(`SELECT FROM ${table} WHERE ${column} = $1`, [clientId])).toEqual([]);
});

describe('/developer and the setting DEVELOPER_OIDC', () => {
  let open: OauthTest;
  const settings = { developerConsole: true, developerOidc: true };
  beforeAll(async () => void (open = await OauthTest.start(settings, oauth)));
  afterAll(() => open.close());

  const SECRET = { profile: 'oidc', secret_auth_method: 'client_secret_basic' };
  const profilesOf = ({ id }: { id: number }) =>
    oauth.query('SELECT profile, secret_auth_method FROM oauth_clients WHERE owner_id = $1', [id]);

  it('registers an app, and creates two valid secrets that are each shown once', async () => {
    const ada = await developer(open);
    const path = `/developer/clients/${await ada.register(SECRET)}`;
    const make = async () => {
      const made = await ada.submit(await ada.open(path), /\/rotate-secret$/);
      const [secret] = /pua_secret_[0-9A-Za-z]{43}/.exec(made.html)!;
      expect((await ada.open(made.url.href)).html).not.toContain(secret);
      return secret;
    };
    const [first, second] = [await make(), await make()];
    expect(first).not.toBe(second);
    for (const secret of [first, second]) {
      const headers = basic(path.split('/').at(-1)!, secret);
      expect((await open.post('/oauth/revoke', { token: 'x' }, headers)).status).toBe(200);
    }
    const { html } = await ada.open(path);
    expect(html).toContain(`…${second.slice(-4)}`);
    expect(html).not.toContain(second);
  });

  it('offers the profiles oauth21 and oidc, and stores oauth21 if a form sends fapi2', async () => {
    const ada = await developer(open);
    const { html } = await ada.open('/developer/new-client');
    const offered = [...html.matchAll(/name="profile" value="(\w+)"/g)].map(([, profile]) => profile);
    expect(offered).toEqual(['oauth21', 'oidc']);
    await ada.register({ profile: 'fapi2' });
    expect(await profilesOf(ada)).toEqual([{ profile: 'oauth21', secret_auth_method: null }]);
  });

  it('explains that the profile oauth21 allows no secret', async () => {
    await expect(
      (await developer(open)).register({ profile: 'oauth21', secret_auth_method: 'client_secret_post' }),
    ).rejects.toThrow(/^not registered: 400 [^]*cannot authenticate with client_secret_post/);
  });

  it('creates no secret for another member’s app, or for an app without a secret method', async () => {
    const [ada, mallory] = [await developer(open), await developer(open)];
    for (const id of [await ada.register(SECRET), await mallory.register()])
      expect((await mallory.post(`/developer/clients/${id}/rotate-secret`)).status).toBe(404);
  });

  it('neither offers nor accepts a profile if DEVELOPER_OIDC is not set', async () => {
    const ada = await developer();
    expect((await ada.open('/developer/new-client')).html).not.toContain('name="profile"');
    await ada.register(SECRET);
    expect(await profilesOf(ada)).toEqual([{ profile: 'oauth21', secret_auth_method: null }]);
  });
});
