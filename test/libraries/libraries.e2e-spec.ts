import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { NewClient } from '../../src/clients/clients.service.js';
import { launchChromium } from '../support/chromium.js';
import { rotate } from '../support/client-kinds.js';
import { OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { installPackages, makePython, REGISTRY_MS } from '../support/packages.js';

/*
 * Other people's libraries, as they are, each in its own language: a program signs a member in, calls the API, renews its token
 * and calls again. What is installed is named by version and hash in the folder of the language. Only where LIBRARIES is
 * set, as `.ci/run` does: they come from the registries of seven languages.
 */

jest.setTimeout(600_000); // for oauth2-proxy and the crates, which are compiled

const HERE = import.meta.dirname;
const PROGRAM_MS = 120_000;
/** Deadline for a registry and the compiler after it. */
const COMPILING_MS = 540_000;
const run = promisify(execFile);

const programs = (folder: string, extension: string) =>
  Object.fromEntries(
    readdirSync(join(HERE, folder))
      .filter((name) => name.endsWith(extension) && !/^harness/i.test(name))
      .map((name) => [basename(name, extension), join(folder, name)]),
  );

/** Compiles the programs of a module, and other people's. */
const goInstall =
  (...others: string[]) =>
  (folder: string) =>
    run('go', ['build', '-mod=readonly', '-o', join(folder, 'bin/'), './...', ...others], {
      cwd: folder,
      timeout: COMPILING_MS,
      env: { ...process.env, GOPATH: join(folder, 'path'), GOFLAGS: '-modcacherw' },
    });

/** Fetches jars, compares their hashes, and compiles the programs and their harness. */
async function mavenInstall(folder: string, files: readonly string[]): Promise<void> {
  const jars = join(folder, 'jars');
  await run('mvn', ['-q', '-B', '-ntp', 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`], {
    cwd: folder,
    timeout: REGISTRY_MS,
  });
  await run('sha256sum', ['--check', '--strict', '--quiet', join(folder, 'jars.sha256')], { cwd: jars });
  const sources = ['java/Harness.java', ...files].map((file) => join(HERE, file));
  await run('javac', ['-nowarn', '-cp', `${jars}/*`, '-d', join(folder, 'classes'), ...sources]);
}

const javaCommand = (folder: string, program: string) =>
  ['java', '-cp', `${folder}/classes:${folder}/jars/*`, program] as const;

/** Where frameworks want members to be sent back to. */
const FRAMEWORK_URIS = ['/auth/callback/platform', '/login/oauth2/code/platform', '/oauth2/callback'].map(
  (path) => `https://app.example${path}`,
);

type AuthMethod = 'none' | NonNullable<NewClient['secret_auth_method']>;

/** A language: how what it needs is installed into a folder, and how a program of it is run there. */
interface Language {
  /** The files of its programs. `auth:` in one says how its clients authenticate, `id-token:` by what their ID tokens are signed. */
  readonly programs: Readonly<Record<string, string>>;
  /** What has to be on the machine, and a call that fails where it is not. */
  readonly needs: readonly [program: string, ...parameters: string[]];
  install(folder: string): Promise<unknown>;
  command(folder: string, program: string): readonly [file: string, ...parameters: string[]];
}

const LANGUAGES: Record<string, Language> = {
  node: {
    programs: programs('node', '.mjs'),
    needs: [process.execPath, '--version'],
    install: (folder) => installPackages(folder),
    command: (folder, program) => [process.execPath, join(folder, `${program}.mjs`)],
  },
  python: {
    programs: programs('python', '.py'),
    needs: ['python3', '-c', 'import ensurepip'],
    install: (folder) => makePython(folder, join(folder, 'requirements.txt')),
    command: (folder, program) => [join(folder, 'venv/bin/python'), join(folder, `${program}.py`)],
  },
  go: {
    programs: { oauth2: 'go/oauth2/main.go', oidc: 'go/oidc/main.go' },
    needs: ['go', 'version'],
    install: goInstall(),
    command: (folder, program) => [join(folder, 'bin', program)],
  },
  'oauth2-proxy': {
    programs: { proxy: 'oauth2-proxy/main.go' },
    needs: ['go', 'version'],
    install: goInstall('tool'),
    command: (folder, program) => [join(folder, 'bin', program)],
  },
  java: {
    programs: programs('java', '.java'),
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, Object.values(LANGUAGES.java!.programs)),
    command: javaCommand,
  },
  spring: {
    programs: { Spring: 'spring/Spring.java' },
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, ['spring/Spring.java']),
    command: javaCommand,
  },
  rust: {
    programs: programs('rust', '.rs'),
    needs: ['cargo', '--version'],
    install: (folder) =>
      run('cargo', ['build', '--locked', '--quiet'], { cwd: folder, timeout: COMPILING_MS }),
    command: (folder, program) => [join(folder, 'target/debug', program)],
  },
  ruby: {
    programs: programs('ruby', '.rb'),
    needs: ['ruby', '-e', '%w[oauth2 rack/oauth2 openid_connect].each { |name| require name }'],
    install: () => Promise.resolve(),
    command: (folder, program) => ['ruby', join(folder, `${program}.rb`)],
  },
};

/** Each program, with each authentication that it is run with. */
function runsOf({ programs }: Language): [program: string, auth: AuthMethod, alg: 'ES256' | 'RS256'][] {
  return Object.entries(programs).flatMap(([program, file]) => {
    const source = readFileSync(join(HERE, file), 'utf8');
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
    beforeAll(async () => {
      const [program, ...parameters] = language.needs;
      await run(program, parameters).catch((error: Error) => {
        throw new Error(
          `Not run: the libraries of ${name} need ${language.needs.join(' ')}: ${error.message}`,
        );
      });
      cpSync(join(HERE, name), folder(), { recursive: true });
      await language.install(folder());
    });

    it.each(runsOf(language))('%s: %s', async (program, auth, alg) => {
      const [file, ...parameters] = language.command(folder(), program);
      const clientId = await oauth.client({
        redirect_uris: [REDIRECT_URI, ...FRAMEWORK_URIS],
        id_token_signed_response_alg: alg,
        ...(auth === 'none' ? {} : { profile: 'oidc', secret_auth_method: auth }),
      });
      const child = spawn(file, parameters, {
        cwd: folder(),
        env: {
          PATH: process.env.PATH,
          HOME: folder(),
          LANG: 'C.UTF-8',
          ISSUER: oauth.issuer,
          CLIENT_ID: clientId,
          REDIRECT_URI,
          AUTH: auth,
          CLIENT_SECRET: auth === 'none' ? '' : await rotate(oauth, clientId),
        },
        stdio: ['pipe', 'pipe', 'pipe'],
        timeout: PROGRAM_MS,
      });
      const errors = text(child.stderr);
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      const url = await lines.next();
      if (url.done) throw new Error(await errors);
      const back = await oauth.browser().authorize(url.value as string, { username });
      child.stdin.end(`${back.href}\n`);
      const answer = await lines.next();
      if (answer.done) throw new Error(await errors);
      expect(JSON.parse(answer.value as string)).toEqual({ username, again: username });
    });
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
      for (const page of Object.keys(programs('browser', '.js'))) {
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

    it.each(Object.keys(programs('browser', '.js')))('%s', async (page) => {
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
