import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NewClient } from '../../src/clients/clients.service.js';
import { launchChromium } from '../support/chromium.js';
import { ODD_SECRETS, rotate, storeSecret } from '../support/client-kinds.js';
import {
  cargoInstall,
  goInstall,
  installLanguage,
  languagesIn,
  PROGRAM_MS,
  programsIn,
  startProgram,
  type Language,
} from '../support/languages.js';
import { OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { mavenJars } from '../support/packages.js';

/*
 * Other people's libraries, as they are, each in its own language: a program signs a member in, calls the API, renews its token
 * and calls again. What is installed is named by version and hash in the folder of the language. Only where LIBRARIES is
 * set, as `.ci/run` does: they come from the registries of seven languages.
 */

const HERE = import.meta.dirname;
const run = promisify(execFile);

const inHere = (folder: string, extension: string) => programsIn(join(HERE, folder), extension);

/** Fetches jars, and compiles the programs and their harness. */
async function mavenInstall(folder: string, files: readonly string[]): Promise<void> {
  const jars = await mavenJars(folder);
  const sources = [join(HERE, 'java/Harness.java'), ...files];
  await run('javac', ['-nowarn', '-cp', `${jars}/*`, '-d', join(folder, 'classes'), ...sources]);
}

const javaCommand = (folder: string, program: string) =>
  ['java', '-cp', `${folder}/classes:${folder}/jars/*`, program] as const;

/** Where frameworks want members to be sent back to. */
const FRAMEWORK_URIS = ['/auth/callback/platform', '/login/oauth2/code/platform', '/oauth2/callback'].map(
  (path) => `https://app.example${path}`,
);

type AuthMethod = 'none' | NonNullable<NewClient['secret_auth_method']>;

const LANGUAGES: Record<string, Language> = {
  ...languagesIn(HERE),
  'oauth2-proxy': {
    programs: { proxy: join(HERE, 'oauth2-proxy/main.go') },
    needs: ['go', 'version'],
    install: goInstall('tool'),
    command: (folder, program) => [join(folder, 'bin', program)],
  },
  java: {
    programs: inHere('java', '.java'),
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, Object.values(LANGUAGES.java!.programs)),
    command: javaCommand,
  },
  spring: {
    programs: { Spring: join(HERE, 'spring/Spring.java') },
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, [join(HERE, 'spring/Spring.java')]),
    command: javaCommand,
  },
  rust: {
    programs: inHere('rust', '.rs'),
    needs: ['cargo', '--version'],
    install: cargoInstall,
    command: (folder, program) => [join(folder, 'target/debug', program)],
  },
  ruby: {
    programs: inHere('ruby', '.rb'),
    needs: ['ruby', '-e', '%w[oauth2 rack/oauth2 openid_connect].each { |name| require name }'],
    install: () => Promise.resolve(),
    command: (folder, program) => ['ruby', join(folder, `${program}.rb`)],
  },
};

/** Each program, with each authentication that it is run with. */
function runsOf({ programs }: Language): [program: string, auth: AuthMethod, alg: 'ES256' | 'RS256'][] {
  return Object.entries(programs).flatMap(([program, file]) => {
    const source = readFileSync(file, 'utf8');
    const said = (what: string) => new RegExp(`^(?://!?|#) ${what}: (.+)$`, 'm').exec(source)?.[1];
    const methods = (said('auth') ?? 'none').split(' ') as AuthMethod[];
    const alg = said('id-token') === 'RS256' ? 'RS256' : 'ES256';
    return methods.map((auth) => [program, auth, alg] as [string, AuthMethod, 'ES256' | 'RS256']);
  });
}

(process.env.LIBRARIES ? describe : describe.skip)('libraries sign a member in and call the API:', () => {
  let root: string;
  let oauth: OauthTest;
  let username: string;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'pua-libraries-'));
    oauth = await OauthTest.start();
    ({ username } = await oauth.member());
  });
  afterAll(async () => {
    await oauth.close();
    rmSync(root, { recursive: true, force: true });
  });

  describe.each(Object.entries(LANGUAGES))('%s', (name, language) => {
    const folder = () => join(root, name);
    beforeAll(() => installLanguage(name, language, join(HERE, name), folder()));

    /** Signs the member in by a program, which calls the API, renews its token where it can, and calls again. */
    async function signIn(program: string, auth: AuthMethod, alg: 'ES256' | 'RS256', secret?: string) {
      const clientId = await oauth.client({
        redirect_uris: [REDIRECT_URI, ...FRAMEWORK_URIS],
        id_token_signed_response_alg: alg,
        ...(auth === 'none' ? {} : { profile: 'oidc', secret_auth_method: auth }),
      });
      if (secret !== undefined) await storeSecret(oauth, clientId, secret);
      const { child, errors, lines } = startProgram(language, folder(), program, {
        ISSUER: oauth.issuer,
        CLIENT_ID: clientId,
        REDIRECT_URI,
        AUTH: auth,
        CLIENT_SECRET: auth === 'none' ? '' : (secret ?? (await rotate(oauth, clientId))),
      });
      const url = await lines.next();
      if (url.done) throw new Error(await errors);
      const back = await oauth.browser().authorize(url.value as string, { username });
      child.stdin.end(`${back.href}\n`);
      const answer = await lines.next();
      if (answer.done) throw new Error(await errors);
      expect(JSON.parse(answer.value as string)).toEqual({ username, again: username });
    }

    it.each(runsOf(language))('%s: %s', (program, auth, alg) => signIn(program, auth, alg));

    // Two others of Node’s: test/oauth/client-secrets.
    if (name === 'go')
      it.each(ODD_SECRETS)('oauth2 sends a secret that encodings change so that it arrives: %s', (secret) =>
        signIn('oauth2', 'client_secret_basic', 'ES256', secret),
      );
  });

  describe('browser', () => {
    let browser: Browser;
    let app: Server;
    let origin: string;
    let clientId: string;
    /** Each page's script, with its library in it. */
    const scripts = new Map<string, string>();

    beforeAll(async () => {
      const folder = join(root, 'node'); // the packages are installed there
      const pages = join(folder, 'pages');
      mkdirSync(pages);
      cpSync(join(HERE, 'browser'), pages, { recursive: true });
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
          ISSUER: oauth.issuer,
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
      clientId = await oauth.client({ redirect_uris: [`${origin}/${page}`], allowed_origins: [origin] });
      const tab = await (await browser.newContext()).newPage();
      const problems: string[] = [];
      tab.on('pageerror', (error) => problems.push(String(error)));
      await tab.goto(`${origin}/${page}`);
      await tab.getByLabel('Username').fill(username);
      await tab.getByLabel('Password').fill(PASSWORD);
      await tab.getByRole('button', { name: 'Sign in' }).click();
      await tab.getByRole('button', { name: /^Allow/ }).click();
      await tab
        .getByText('"username"')
        .waitFor({ timeout: PROGRAM_MS })
        .catch((error: Error) => {
          throw new Error([error.message, ...problems].join('\n'));
        });
      expect(JSON.parse(await tab.locator('body').innerText())).toEqual({ username, again: username });
    });
  });
});
