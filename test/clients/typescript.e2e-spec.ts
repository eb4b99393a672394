import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { VERSION } from '../../src/config/version.js';
import type * as Client from '../../clients/typescript/src/index.js';
import { launchChromium } from '../support/chromium.js';
import { organizer, webhookHeaders } from '../support/client-packages.js';
import { postgres } from '../support/database.js';
import { cutOff, reply, serve, serveReplies, type LocalServer } from '../support/http-server.js';
import { makeWebhookSecret } from '../../src/crypto/webhook-signatures.js';
import { OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { Year } from '../support/year.js';

const PACKAGE = 'clients/typescript';
const run = promisify(execFile);
const SCOPE = 'profile:read profile:write events:read connections:read achievements:read';

let oauth: OauthTest;
/** The package as an app installs it: from the server's own archive, in an otherwise empty folder. */
let installed: string;
let client: typeof Client;

beforeAll(async () => {
  oauth = await OauthTest.start();
  const folder = mkdtempSync(join(tmpdir(), 'pua-client-'));
  writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}');
  const address = `${oauth.issuer}/clients/typescript.tgz`;
  const cache = join(folder, 'cache');
  await run('npm', ['install', '--no-audit', '--no-fund', '--silent', '--cache', cache, address], {
    cwd: folder,
  });
  installed = join(folder, 'node_modules/public-user-api-client');
  client = (await import(pathToFileURL(join(installed, 'dist/index.js')).href)) as typeof Client;
});
afterAll(async () => {
  rmSync(join(installed, '../..'), { recursive: true });
  await oauth.close();
});

/** Storage like a browser's. */
function storage(): Client.TokenStorage {
  const kept = new Map<string, string>();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  };
}

/** `fetch` that counts requests and responses. */
function counted() {
  const calls: { path: string; status: number; headers: Headers; body: string }[] = [];
  const send: typeof fetch = async (url, request) => {
    const response = await fetch(url, request);
    const { pathname } = new URL(url instanceof Request ? url.url : url);
    const body = request?.body instanceof URLSearchParams ? request.body.toString() : '';
    calls.push({ path: pathname, status: response.status, headers: new Headers(request?.headers), body });
    return response;
  };
  return { calls, send };
}

/** A client with the key of a member who organizes this many events. */
async function member(events = 0) {
  const { id, username, key } = await organizer(oauth, events);
  const { calls, send } = counted();
  const settings = { baseUrl: oauth.issuer, credentials: client.apiKey(key), fetch: send };
  return { id, username, key, calls, api: new client.PublicUserApi(settings) };
}

postgres.describe('the TypeScript client', () => {
  it('has the types of the OpenAPI document (npm run types in clients/typescript)', async () => {
    const { typesOf } = (await import('../../clients/typescript/generate-types.mjs' as string)) as {
      typesOf: (document: unknown) => string;
    };
    const document: unknown = await (await fetch(`${oauth.issuer}/api/public/openapi.json`)).json();
    expect(readFileSync(`${PACKAGE}/src/schema.ts`, 'utf8')).toBe(typesOf(document));
  });

  it('has no type errors', async () => {
    expect((await run('node_modules/.bin/tsc', ['-p', PACKAGE])).stdout).toBe('');
  });

  it('builds the same package as the server offers, from a copy of its folder', async () => {
    const folder = join(installed, '../../copy');
    cpSync(PACKAGE, folder, { recursive: true, filter: (path) => !/node_modules|dist$/.test(path) });
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules')); // as npm install installs it
    await run('npm', ['pack', '--silent'], { cwd: folder });
    const [archive] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    expect(archive).toBe(`public-user-api-client-${VERSION}.tgz`);
    await run('tar', ['xzf', archive!], { cwd: folder });
    await run('diff', ['-r', join(folder, 'package'), installed]);
  });

  it('is an ES module and a CommonJS module, with types in both', async () => {
    const folder = join(installed, '../..');
    const program = (load: string) => `${load}
const api = new PublicUserApi({ baseUrl: 'http://localhost', credentials: apiKey('key') });
for (const name of ['me', 'events'] as const) console.log(typeof api[name]);
`;
    writeFileSync(
      join(folder, 'a.mts'),
      program(`import { apiKey, PublicUserApi } from 'public-user-api-client';`),
    );
    writeFileSync(
      join(folder, 'b.cts'),
      program(
        `import client = require('public-user-api-client');\nconst { apiKey, PublicUserApi } = client;`,
      ),
    );
    const checks = ['--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom', '--strict'];
    await run(resolve('node_modules/.bin/tsc'), [...checks, 'a.mts', 'b.cts'], {
      cwd: folder,
    });
    for (const file of ['a.mjs', 'b.cjs']) {
      const { stdout } = await run(process.execPath, [file], { cwd: folder });
      expect([file, stdout]).toEqual([file, 'function\nfunction\n']);
    }
  });

  it('has source maps that point to existing sources', () => {
    const maps = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.map'))
      .map((name) => join(installed, 'dist', name));
    expect(maps).toHaveLength(2 * 2 * readdirSync(`${PACKAGE}/src`).length);
    for (const path of maps) {
      const { sources } = JSON.parse(readFileSync(path, 'utf8')) as { sources: string[] };
      expect([path, existsSync(resolve(dirname(path), sources[0]!))]).toEqual([path, true]);
    }
  });

  it('has no dependencies, and at most 5 KB gzipped', () => {
    const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      dependencies?: unknown;
    };
    expect(dependencies).toBeUndefined();
    const code = readdirSync(join(installed, 'dist'))
      .filter((name) => name.endsWith('.js'))
      .map((name) => readFileSync(join(installed, 'dist', name)));
    expect(gzipSync(Buffer.concat(code)).length).toBeLessThanOrEqual(5 * 1024);
  });

  it('calls every operation', async () => {
    const { id, username, api } = await member(3);
    expect(await api.me()).toMatchObject({ id, username, first_name: 'Ada' });
    expect(await api.profile()).toMatchObject({ id, connections_count: 0 });
    const { data, pagination } = await api.events({ sort: 'title', status: ['scheduled', 'draft'] }).page();
    expect(data.map(({ title }) => title)).toEqual(['Event 0', 'Event 1', 'Event 2']);
    expect(pagination).toMatchObject({ total: 3, sort: 'title' });
    expect(await api.event(data[0]!.id)).toMatchObject({ title: 'Event 0', co_organizers: [] });
    expect((await api.connections({ status: ['accepted', 'pending_sent'] }).page()).data).toEqual([]);
    expect((await api.achievements({ sort: 'name' }).page()).data).toEqual([]);
    expect((await api.allAchievements({ earned: false }).page()).pagination.sort).toBe('position');
    expect(await api.pinnedAchievements()).toEqual([]);
    const { next } = await api.changes({ resources: ['events', 'profile'] });
    expect(
      await api.changes({ resources: ['events', 'profile'], cursor: next, include: 'data' }),
    ).toMatchObject({
      more: false,
      resources: ['profile', 'events'],
    });
    expect(await api.achievementStatistics()).toMatchObject({ earned: 0 });
    await expect(api.achievement(1_000_000)).rejects.toMatchObject({ code: 'achievement_not_found' });
    expect((await api.credential()).type).toBe('api_key');
    expect(await api.updateProfile({ bio: 'Hello', last_name: null })).toMatchObject({
      bio: 'Hello',
      last_name: null,
    });
  });

  it('iterates over a list, and requests each page on demand', async () => {
    const { calls, api } = await member(7);
    const titles: string[] = [];
    for await (const { title } of api.events({ limit: 3, sort: 'title' })) titles.push(title);
    expect(titles).toEqual(['Event 0', 'Event 1', 'Event 2', 'Event 3', 'Event 4', 'Event 5', 'Event 6']);
    expect(calls).toHaveLength(3);
    for await (const { title } of api.events({ limit: 2, sort: '-title' })) {
      expect(title).toBe('Event 6');
      break;
    }
    expect(calls).toHaveLength(4);
  });

  it('has a working program in its README', async () => {
    const { key } = await member(2);
    const [snippet] = /(?<=```js\n)[^`]*`[^]*?(?=```)/.exec(readFileSync(`${PACKAGE}/README.md`, 'utf8'))!;
    const program = join(installed, '../../program.js');
    writeFileSync(program, snippet);
    const env = { ...process.env, API_URL: oauth.issuer, API_KEY: key };
    const { stdout } = await run(process.execPath, [program], { env });
    expect(stdout).toMatch(/^The events of Ada:\n[\d :-]+ Event \d\n[\d :-]+ Event \d\n$/);
  });

  it('sends the ETag of its copy, and returns the copy after a 304', async () => {
    const { calls, api } = await member(1);
    const first = await api.events().page();
    expect(await api.events().page()).toEqual(first);
    expect(calls.map(({ status }) => status)).toEqual([200, 304]);
  });

  it('does not overwrite a profile that has changed since the given ETag', async () => {
    const { api } = await member();
    const { etag } = await api.profileWithEtag();
    await api.updateProfile({ bio: 'mine' }, { ifMatch: etag! });
    await expect(api.updateProfile({ bio: 'lost' }, { ifMatch: etag! })).rejects.toMatchObject({
      name: 'ApiError',
      status: 412,
      code: 'precondition_failed',
    });
    expect((await api.profile()).bio).toBe('mine');
  });

  it('throws an ApiError with the API’s problem document', async () => {
    const { api } = await member();
    const refused = await api.updateProfile({ bio: 'x'.repeat(501) }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(client.ApiError);
    expect(refused).toMatchObject({
      status: 422,
      code: 'validation_failed',
      requestId: expect.any(String),
      problem: { errors: [{ field: 'bio', code: 'too_long', max: 500, actual: 501 }] },
    });
  });

  describe('with a test server', () => {
    let server: Awaited<ReturnType<typeof serveReplies>>;
    let api: Client.PublicUserApi;
    const refuse = (status: number, headers: Record<string, string> = { 'Retry-After': '0' }) =>
      reply(status, { 'Content-Type': 'application/problem+json', ...headers }, '{"code":"rate_limited"}');
    const answer = reply(200, { 'Content-Type': 'application/json' }, '{"id":1}');
    beforeAll(async () => {
      server = await serveReplies();
      api = new client.PublicUserApi({
        baseUrl: server.url,
        credentials: client.bearer('token'),
        longestWaitMs: 5_000,
      });
    });
    afterAll(() => server.close());

    it.each([
      ['429', refuse(429)],
      ['503', refuse(503)],
      ['502', refuse(502)],
      ['504', refuse(504)],
      ['a connection that breaks', cutOff],
    ])('retries after %s', async (_, first) => {
      server.replies = [first, answer];
      expect(await api.me()).toEqual({ id: 1 });
    });

    it('stops after three tries, and at once if Retry-After is longer than the configured wait', async () => {
      server.replies = [refuse(503), refuse(503), refuse(503)];
      await expect(api.me()).rejects.toMatchObject({ status: 503 });
      server.replies = [refuse(429, { 'Retry-After': '60' })];
      await expect(api.me()).rejects.toMatchObject({ status: 429, retryAfter: 60 });
    });

    it('does not retry a change after 502, since a proxy may have passed the change on', async () => {
      server.replies = [refuse(502), answer];
      await expect(api.updateProfile({ bio: 'once' })).rejects.toMatchObject({ status: 502 });
      expect(server.replies).toHaveLength(1);
    });

    it('does not repeat a rejected credential, and tries a renewed credential once', async () => {
      server.seen.length = 0;
      server.replies = [refuse(401), refuse(401), refuse(401)];
      await expect(api.me()).rejects.toMatchObject({ status: 401 });
      let renewals = 0;
      const renewing = new client.PublicUserApi({
        baseUrl: server.url,
        credentials: client.bearer(async (renew) => `token-${renew ? ++renewals : renewals}`),
      });
      await expect(renewing.me()).rejects.toMatchObject({ status: 401 });
      const sent = server.seen.map(({ authorization }) => authorization);
      expect(sent).toEqual(['Bearer token', 'Bearer token-0', 'Bearer token-1']);
    });

    it('stops retrying when its caller aborts the call', async () => {
      server.replies = [refuse(503, { 'Retry-After': '4' })];
      const controller = new AbortController();
      const call = api.me({ signal: controller.signal });
      controller.abort(new Error('the page was left'));
      await expect(call).rejects.toThrow('the page was left');
    });

    it('reports an HTML response as an error that suggests a wrong URL', async () => {
      for (const status of [200, 400]) {
        server.replies = [reply(status, { 'Content-Type': 'text/html; charset=utf-8' }, '<h1>Welcome</h1>')];
        await expect(api.me()).rejects.toMatchObject({
          name: 'ApiError',
          status,
          code: 'unknown',
          problem: undefined,
          message: `HTTP ${status} with text/html instead of JSON, from ${server.url}/api/public/me: a proxy responded, or baseUrl is not the API's URL.`,
        });
      }
      const session = new client.SignIn({
        issuer: server.url,
        clientId: 'app',
        redirectUri: REDIRECT_URI,
        scope: SCOPE,
        begunStorage: storage(),
      });
      server.replies = [reply(200, {}, '<h1>Welcome</h1>')];
      await expect(session.begin()).rejects.toThrow('is issuer the URL of the API?');
    });
  });

  describe('during webhook verification', () => {
    const secret = makeWebhookSecret();
    const body = JSON.stringify({ type: 'events.updated', data: { member_id: 7, id: 5, kind: 'updated' } });
    /** As Node's requests have them: names in lower case. */
    const signed = (secondsAgo = 0, by = secret): Record<string, string | undefined> =>
      Object.fromEntries(new Headers(webhookHeaders(by, body, secondsAgo)));

    it('accepts a message that is signed with one of two secrets', async () => {
      const secrets = [makeWebhookSecret(), secret];
      expect(await client.verifyWebhook(secrets, signed(), body)).toMatchObject({ data: { id: 5 } });
      const bytes = new TextEncoder().encode(body);
      expect(
        await client.verifyWebhook(secret, new Headers(webhookHeaders(secret, body)), bytes),
      ).toMatchObject({
        type: 'events.updated',
      });
    });

    it.each([
      ['was changed', signed(), `${body} `],
      ['is signed with another secret', signed(0, makeWebhookSecret()), body],
      ['is six minutes old', signed(360), body],
      ['has no signature', { ...signed(), 'webhook-signature': undefined }, body],
      ['has an invalid timestamp', { ...signed(), 'webhook-timestamp': 'now' }, body],
    ])('rejects a message that %s', async (_, headers, text) => {
      await expect(client.verifyWebhook(secret, headers, text)).rejects.toMatchObject({
        name: 'WebhookError',
      });
    });
  });

  describe('with a sign-in', () => {
    async function signIn(scope = SCOPE) {
      const { id, username } = await oauth.member();
      const clientId = await oauth.client();
      const { calls, send } = counted();
      const kept = storage();
      const settings = { issuer: oauth.issuer, clientId, redirectUri: REDIRECT_URI, scope, fetch: send };
      const session = new client.SignIn({ ...settings, storage: kept, begunStorage: storage() });
      const begun = await session.begin();
      const back = await oauth.browser().authorize(begun, { username });
      const api = new client.PublicUserApi({ baseUrl: oauth.issuer, credentials: session });
      const refreshes = () => calls.filter(({ body }) => body.includes('refresh_token=')).length;
      return { id, session, back, api, kept, settings, refreshes, calls };
    }

    it('finishes the sign-in, and then calls the API for the member', async () => {
      const { id, session, back, api } = await signIn();
      expect(session.signedIn).toBe(false);
      expect((await session.finish(back)).split(' ')).toEqual(expect.arrayContaining(SCOPE.split(' ')));
      expect(session.signedIn).toBe(true);
      expect((await api.me()).id).toBe(id);
    });

    it('rejects a response to another request or from another issuer', async () => {
      const { session, back } = await signIn();
      const foreign = new URL(back);
      foreign.searchParams.set('state', 'another');
      await expect(session.finish(foreign)).rejects.toMatchObject({ code: 'state_mismatch' });
      await expect(session.finish(back)).rejects.toMatchObject({ code: 'state_mismatch' }); // the state is valid once
      const other = await signIn();
      other.back.searchParams.set('iss', 'https://elsewhere.example');
      await expect(other.session.finish(other.back)).rejects.toMatchObject({ code: 'state_mismatch' });
    });

    it('reports the member’s denial', async () => {
      const { session, back } = await signIn();
      back.searchParams.delete('code');
      back.searchParams.set('error', 'access_denied');
      await expect(session.finish(back)).rejects.toMatchObject({
        name: 'SignInError',
        code: 'access_denied',
      });
    });

    it.each([
      ['an expired', { expires_at: 0 }],
      ['a rejected', { access_token: 'x'.repeat(43) }],
    ])('renews %s token once for several requests', async (_, change) => {
      const { id, session, back, api, kept, settings, refreshes } = await signIn();
      await session.finish(back);
      const name = `public-user-api:${settings.clientId}:tokens`;
      kept.setItem(name, JSON.stringify({ ...(JSON.parse(kept.getItem(name)!) as object), ...change }));
      const found = await Promise.all([api.me(), api.profile(), api.events().page(), api.credential()]);
      expect(found[0].id).toBe(id);
      expect(refreshes()).toBe(1);
    });

    it('reports when the access will end, and why it has ended', async () => {
      const { session, back, api } = await signIn();
      expect(session.accessEndsAt).toBeUndefined();
      await session.finish(back);
      expect(Math.round((session.accessEndsAt!.getTime() - Date.now()) / 86_400_000)).toBe(30);
      const { id } = await api.me();
      await oauth.dataSource.query('UPDATE users SET disabled_at = now() WHERE id = $1', [id]);
      await expect(session.accessToken(true)).rejects.toMatchObject({
        code: 'signed_out',
        message: expect.stringMatching(/^the access ended at .+ UTC: ended by the platform$/),
      });
    });

    it('stays signed in for a year with one sign-in, through lost responses, restarts and new keys', async () => {
      const year = await Year.start();
      try {
        const { issuer } = year.oauth;
        const [kept, begun] = [storage(), storage()];
        const settings = { issuer, clientId: year.clientId, redirectUri: REDIRECT_URI, scope: SCOPE };
        const session = () => new client.SignIn({ ...settings, storage: kept, begunStorage: begun });
        await session().finish(await year.signIn(await session().begin()));
        await year.pass(async () => {
          const api = new client.PublicUserApi({ baseUrl: issuer, credentials: session() });
          return (await api.me().catch(() => api.me())).id;
        });
      } finally {
        await year.close();
      }
    });

    it('revokes the access token and deletes the stored tokens at sign-out', async () => {
      const { session, back, api, kept, settings } = await signIn();
      await session.finish(back);
      const token = await session.accessToken();
      await session.signOut();
      expect(session.signedIn).toBe(false);
      expect(kept.getItem(`public-user-api:${settings.clientId}:tokens`)).toBeNull();
      expect(await oauth.me(token)).toBe(401);
      await expect(api.me()).rejects.toMatchObject({ name: 'SignInError', code: 'signed_out' });
    });
  });
});

postgres.describe('the TypeScript client in two tabs', () => {
  let app: LocalServer;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    app = await serve((request, response) => {
      const { pathname } = new URL(request.url!, 'http://app');
      if (!pathname.endsWith('.js')) {
        response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>app</title>');
        return;
      }
      response
        .setHeader('Content-Type', 'text/javascript')
        .end(readFileSync(join(installed, 'dist', pathname)));
    });
    browser = await launchChromium();
    context = await browser.newContext();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it('signs in once, and renews the token once for both tabs', async () => {
    const { id, username } = await oauth.member();
    const redirectUri = `${app.url}/callback`;
    const clientId = await oauth.client({ redirect_uris: [redirectUri], allowed_origins: [app.url] });
    const settings = { issuer: oauth.issuer, clientId, redirectUri, scope: 'profile:read' };
    const refreshes: string[] = [];
    context.on('request', (request) => {
      if (request.postData()?.includes('grant_type=refresh_token')) refreshes.push(request.url());
    });
    /** Runs in the page, with the package and a sign-in kept in localStorage. */
    const run = <T>(page: Page, code: string) =>
      page.evaluate<T>(
        `(async (settings) => {
  const { SignIn, PublicUserApi } = await import('/index.js');
  const session = new SignIn({ ...settings, storage: localStorage });
  const api = new PublicUserApi({ baseUrl: settings.issuer, credentials: session });
  return (${code})(session, api);
})(${JSON.stringify(settings)})`,
      );

    const first = await context.newPage();
    await first.goto(app.url);
    await first.goto(await run<string>(first, 'async (session) => (await session.begin()).href'));
    await first.getByLabel('Username').fill(username);
    await first.getByLabel('Password').fill(PASSWORD);
    await first.getByRole('button', { name: 'Sign in' }).click();
    await first.getByRole('button', { name: 'Allow' }).click();
    await first.waitForURL(`${redirectUri}?*`);
    expect(await run(first, 'async (session) => session.finish(location.href)')).toBe('profile:read');

    const second = await context.newPage();
    await second.goto(app.url);
    expect(await run(second, 'async (_, api) => (await api.me()).id')).toBe(id);
    await first.evaluate(`{
  const name = 'public-user-api:${clientId}:tokens';
  localStorage.setItem(name, JSON.stringify({ ...JSON.parse(localStorage.getItem(name)), expires_at: 0 }));
}`);
    const calls = [first, second].map((page) => run(page, 'async (_, api) => (await api.me()).id'));
    expect(await Promise.all(calls)).toEqual([id, id]);
    expect(refreshes).toHaveLength(1);
  });
});
