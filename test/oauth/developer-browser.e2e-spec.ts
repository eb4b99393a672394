import { createServer, type Server } from 'node:http';
import * as client from 'openid-client';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TestBrowser } from '../support/chromium-tests.js';
import { postgres } from '../support/database.js';
import { listen } from '../support/listen.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';

postgres.describe('a developer in Chromium', () => {
  const browser = new TestBrowser();
  let oauth: OauthTest;
  let app: Server;
  let appUrl: string;
  beforeAll(async () => {
    oauth = await OauthTest.start({ developerConsole: true });
    app = createServer((_, response) => response.end('back at the app'));
    appUrl = await listen(app);
  });
  afterAll(async () => {
    app.close();
    await oauth.close();
  });

  async function signIn(page: Page, username: string): Promise<void> {
    await page.goto(`${oauth.issuer}/developer`);
    await page.getByLabel('Username').fill(username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Apps and keys' }).waitFor();
  }

  /** Text of the console's row for the request with this error id. */
  const reasonOf = async (page: Page, errorId: string) => {
    await page.goto(`${oauth.issuer}/developer/requests`);
    return page.getByRole('row').filter({ hasText: errorId }).innerText();
  };

  it('registers an app, and finds and repairs its mistakes with the list of requests', async () => {
    const { username } = await oauth.member();
    const { page, violations } = await browser.open();
    await signIn(page, username);
    await page.getByRole('link', { name: 'Register an app' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Trailmix');
    // The server reports faults while the member types.
    const redirectUris = page.getByLabel('Redirect URIs', { exact: true });
    await redirectUris.pressSequentially('http://trailmix.example/callback');
    await page.getByText('The redirect URI http://trailmix.example/callback must be https').waitFor();
    await redirectUris.fill(`${appUrl}/callback/`);
    await page.locator('#redirect_uris-fault:empty').waitFor({ state: 'attached' });
    await page.getByLabel('See the people you are connected with').uncheck();
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByText('The app is registered.').waitFor();
    const console = page.url();
    const clientId = new URL(console).pathname.split('/').at(-1)!;

    const configuration = await oauth.configuration(clientId);
    const verifier = client.randomPKCECodeVerifier();
    const ask = async () =>
      client.buildAuthorizationUrl(configuration, {
        redirect_uri: `${appUrl}/callback`,
        scope: 'openid connections:read',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }).href;

    // The registered redirect URI has an extra slash.
    await page.goto(await ask());
    await page.getByRole('heading', { name: 'We can’t send you back to this app' }).waitFor();
    const reason = await reasonOf(page, await page.locator('.error-id code').innerText());
    expect(reason).toContain('The redirect URI is not registered for the client');
    expect(reason).toContain(`redirect_uri=${appUrl}/callback`);
    await page.goto(console);
    await redirectUris.fill(`${appUrl}/callback`);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes are saved').waitFor();

    // The app requests a scope that it is not registered for.
    await page.goto(await ask());
    await page.getByRole('heading', { name: 'The app could not sign you in' }).waitFor();
    await page.getByText('invalid_scope').waitFor();
    await page.goto(`${oauth.issuer}/developer/requests`);
    const refused = await page.locator('#request-0').filter({ hasText: 'invalid_scope' }).innerText();
    expect(refused).toContain('scope=connections:read');
    await page.goto(console);
    await page.getByLabel('See the people you are connected with').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The changes are saved').waitFor();

    await page.goto(await ask());
    await page.getByText('A member of the platform registered this app.').waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${appUrl}/callback?*`);
    const { access_token } = await client.authorizationCodeGrant(configuration, new URL(page.url()), {
      pkceCodeVerifier: verifier,
    });

    // The app sends its token as an API key.
    const call = (headers: Record<string, string>) =>
      fetch(new URL('/api/public/connections', oauth.issuer), { headers });
    const wrong = (await (await call({ 'X-API-Key': access_token })).json()) as { request_id: string };
    expect(await reasonOf(page, wrong.request_id)).toContain('send a token as Authorization: Bearer');
    expect((await call({ Authorization: `Bearer ${access_token}` })).status).toBe(200);
    await page.goto(`${oauth.issuer}/developer/requests?of=${clientId}`);
    expect(await page.locator('#request-0').innerText()).toMatch(/GET \/api\/public\/connections\s+200/);
    expect(await page.content()).not.toContain(access_token);
    expect(violations).toEqual([]);
  });

  it('copies a new key and a new calendar link, and gets a webcal link for calendar apps', async () => {
    const { username } = await oauth.member();
    const { page } = await browser.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = async () => {
      await page.getByRole('button', { name: 'Copy' }).first().click();
      await page.getByRole('status').getByText('Copied').waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    await signIn(page, username);
    await page.getByRole('link', { name: 'Create a key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('My script');
    await page.getByLabel('See your profile').check();
    await page.getByRole('button', { name: 'Create the key' }).click();
    const headers = { 'X-API-Key': await copied() };
    expect((await fetch(new URL('/api/public/me', oauth.issuer), { headers })).status).toBe(200);

    await page.goto(`${oauth.issuer}/account/calendar`);
    await page.getByLabel('Where you will use it, such as “Phone”').fill('Phone');
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await copied();
    expect((await fetch(link)).headers.get('content-type')).toContain('text/calendar');
    const opened = page.getByRole('link', { name: 'Open in my calendar app' });
    expect(await opened.getAttribute('href')).toBe(link.replace('http:', 'webcal:'));
  });

  it('creates and rotates a key in a narrow window without JavaScript', async () => {
    const { username } = await oauth.member();
    const { page } = await browser.open({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false });
    await signIn(page, username);
    await page.getByRole('link', { name: 'Create a key' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Name', { exact: true }).focus();
    await page.keyboard.type('My script');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    await page.keyboard.press('Enter');
    const key = (await page.locator('.secret').first().innerText()).trim();
    const scopes = async (sent: string) => {
      const response = await fetch(new URL('/api/public/credential', oauth.issuer), {
        headers: { 'X-API-Key': sent },
      });
      return [response.status, response.headers.get('x-oauth-scopes')];
    };
    expect(await scopes(key)).toEqual([200, 'profile:read']);
    await page.getByRole('link', { name: 'Back to apps and keys' }).press('Enter');
    await page.getByText('Rotate My script').first().click();
    await page.getByRole('button', { name: 'Rotate My script' }).press('Enter');
    const next = (await page.locator('.secret').first().innerText()).trim();
    expect(await scopes(next)).toEqual([200, 'profile:read']);
    expect((await scopes(key))[0]).toBe(401);
  });
});
