import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { registerDocsClient } from '../../src/clients/own-clients.js';
import { postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { PublicPages, signInOn } from '../support/public-pages.js';

postgres.describe('the pages in Chromium', () => {
  let pages: PublicPages;
  let oauth: OauthTest;
  beforeAll(async () => {
    pages = await PublicPages.start();
    ({ oauth } = pages);
  });
  afterEach(() => pages.closePages());
  afterAll(() => pages.close());

  const call = (page: Page, name: string) => page.locator(`#${name}`);

  it('fit a phone: links in the header, tabs in one row, a short activity page, space above headings', async () => {
    const phone = { viewport: { width: 390, height: 844 } };
    const front = await pages.open('/', phone);
    for (const place of ['Demo', 'Account'])
      expect(
        await front.page.locator('header').getByRole('link', { name: place, exact: true }).isVisible(),
      ).toBe(true);
    expect((await front.page.locator('header').boundingBox())!.height).toBeLessThan(80);

    const { id, username } = await oauth.member();
    const key = await oauth.api.key(id);
    for (const path of ['/profile', '/events', '/connections', '/achievements'])
      expect((await oauth.api.get(path, key)).status).toBe(200);
    const { page, errors } = await pages.open('/account/activity', phone);
    await signInOn(page, username);
    await page.getByRole('heading', { name: 'Activity', exact: true }).waitFor();
    const [row, ...others] = await page.locator('.brief').first().locator('tbody tr').all();
    expect([await row!.textContent(), others]).toEqual([
      expect.stringContaining('Profile, Events, Connections, Achievements'),
      [],
    ]);
    expect((await row!.boundingBox())!.height).toBeLessThan(90);
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(1500);
    const tabs = await Promise.all((await page.locator('nav .tabs a').all()).map((tab) => tab.boundingBox()));
    expect(new Set(tabs.map((box) => box!.y)).size).toBe(1);
    const current = (await page.locator('nav .tabs [aria-current]').boundingBox())!;
    expect([current.x >= 0, current.x + current.width <= 390]).toEqual([true, true]);

    await page.goto(`${oauth.issuer}/account/security`);
    for (const heading of await page.locator('main h2').all()) {
      const space = await heading.evaluate(
        (it) => it.getBoundingClientRect().top - it.previousElementSibling!.getBoundingClientRect().bottom,
      );
      expect(space).toBeGreaterThanOrEqual(32);
    }
    expect(errors).toEqual([]);
  });

  it('show samples, errors and the contents of /docs without JavaScript, and hide parts that need it', async () => {
    const { page } = await pages.open('/docs', {
      javaScriptEnabled: false,
      viewport: { width: 390, height: 844 },
    });
    const request = call(page, 'getEvent').locator('.request');
    expect(await request.locator('pre.in-curl').isVisible()).toBe(true);
    await request.getByText('Python', { exact: true }).click();
    expect(await request.locator('pre.in-python').isVisible()).toBe(true);
    expect(await request.locator('pre.in-curl').isVisible()).toBe(false);
    await call(page, 'getEvent').getByText('No such event, or no access to it').click();
    expect(await call(page, 'getEvent').getByText('"event_not_found"').isVisible()).toBe(true);
    expect(await page.locator('#contents').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Contents' }).click();
    expect(await page.locator('#contents').isVisible()).toBe(true);
    for (const part of ['.try', '.filter', '.session', '.copy'])
      for (const each of await page.locator(part).all())
        expect([part, await each.isVisible()]).toEqual([part, false]);
  });

  it('offer keyboard users of /docs a skip link and a filter, and mark the current section', async () => {
    const { page } = await pages.open('/docs');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe('Skip to the content');
    await page.keyboard.press('/');
    await page.keyboard.type('action=stats');
    const links = page.locator('#contents a:visible');
    await links.filter({ hasText: 'Get statistics' }).waitFor();
    await expect(links.allTextContents()).resolves.toEqual([expect.stringContaining('Get statistics')]);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs#getAchievementStatistics');
    await page.locator('#contents [aria-current]', { hasText: 'Get statistics' }).waitFor();
    await page.locator('#contents a', { hasText: 'List events' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('xyzzy');
    await page.getByText('Nothing found.').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#contents a', { hasText: 'List events' }).waitFor();
  });

  it('link the demo and the account in the contents of /docs on a phone', async () => {
    const { page } = await pages.open('/docs', { viewport: { width: 390, height: 844 } });
    await page.getByRole('button', { name: 'Contents' }).click();
    const contents = page.locator('#contents');
    await contents.getByRole('link', { name: 'Demo', exact: true }).waitFor();
    await contents.getByRole('link', { name: 'Account', exact: true }).click();
    await page.waitForURL('**/account/apps**');
    expect(await page.getByRole('heading', { name: 'Sign in' }).count()).toBe(1);
  });

  it('offer a search of guides, errors and fields with the keyboard only, on the start page and in a guide', async () => {
    const { page, errors } = await pages.open('/');
    await page.keyboard.press('Control+k');
    await page.waitForURL('**/docs#search');
    expect(await page.getByRole('button', { name: 'Contents' }).isVisible()).toBe(false); // the contents are visible next to the section
    const found = page.locator('.found a');
    await page.route('**/docs/search.json', (route) => route.abort(), { times: 1 });
    const failed = page.waitForEvent('requestfailed');
    await page.keyboard.type('ov');
    await failed; // the next typed letter searches again
    await page.keyboard.type('erwritten conflict');
    await found.filter({ hasText: 'Caching: Avoid overwritten changes' }).waitFor();
    expect(await found.first().locator('mark').allTextContents()).toEqual(['overwritten', 'conflict']);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/caching#avoid-overwritten-changes');
    await page.keyboard.press('/');
    await page.keyboard.type('ip_not_allowed');
    await found.filter({ hasText: 'Errors: ip_not_allowed' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('is_online');
    await found.filter({ hasText: 'List events' }).waitFor();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'Enter']) await page.keyboard.press(key);
    await page.waitForURL(/\/docs(\/[\w-]+)?#/);
    expect(errors).toEqual(['Failed to load resource: net::ERR_FAILED']); // the aborted load above
  });

  it('allow a member on /docs to sign in, send requests, and revoke the access by signing out', async () => {
    const { id, username } = await oauth.member({ first_name: 'Ada', last_name: 'Lovelace' });
    const event = await oauth.api.platform.event({ organizer_id: id, title: 'Night of the engines' });
    await oauth.api.platform.participant(event, id, { role: 'organizer' });
    const { page, errors } = await pages.open('/docs#listEvents');
    const events = call(page, 'listEvents');
    await events.getByText('Try it', { exact: true }).click();
    expect(await events.getByText('You cannot use a key here').isVisible()).toBe(true);
    expect(await events.getByRole('button', { name: 'Send' }).isVisible()).toBe(false);
    await events.getByRole('button', { name: 'Sign in' }).click();
    await signInOn(page, username);
    await page.getByText('API reference').first().waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Signed in as Ada Lovelace').waitFor();
    const { search, hash } = new URL(page.url());
    expect([search, hash]).toEqual(['', '#listEvents?limit=2&sort=title&status=scheduled']);

    await events.getByLabel('limit').fill('1');
    await events.getByRole('button', { name: 'Send' }).click();
    const result = events.locator('.try-result');
    await result.getByText('Night of the engines').waitFor();
    expect(await result.locator('.code-title').first().textContent()).toMatch(/^200 \d+ ms$/);
    await result.getByText('Request and headers').click();
    const headers = await result.locator('pre').last().textContent();
    expect(headers).toMatch(/^GET \/api\/public\/events\?limit=1&sort=title&status=scheduled\n\n/);
    expect(headers).toMatch(/^etag: "/m);
    expect(headers).toMatch(/^x-total-count: 1$/m);

    await events.getByLabel('limit').fill('1000');
    await events.getByRole('button', { name: 'Send' }).click();
    await result.getByText('"invalid_parameter"').first().waitFor();
    expect(await result.locator('.code-title').first().textContent()).toMatch(/^400 /);
    errors.length = 0; // the browser itself reports the 400

    const update = call(page, 'updateProfile');
    await update.getByText('Try it', { exact: true }).click();
    await update.getByLabel('Body').fill('{"bio": "Tried."}');
    await update.getByRole('button', { name: 'Send' }).click();
    await update.locator('.try-result').getByText('"Profile updated."').waitFor();

    const token = await page.evaluate(() => {
      const name = Object.keys(sessionStorage).find((each) => each.endsWith(':tokens'))!;
      return (JSON.parse(sessionStorage.getItem(name)!) as { access_token: string }).access_token;
    });
    expect(await oauth.me(token)).toBe(200);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await oauth.me(token)).toBe(401);
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).not.toContain(
      token,
    );
    expect(await result.isVisible()).toBe(false);
    expect(errors).toEqual([]);
  });

  it('report that the member denied the access, and still send requests that require no credential', async () => {
    const { username } = await oauth.member();
    const { page } = await pages.open('/docs');
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click();
    await signInOn(page, username);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('You denied access.').waitFor({ state: 'attached' });
    expect(new URL(page.url()).search).toBe('');
    const problem = call(page, 'getProblem');
    await problem.getByText('Try it', { exact: true }).click();
    await problem.getByRole('combobox', { name: 'code' }).selectOption('rate_limited');
    await problem.getByRole('button', { name: 'Send' }).click();
    await problem.locator('.try-result').getByText('"Too many requests"').waitFor();
  });
});

describe('the client of the API reference', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const registered = () =>
    oauth.dataSource.query<
      { redirect_uris: string[]; allowed_origins: string[]; disabled_at: Date | null }[]
    >(
      `SELECT redirect_uris, allowed_origins, disabled_at FROM oauth_clients WHERE id = 'public-user-api-docs'`,
    );

  it('is registered once by concurrent calls, and redirects only to /docs of PUBLIC_URL', async () => {
    const { dataSource } = oauth;
    const there = { publicUrl: 'https://api.example' };
    const created = async () =>
      (await oauth.events({ client: 'public-user-api-docs', type: 'client.created' })).length;
    await dataSource.query(`DELETE FROM oauth_clients WHERE id = 'public-user-api-docs'`); // another test may have registered it
    const before = await created();
    await Promise.all([1, 2, 3].map(() => registerDocsClient(dataSource, there)));
    expect(await created()).toBe(before + 1);
    expect(await registered()).toEqual([
      {
        redirect_uris: ['https://api.example/docs'],
        allowed_origins: ['https://api.example'],
        disabled_at: null,
      },
    ]);
    await registerDocsClient(dataSource, oauth.api.config);
    expect((await registered())[0]!.redirect_uris).toEqual([`${oauth.issuer}/docs`]);
  });

  it('stays disabled after another registration, and gets 400 for sign-ins', async () => {
    const { dataSource } = oauth;
    await registerDocsClient(dataSource, oauth.api.config);
    await dataSource.query(`UPDATE oauth_clients SET disabled_at = now() WHERE id = 'public-user-api-docs'`);
    await registerDocsClient(dataSource, { publicUrl: 'https://elsewhere.example' });
    expect((await registered())[0]!.disabled_at).not.toBeNull();
    const { url } = oauth.request('public-user-api-docs', { redirect_uri: 'https://elsewhere.example/docs' });
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(400);
  });
});
