import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { EXAMPLES } from '../../src/openapi/examples.js';
import { writeSnippets, type SentRequest } from '../../src/site/script/snippets.js';
import { postgres } from '../support/database.js';
import type { OauthTest } from '../support/oauth.js';
import { PublicPages, signInOn } from '../support/public-pages.js';

/** Input that a shell or a program could interpret as syntax. */
const TYPED = `it's "Ümlaut" \\ \\n \`id\` $HOME \${x} %d <b> & = 🎉`;

postgres.describe('the samples of the API reference', () => {
  let pages: PublicPages;
  let oauth: OauthTest;
  beforeAll(async () => {
    pages = await PublicPages.start();
    ({ oauth } = pages);
  });
  afterEach(() => pages.closePages());
  afterAll(() => pages.close());

  const open = (path: string) => pages.open(path, { permissions: ['clipboard-read', 'clipboard-write'] });
  const samples = (page: Page, name: string) =>
    page.locator(`#${name} .request pre`).evaluateAll((all) => all.map((pre) => pre.textContent));
  const written = (request: SentRequest) =>
    writeSnippets(request, oauth.issuer, true).map(({ code }) => code);
  /** The text that a click on the button copies: the page announces it, and keeps the announcement. */
  const copied = async (page: Page, button: Locator) => {
    await button.click();
    await page.locator('#heard', { hasText: 'Copied' }).waitFor({ state: 'attached' });
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const tryIt = async (page: Page, name: string) => {
    await page.locator(`#${name} .try > summary`).click();
    return page.locator(`#${name} form`);
  };

  it('show the form’s values in each language, as the server would write them', async () => {
    const { page, calls, errors } = await open('/docs');
    const events = await tryIt(page, 'listEvents');
    expect(await samples(page, 'listEvents')).toEqual(written(EXAMPLES.listEvents![0]!.request));
    expect(await events.getByLabel('limit').inputValue()).toBe('2');
    await events.getByLabel('limit').fill('');
    await events.getByLabel('sort').selectOption('-starts_at');
    await events.getByLabel('If-None-Match').fill(TYPED);
    const query = { sort: '-starts_at', status: 'scheduled' };
    const sent = (await samples(page, 'listEvents'))[0]!;
    const path = `/api/public/events?${/\?(\S+)'$/.exec(sent)![1]!}`;
    expect(Object.fromEntries(new URLSearchParams(path.split('?')[1]))).toEqual(query);
    const listed = { method: 'GET', path, headers: { 'If-None-Match': TYPED } };
    expect(await samples(page, 'listEvents')).toEqual(written(listed));

    await (await tryIt(page, 'getEvent')).getByLabel('id').fill(TYPED);
    const of = { method: 'GET', path: `/api/public/events/${encodeURIComponent(TYPED)}` };
    expect(await samples(page, 'getEvent')).toEqual(written(of));

    const update = await tryIt(page, 'updateProfile');
    const body = { bio: TYPED, first_name: null };
    await update.getByLabel('Body').fill(JSON.stringify(body, null, 4));
    const changed = written({ method: 'PUT', path: '/api/public/profile', body });
    expect(await samples(page, 'updateProfile')).toEqual(changed);
    await update.getByLabel('Body').fill('{"bio": "not yet w');
    expect(await samples(page, 'updateProfile')).toEqual(changed);
    expect([calls, errors]).toEqual([[], []]);
  });

  it('have links with the form’s values, which fill the form without sending it', async () => {
    const { page } = await open('/docs');
    const form = await tryIt(page, 'listEvents');
    await form.getByLabel('limit').fill('');
    await form.getByLabel('starts_after').fill(TYPED);
    const link = await copied(page, form.getByRole('button', { name: 'Copy link' }));
    expect(link).toMatch(new RegExp(`^${oauth.issuer}/docs#listEvents\\?`));
    expect(page.url()).toBe(link);

    const other = await open(link.slice(oauth.issuer.length));
    const filled = other.page.locator('#listEvents form');
    expect(await filled.getByLabel('starts_after').inputValue()).toBe(TYPED);
    expect(await filled.getByLabel('limit').inputValue()).toBe('');
    expect(await filled.getByLabel('status', { exact: true }).inputValue()).toBe('scheduled');
    expect((await samples(other.page, 'listEvents'))[0]).toContain('starts_after=it%27s');
    await expect(other.page.locator('#listEvents-title').evaluate(topOf)).resolves.toBeLessThan(300);
    await other.page.goto(`${oauth.issuer}/docs#getProblem?code=rate_limited&nothing=1`);
    const problem = other.page.locator('#getProblem form');
    await problem.waitFor({ state: 'visible' });
    expect(await problem.getByRole('combobox', { name: 'code' }).inputValue()).toBe('rate_limited');
    expect([other.calls, other.errors]).toEqual([[], []]);
  });

  it('keep the form’s values while the reader signs in, and cannot be sent before the token arrives', async () => {
    const { username } = await oauth.member();
    const { page, calls } = await open('/docs#listConnections?limit=7');
    const form = page.locator('#listConnections form');
    await form.getByLabel('limit').press('Enter');
    expect(calls).toEqual([]);
    await form.getByRole('button', { name: 'Sign in' }).click();
    await signInOn(page, username);
    const exchange = Promise.withResolvers<void>();
    await page.route('**/oauth/token', async (route) => {
      await exchange.promise;
      await route.continue();
    });
    const asked = page.waitForRequest('**/oauth/token');
    await page.getByRole('button', { name: 'Allow' }).click();
    await asked;
    const send = form.getByRole('button', { name: 'Send' });
    expect(await send.isVisible()).toBe(false);
    exchange.resolve();
    await send.click();
    await form.getByText('"pagination"').waitFor();
    expect(calls).toContain('/api/public/connections?limit=7');
    const colours = await form
      .locator('.try-result pre')
      .first()
      .evaluate((pre) => [...pre.querySelectorAll('span')].map((span) => [span.className, span.textContent]));
    expect(colours).toEqual(
      expect.arrayContaining([
        ['t-key', '"has_more"'],
        ['t-word', 'false'],
      ]),
    );
  });

  it('share the chosen language with the guides’ code, which also switches without JavaScript, and scroll only sideways', async () => {
    const { page, errors } = await open('/docs/first-program');
    const program = page.locator('.request');
    await program.getByText('Go', { exact: true }).click();
    await program.locator('.in-go').waitFor({ state: 'visible' });
    const code = await copied(page, program.getByRole('button', { name: 'Copy this code' }));
    expect(code).toMatch(/^\/\/ go run events\.go\n/);
    await page.goto(`${oauth.issuer}/docs`);
    await page.locator('#getMe .in-go').waitFor({ state: 'visible' });
    await page.locator('#getMe .request').getByText('JavaScript').click();
    await page.locator('#getEvent .in-javascript').waitFor({ state: 'visible' });
    await page.goto(`${oauth.issuer}/docs/first-program`);
    expect(await program.locator('pre:visible').getAttribute('aria-label')).toBe('Code, TypeScript');
    for (const pre of await page.locator('pre:visible').all())
      expect(await pre.evaluate((box) => box.scrollHeight - box.clientHeight)).toBe(0);
    expect(errors).toEqual([]);

    const { page: plain } = await pages.open('/docs/mobile-app', { javaScriptEnabled: false });
    expect(await plain.locator('.in-swift').isVisible()).toBe(true);
    await plain.getByText('Kotlin', { exact: true }).click();
    expect(await plain.locator('.request pre:visible').getAttribute('class')).toBe('in-kotlin');
  });
});

const topOf = (element: Element) => element.getBoundingClientRect().top;
