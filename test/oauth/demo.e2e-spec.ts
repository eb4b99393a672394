import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEMO_CLIENT, registerDemoClient } from '../../src/oauth/demo-client.js';
import { launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';

describe('/demo', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ seedDemo: true })));
  afterAll(() => oauth.close());

  it('serves the demo app, with a policy that lets it load and call nothing but this server', async () => {
    for (const path of ['/demo', '/demo/callback?code=x&state=y', '/demo/app.js', '/demo/app.css']) {
      const response = await fetch(oauth.issuer + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-security-policy')).toMatch(
        /default-src 'none'; script-src 'self'/,
      );
      expect(await response.text()).not.toMatch(/https?:\/\/(?!www\.w3\.org)|<script>|style="/);
    }
    expect((await fetch(`${oauth.issuer}/demo/package.json`)).status).toBe(404);
  });

  it('is a client that signs members in, wherever PUBLIC_URL is', async () => {
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

postgres.describe('The demo app in Chromium', () => {
  let oauth: OauthTest;
  let browser: Browser;
  beforeAll(async () => {
    oauth = await OauthTest.start({ seedDemo: true });
    await registerDemoClient(oauth.dataSource, oauth.api.config);
    browser = await launchChromium();
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await oauth.close();
  });

  it('says what it was not allowed, and asks for it again', async () => {
    const { username } = await oauth.member();
    const page = await browser.newPage();
    await page.goto(`${oauth.issuer}/demo`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Username').fill(username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('See the events').uncheck();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('You did not allow this app: events:read.').waitFor();
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByLabel('See the events').check();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Signed in, with profile:read events:read.').waitFor();
    expect(await page.getByText('You did not allow this app').isVisible()).toBe(false);
  });
});
