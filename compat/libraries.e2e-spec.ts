import { cpSync, mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { launchChromium } from '../test/support/chromium.js';
import { ODD_SECRETS } from '../test/support/client-kinds.js';
import { PASSWORD } from '../test/support/oauth.js';
import { PROGRAM_MS } from './languages.js';
import { inHere, LANGUAGES, runsOf, SignIns } from './sign-ins.js';

describe('libraries sign a member in and call the API:', () => {
  let signIns: SignIns;
  beforeAll(async () => {
    signIns = await SignIns.start();
  });
  afterAll(() => signIns.close());

  describe.each(Object.entries(LANGUAGES))('%s', (name, language) => {
    beforeAll(() => signIns.install(name));

    it.each(runsOf(language))('%s: %s', (...run) => signIns.signIn(name, run));

    // test/oauth/client-secrets tests two Node libraries.
    if (name === 'go')
      it.each(ODD_SECRETS)(
        'oauth2 sends a secret correctly even if encodings change its characters: %s',
        (secret) => signIns.signIn('go', ['oauth2', 'client_secret_basic', 'ES256'], secret),
      );
  });

  describe('browser', () => {
    let browser: Browser;
    let app: Server;
    let origin: string;
    let clientId: string;
    /** Each page's script, bundled with its library. */
    const scripts = new Map<string, string>();

    beforeAll(async () => {
      const folder = join(signIns.root, 'node'); // the packages are installed there
      const pages = join(folder, 'pages');
      mkdirSync(pages);
      cpSync(join(import.meta.dirname, 'browser'), pages, { recursive: true });
      const { build } = (await import(
        pathToFileURL(join(folder, 'node_modules/esbuild/lib/main.js')).href
      )) as { build(options: object): Promise<{ outputFiles: { text: string }[] }> };
      for (const page of Object.keys(inHere('browser', '.js'))) {
        const { outputFiles } = await build({
          entryPoints: [join(pages, `${page}.js`)],
          bundle: true,
          write: false,
          format: 'esm',
          platform: 'browser',
        });
        scripts.set(page, outputFiles[0]!.text);
      }
      app = createServer((request, response) => {
        const [, page] = request.url!.split(/[/?]/);
        const settings = JSON.stringify({
          ISSUER: signIns.oauth.issuer,
          CLIENT_ID: clientId,
          REDIRECT_URI: `${origin}/${page}`,
        });
        response.setHeader('Content-Type', 'text/html');
        response.end(
          `<!doctype html><body><script>SETTINGS = ${settings}</script><script type="module">${scripts.get(page!) ?? ''}</script>`,
        );
      });
      await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
      origin = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
      browser = await launchChromium();
    });
    afterAll(async () => {
      await browser?.close();
      app?.close();
    });

    it.each(Object.keys(inHere('browser', '.js')))('%s', async (page) => {
      clientId = await signIns.oauth.client({
        redirect_uris: [`${origin}/${page}`],
        allowed_origins: [origin],
        post_logout_redirect_uris: [`${origin}/signed-out`],
      });
      const tab = await (await browser.newContext()).newPage();
      const problems: string[] = [];
      tab.on('pageerror', (error) => problems.push(String(error)));
      await tab.goto(`${origin}/${page}`);
      await tab.getByLabel('Username').fill(signIns.username);
      await tab.getByLabel('Password').fill(PASSWORD);
      await tab.getByRole('button', { name: 'Sign in' }).click();
      await tab.getByRole('button', { name: /^Allow/ }).click();
      await tab
        .getByText('"username"')
        .waitFor({ timeout: PROGRAM_MS })
        .catch((error: Error) => {
          throw new Error([error.message, ...problems].join('\n'));
        });
      expect(JSON.parse(await tab.locator('body').innerText())).toEqual({
        username: signIns.username,
        again: signIns.username,
      });
      // A library for OpenID Connect also signs out.
      if (await tab.evaluate('"signOut" in globalThis')) {
        await tab.evaluate('void signOut()');
        await tab.getByRole('button', { name: 'Sign out' }).click();
        await tab.waitForURL(`${origin}/signed-out`);
      }
    });
  });
});
