import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { DEMO_CLIENT, registerDemoClient } from '../../src/clients/own-clients.js';
import { DEMO_PASSWORD, DEMO_USERNAMES, seedDemo } from '../../src/operations/demo/demo.js';
import { TestBrowser } from '../support/chromium-tests.js';
import { postgres } from '../support/database.js';
import { listen } from '../support/listen.js';
import { OauthTest } from '../support/oauth.js';
import { faultsOf, overflowOf } from '../support/page-checks.js';

describe('GET /demo', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ seedDemo: true })));
  afterAll(() => oauth.close());

  it('serves the demo app, with a CSP that allows scripts only from this server', async () => {
    for (const path of [
      '/demo',
      '/demo/callback?code=x&state=y',
      '/demo/app.js',
      '/demo/client/index.js',
      '/demo/client/sign-in.js',
    ]) {
      const response = await fetch(oauth.issuer + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-security-policy')).toMatch(
        /default-src 'none'; script-src 'self'/,
      );
      expect(await response.text()).not.toMatch(/https?:\/\/(?!www\.w3\.org)|<script>|style="/);
    }
    for (const path of ['package.json', 'client/other.js', 'client/index.js.map'])
      expect((await fetch(`${oauth.issuer}/demo/${path}`)).status).toBe(404);
  });

  it('has a client that signs members in after PUBLIC_URL has changed', async () => {
    const { dataSource, api } = oauth;
    await registerDemoClient(dataSource, { ...api.config, publicUrl: 'http://localhost:1' });
    await registerDemoClient(dataSource, api.config);
    const { username } = await oauth.member();
    const redirect_uri = `${oauth.issuer}/demo/callback`;
    const { url } = oauth.request(DEMO_CLIENT, { redirect_uri, scope: 'profile:read events:read' });
    const back = await oauth.browser().authorize(url, { username });
    expect(back.origin + back.pathname).toBe(redirect_uri);
    expect(back.searchParams.get('code')).not.toBeNull();
  });
});

postgres.describe('the demo app in Chromium', () => {
  const browser = new TestBrowser();
  let oauth: OauthTest;
  beforeAll(async () => {
    oauth = await OauthTest.start({ seedDemo: true });
    await seedDemo(oauth.dataSource);
    await registerDemoClient(oauth.dataSource, oauth.api.config);
  });
  afterEach(() => oauth.query('DELETE FROM oauth_consents')); // so that the consent page appears again
  afterAll(() => oauth.close());

  async function fillIn(page: Page): Promise<void> {
    await page.getByLabel('Username').fill('ada');
    await page.getByLabel('Password').fill(DEMO_PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  async function signIn(page: Page, untick: readonly string[] = [], at = oauth.issuer): Promise<void> {
    await page.goto(`${at}/demo`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await fillIn(page);
    for (const label of untick) await page.getByLabel(label).uncheck();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Signed in, with').waitFor();
  }

  /** Opens a page, and collects its console errors. */
  async function open(options: BrowserContextOptions = {}) {
    const { page } = await browser.open(options);
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    return { page, complaints };
  }

  it('shows the demo accounts and their password', async () => {
    const { page } = await open();
    await page.goto(`${oauth.issuer}/demo`);
    expect(await page.locator('#who code').allTextContents()).toEqual([...DEMO_USERNAMES, DEMO_PASSWORD]);
  });

  it('shows the requests of its four steps, and no complete token', async () => {
    const { page, complaints } = await open();
    const answer = page.waitForResponse(/\/oauth\/token$/);
    await signIn(page);
    await page.getByRole('heading', { name: 'Achievements' }).waitFor();
    const step = (name: string) => page.locator(`[data-step=${name}]`).textContent();
    expect(await step('request')).toMatch(
      /GET \/oauth\/authorize\s+client_id=demo[^]*code_challenge_method=S256/,
    );
    expect(await step('code')).toMatch(/GET \/demo\/callback\s+code=\S{6}…/);
    expect(await step('token')).toMatch(
      /POST \/oauth\/token[^]*grant_type=authorization_code[^]*code_verifier=\S{6}…[^]*200[^]*"access_token": "\S{6}…"/,
    );
    expect(await step('call')).toMatch(/GET \/api\/public\/credential\s+Authorization: Bearer \S{6}…[^]*200/);
    const tokens = (await (await answer).json()) as Record<string, string>;
    for (const secret of ['access_token', 'refresh_token', 'id_token'])
      expect(await page.content()).not.toContain(tokens[secret]!);
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/demo');
    expect(complaints).toEqual([]);
  });

  it('shows the profile, connections, pins and progress of achievements, and events', async () => {
    const { page } = await open({ timezoneId: 'Asia/Tokyo' });
    await signIn(page);
    await page.locator('meter').first().waitFor();
    expect(await page.getByRole('heading', { name: 'Ada Lovelace' }).count()).toBe(1);
    const answer = await oauth.query<{ title: string; local: string }>(
      `SELECT e.title, to_char(e.starts_at AT TIME ZONE e.timezone, 'HH24:MI') || ', ' || replace(e.timezone, '_', ' ') AS local
FROM events e JOIN participants p ON p.event_id = e.id WHERE p.user_id = 900000001 AND e.starts_at > now() ORDER BY e.starts_at`,
    );
    const shown = await page.locator('.event').allTextContents();
    expect(shown.length).toBeGreaterThan(2);
    const times = new Map(answer.map(({ title, local }) => [title, local]));
    for (const text of shown) {
      const title = [...times.keys()].find((name) => text.includes(name));
      expect([text, title]).toEqual([text, expect.any(String)]);
      expect(text).toMatch(/All day|\d\d:\d\d, \w+\/[\w ]+/);
    }
    expect(await page.locator('.person').count()).toBeGreaterThan(2);
    expect(await page.locator('.achievement', { hasText: 'pinned' }).count()).toBeGreaterThan(0);
    for (const bar of await page.locator('meter').all()) {
      const [label, share] = await bar.evaluate(
        (it: HTMLMeterElement) => [it.ariaLabel!, it.value / it.max] as const,
      );
      const [, current, target] = /^(\d+) of (\d+)$/.exec(label) ?? [];
      expect([label, share]).toEqual([
        label,
        target === undefined ? Number(label === 'earned') : Number(current) / Number(target),
      ]);
    }
  });

  it('refreshes and revokes its token, which is then rejected', async () => {
    const { page } = await open();
    await signIn(page);
    await page.getByRole('heading', { name: 'Achievements' }).waitFor();
    const later = page.locator('#later > li').first();
    await page.getByRole('button', { name: 'Refresh the token' }).click();
    await later.getByText('grant_type=refresh_token').waitFor();
    await page.getByRole('button', { name: 'Call again' }).click();
    await later.getByText(/^200/).waitFor();
    await page.getByRole('button', { name: 'Revoke the access' }).click();
    await later.getByText('POST /oauth/revoke').waitFor();
    await page.getByRole('button', { name: 'Call again' }).click();
    await later.getByText(/^401/).waitFor();
    expect(await later.textContent()).toContain('invalid_credentials');
  });

  it.each(['cancels the sign-in', 'denies the consent'])(
    'shows a framed notice if the member %s',
    async (way) => {
      const { page } = await open();
      await page.goto(`${oauth.issuer}/demo`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      if (way === 'denies the consent') {
        await fillIn(page);
        await page.getByRole('button', { name: 'Deny' }).click();
      } else await page.getByRole('button', { name: 'Cancel and go back to the app' }).click();
      const notice = page.locator('.notice:visible');
      await notice.getByText('Nothing was shared').waitFor();
      expect(await page.locator('#status').textContent()).toBe('');
      expect(await notice.evaluate((frame) => getComputedStyle(frame).borderTopStyle)).toBe('solid');
    },
  );

  it('shows a missing scope, and requests the scope again', async () => {
    const { page } = await open();
    await signIn(page, ['See the events']);
    const notice = page.locator('#refused');
    expect(await notice.textContent()).toMatch(/did not allow this app:\s+events:read/);
    expect(await page.getByRole('heading', { name: 'Events' }).isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByLabel('See the events').check();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('events:read').first().waitFor();
    await page.getByRole('heading', { name: 'Events' }).waitFor();
    expect(await notice.isVisible()).toBe(false);
  });

  it.each([
    ['light', 1280],
    ['dark', 390],
  ] as const)('is accessible and fits the window: %s, %d pixels wide', async (colorScheme, width) => {
    const { page } = await open({ colorScheme, viewport: { width, height: 844 } });
    await signIn(page);
    await page.locator('meter').first().waitFor();
    expect([await overflowOf(page), await faultsOf(page)]).toEqual([[], []]);
  });

  it('signs a member in from another origin if two attributes of its page are changed', async () => {
    const site = createServer((request, response) => {
      const name = request.url!.replace(/\?.*/, '').replace(/^\/demo\/?/, '');
      if (request.url === '/favicon.ico') {
        response.writeHead(404).end();
        return;
      }
      const isPage = name === '' || name === 'callback';
      const folder = name.startsWith('client/') ? 'dist/clients/typescript/src' : 'examples/browser-client';
      const path = join(folder, isPage ? 'index.html' : name.replace('client/', ''));
      const type = isPage ? 'text/html' : name.endsWith('.js') ? 'text/javascript' : 'text/css';
      const text = readFileSync(path, 'utf8')
        .replace('data-issuer=""', `data-issuer="${oauth.issuer}"`)
        .replace('data-client-id="demo"', `data-client-id="${clientId}"`);
      response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` }).end(text);
    });
    const origin = await listen(site);
    const clientId = await oauth.client({
      redirect_uris: [`${origin}/demo/callback`],
      allowed_origins: [origin],
    });
    const { page } = await open();
    await signIn(page, [], origin);
    await page.getByRole('heading', { name: 'Achievements' }).waitFor();
    expect(new URL(page.url()).origin).toBe(origin);
    site.closeAllConnections();
    site.close();
  });
});
