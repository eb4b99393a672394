import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { registerDemoClient } from '../../src/clients/own-clients.js';
import { launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';
import type { OauthTest } from '../support/oauth.js';
import { startWithUpstream, type UpstreamServer } from '../support/upstream.js';

postgres.describe('a member with an external identity provider, in Chromium', () => {
  let oauth: OauthTest;
  let upstream: UpstreamServer;
  let browser: Browser;
  beforeAll(async () => {
    ({ oauth, upstream } = await startWithUpstream({ logout: true }, { seedDemo: true }));
    await registerDemoClient(oauth.dataSource, oauth.api.config);
    browser = await launchChromium();
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  afterAll(async () => {
    await browser.close();
    await oauth.close();
    upstream.close();
  });

  it('signs in to the demo app without a local password, with the keyboard only, and out at both', async () => {
    const sub = randomUUID();
    const { id } = await oauth.member({ external_id: sub, first_name: 'Ada', last_name: 'Lovelace' });
    await oauth.api.platform.participant(await oauth.api.platform.event({ title: 'Analytical engines' }), id);
    upstream.account = { sub };
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await context.newPage();
    const violations: string[] = [];
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) violations.push(message.text());
    });
    await page.goto(`${oauth.issuer}/demo`);
    await page.getByRole('button', { name: /sign in/i }).click();
    const link = page.getByRole('link', { name: 'Continue with Example' });
    await link.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Analytical engines').waitFor();

    await page.goto(`${oauth.issuer}/account/apps`);
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/sign-in/signed-out');
    await page.goto(`${oauth.issuer}/account/apps`);
    await link.waitFor();
    expect(violations).toEqual([]);
  });
});
