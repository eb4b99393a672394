import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import * as client from 'openid-client';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestBrowser } from '../support/chromium-tests.js';
import { postgres } from '../support/database.js';
import { listen } from '../support/listen.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';
import { randomUUID } from 'node:crypto';
import { registerDemoClient } from '../../src/clients/own-clients.js';
import { startWithUpstream, type UpstreamServer } from '../support/upstream.js';

/** Target of each app callback that redirects again, by the callback's path. */
const ONWARD: Readonly<Record<string, (appUrl: string) => string>> = {
  '/to-origin': (appUrl) => `${appUrl.replace('127.0.0.1', 'localhost')}/arrived`,
  '/to-scheme': () => 'trailmix://arrived',
};

const ARRIVED = /^(http:\/\/localhost:\d+|trailmix:\/)\/arrived/;

postgres.describe('a member in Chromium, with the client on another origin', () => {
  const browser = new TestBrowser();
  let oauth: OauthTest;
  let app: Server;
  let appUrl: string;

  beforeAll(async () => {
    oauth = await OauthTest.start();
    app = createServer(({ url }, response) => {
      const { pathname, search } = new URL(url!, appUrl);
      const onward = ONWARD[pathname];
      if (onward === undefined) response.end('back at the app');
      else response.writeHead(303, { Location: onward(appUrl) + search }).end();
    });
    appUrl = await listen(app);
  });
  afterAll(async () => {
    app.close();
    await oauth.close();
  });

  /** Opens openid-client's authorization request in a new browser context. */
  async function start(
    scope: string,
    options: BrowserContextOptions = { javaScriptEnabled: false },
    { path = '/callback', ...parameters }: Record<string, string> = {},
  ) {
    const redirectUri = appUrl + path;
    const clientId = await oauth.client({
      name: 'Trailmix',
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [redirectUri],
      profile: 'oidc',
    });
    const configuration = await oauth.configuration(clientId);
    const verifier = client.randomPKCECodeVerifier();
    const state = client.randomState();
    const ask = async (asked: string) =>
      client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: asked,
        state,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...parameters,
      });
    const url = await ask(scope);
    const { page, violations } = await browser.open(options);
    await page.goto(url.href);
    const signIn = async (username: string, password = PASSWORD) => {
      await page.getByLabel('Username').fill(username);
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    const redeem = () =>
      client.authorizationCodeGrant(configuration, new URL(page.url()), {
        pkceCodeVerifier: verifier,
        expectedState: state,
      });
    return { page, violations, configuration, clientId, signIn, ask, redeem };
  }

  it('signs in, unticks a scope, allows the rest, and revokes the app’s access', async () => {
    const { username } = await oauth.member({ stored_display_name: 'Ada Lovelace' });
    const { page, violations, configuration, signIn, redeem } = await start(
      'openid profile:read connections:read',
    );
    await signIn(username);
    await page.getByRole('heading', { name: 'Allow Trailmix to use your account?' }).waitFor();
    const shown = await page.getByRole('main').textContent();
    expect(shown).toContain(new URL(appUrl).host);
    expect(shown).toContain('Ada Lovelace');
    await page.getByLabel('See the people you are connected with').uncheck();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${appUrl}/callback?*`);
    const tokens = await redeem();
    expect(tokens.scope).toBe('profile:read');
    const me = new URL('/api/public/me', oauth.issuer);
    const call = () => client.fetchProtectedResource(configuration, tokens.access_token, me, 'GET');
    expect(await (await call()).json()).toMatchObject({ username });

    await page.goto(`${oauth.issuer}/account/apps`);
    await page.getByText('Revoke access of Trailmix').first().click();
    expect(await (await call()).json()).toMatchObject({ username }); // the first click only asks for confirmation
    await page.getByRole('button', { name: 'Revoke access of Trailmix' }).click();
    await page.getByText('No app can see your account.').waitFor();
    await page.getByRole('status').getByText('The app no longer has access to your account.').waitFor();
    await page.reload();
    expect(await page.getByRole('status').count()).toBe(0);
    await expect(call()).rejects.toMatchObject({ status: 401 });
    expect(violations).toEqual([]);
  });

  it('creates and revokes a calendar link, revokes a key, and downloads their data, with the keyboard only', async () => {
    const { id, username } = await oauth.member();
    const key = await oauth.api.key(id);
    const { page } = await browser.open({ acceptDownloads: true });
    /** Presses Tab until the control has the focus, at most 30 times. */
    const tabTo = async (name: string) => {
      for (let stop = 0; stop < 30; stop++) {
        await page.keyboard.press('Tab');
        const focused = await page.evaluate(
          'document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText',
        );
        if (String(focused).replace(/\s+/g, ' ').trim() === name) return;
      }
      throw new Error(`${name} cannot be reached by keyboard`);
    };
    /** Opens the confirmation, and then presses its button. */
    const confirmed = async (name: string) => {
      await tabTo(name);
      await page.keyboard.press('Enter');
      await page.getByText('You can’t undo this.').waitFor();
      await tabTo(name);
      await page.keyboard.press('Enter');
    };
    await page.goto(`${oauth.issuer}/account/calendar`);
    await page.locator('[name=username]:focus').waitFor(); // the browser focuses the field after it has rendered the page
    await page.keyboard.type(username);
    await tabTo('Password');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Calendar' }).waitFor();
    await tabTo('Where you will use it, such as “Phone”');
    await page.keyboard.type('Phone');
    await page.keyboard.press('Enter');
    await page.getByRole('status').first().waitFor();
    await page.locator('#link:focus').waitFor();
    const link = await page.getByLabel('Your calendar link').inputValue();
    expect((await fetch(link)).status).toBe(200);
    await confirmed('Revoke Phone');
    await page.getByText('That calendar link no longer works.').waitFor();
    expect((await fetch(link)).status).toBe(404);

    await tabTo('Keys');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await confirmed('Revoke key test');
    await page.getByText('That key no longer works.').waitFor();
    expect((await oauth.api.get('/me', key)).status).toBe(401);

    await tabTo('Your data');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your data' }).waitFor();
    await tabTo('Download');
    const download = page.waitForEvent('download');
    await page.keyboard.press('Enter');
    const data = JSON.parse(readFileSync(await (await download).path(), 'utf8')) as { profile: unknown };
    expect(data.profile).toMatchObject({ id, username });
  });

  describe.each(Object.keys(ONWARD))('whose app’s callback redirects again, at %s', (path) => {
    it.each([
      ['a link', 'query', true],
      ['a refresh, without JavaScript', 'query', false],
      ['a form', 'form_post', true],
    ])('arrives at the redirect’s target from five buttons, via %s', async (_, mode, javaScriptEnabled) => {
      const { username } = await oauth.member();
      const extra = { path, response_mode: mode };
      const started = await start('profile:read', { javaScriptEnabled }, extra);
      const authorize = await started.ask('profile:read');
      const signOut = new URL('/oauth/logout', oauth.issuer);
      signOut.searchParams.set('client_id', started.clientId);
      signOut.searchParams.set('post_logout_redirect_uri', appUrl + path);
      /** Opens a page, signs in if necessary, presses a button, and waits for the request to which the callback redirects. */
      const leave = async (url: URL, button: string, signsIn: boolean) => {
        const page = await started.page.context().newPage();
        const complaints: string[] = [];
        page.on('console', (message) => complaints.push(message.text()));
        await page.goto(url.href);
        if (signsIn) {
          await page.getByLabel('Username').fill(username);
          await page.getByLabel('Password').fill(PASSWORD);
          if (button !== 'Sign in') await page.getByRole('button', { name: 'Sign in' }).click();
        }
        const arrival = page.waitForRequest((request) => ARRIVED.test(request.url()));
        await page.getByRole('button', { name: button, exact: true }).click();
        const { searchParams } = new URL((await arrival).url());
        expect(complaints.filter((text) => /Content Security Policy/i.test(text))).toEqual([]);
        await page.close();
        return searchParams;
      };
      const inUrl = mode === 'query';
      expect((await leave(authorize, 'Cancel and go back to the app', false)).has('error')).toBe(inUrl);
      expect((await leave(authorize, 'Deny', true)).has('error')).toBe(inUrl);
      expect((await leave(authorize, 'Allow', false)).has('code')).toBe(inUrl);
      await leave(signOut, 'Sign out', false);
      expect((await leave(authorize, 'Sign in', true)).has('code')).toBe(inUrl);
    });
  });

  it('cannot open the sign-in page in a frame of another site', async () => {
    const { page } = await start('profile:read');
    const framing = await page.context().newPage();
    const refused = framing.waitForEvent('console', {
      predicate: (message) => /frame/i.test(message.text()),
    });
    await framing.goto(appUrl);
    await framing.setContent(`<iframe src="${oauth.issuer}/account/apps"></iframe>`);
    expect((await refused).text()).toMatch(/frame-ancestors|X-Frame-Options/);
  });
});

postgres.describe('a member with an external identity provider, in Chromium', () => {
  const browser = new TestBrowser();
  let oauth: OauthTest;
  let upstream: UpstreamServer;
  beforeAll(async () => {
    ({ oauth, upstream } = await startWithUpstream({ logout: true }, { seedDemo: true }));
    await registerDemoClient(oauth.dataSource, oauth.api.config);
  });
  afterAll(() => oauth.close());

  it('signs in to the demo app without a local password, and signs out at both servers', async () => {
    const sub = randomUUID();
    const { id } = await oauth.member({ external_id: sub, first_name: 'Ada', last_name: 'Lovelace' });
    await oauth.api.platform.participant(await oauth.api.platform.event({ title: 'Analytical engines' }), id);
    upstream.account = { sub };
    const { page, violations } = await browser.open({ viewport: { width: 390, height: 844 } });
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
