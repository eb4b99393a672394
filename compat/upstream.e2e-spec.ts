import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { registerDemoClient } from '../src/clients/own-clients.js';
import { launchChromium } from '../test/support/chromium.js';
import { freePort, OauthTest } from '../test/support/oauth.js';
import { makePython } from '../test/support/packages.js';

/*
 * Tests a third-party identity provider in another language: django-oidc-provider.
 */

const SECRET = 'a-secret-that-only-this-test-and-the-provider-know';
const PASSWORD = 'the password of the platform';

describe('django-oidc-provider as the external identity provider', () => {
  let root: string;
  let provider: ChildProcess;
  let oauth: OauthTest;
  let browser: Browser;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'pua-upstream-'));
    cpSync(join(import.meta.dirname, 'upstream'), root, { recursive: true });
    const python = join(await makePython(root, join(root, 'requirements.txt')), 'python');

    const [port, providerPort] = [await freePort(), await freePort()];
    const publicUrl = `http://127.0.0.1:${port}`;
    provider = spawn(python, [join(root, 'django_provider.py')], {
      env: {
        PATH: process.env.PATH,
        HOME: root,
        PORT: String(providerPort),
        DATABASE: join(root, 'db.sqlite'),
        REDIRECT_URI: `${publicUrl}/sign-in/callback`,
        CLIENT_SECRET: SECRET,
        USERNAME: 'ada',
        PASSWORD,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const errors = text(provider.stderr!);
    const started = await createInterface(provider.stdout!)[Symbol.asyncIterator]().next();
    if (started.done) throw new Error(await errors);

    oauth = await OauthTest.start({
      port,
      publicUrl,
      seedDemo: true,
      localSignIn: false,
      upstream: {
        issuer: `http://127.0.0.1:${providerPort}/openid`,
        clientId: 'public-user-api',
        clientSecret: SECRET,
        clientKey: undefined,
        scopes: 'openid',
        label: 'The platform',
        claim: 'sub',
        match: 'external_id',
        createMembers: false,
        logout: false,
      },
    });
    await registerDemoClient(oauth.dataSource, oauth.api.config);
    const { id } = await oauth.member({ external_id: started.value, first_name: 'Ada' });
    await oauth.api.platform.participant(await oauth.api.platform.event({ title: 'Analytical engines' }), id);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await oauth?.close();
    provider?.kill();
    rmSync(root, { recursive: true, force: true });
  });

  it('signs a member in to the demo app without a local password, in a real browser', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${oauth.issuer}/demo`);
    await page.getByRole('button', { name: /sign in/i }).click();
    await page.getByRole('heading', { name: 'The platform' }).waitFor();
    await page.getByLabel('Username').fill('ada');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in to the platform' }).click();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('Analytical engines').waitFor();
    const events = await oauth.dataSource.query<object[]>(
      `SELECT details FROM auth_events WHERE type = 'sign_in.succeeded'`,
    );
    expect(events).toMatchObject([{ details: { method: 'upstream' } }]);
  });
});
