import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
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
import { launchChromium } from '../support/chromium.js';
import { OauthTest, PASSWORD, REDIRECT_URI } from '../support/oauth.js';
import { makePython, REGISTRY_MS } from '../support/python.js';

/*
 * Other people's libraries, as they are, each in its own language: a program signs a member in, calls the API, renews its token
 * and calls again. What is installed is named by version and hash in the folder of the language. Only where LIBRARIES is
 * set, as `.ci/run` does: they come from the registries of six languages.
 */

jest.setTimeout(300_000);

const HERE = import.meta.dirname;
const PROGRAM_MS = 120_000;
const run = promisify(execFile);

const programs = (folder: string, extension: string) =>
  readdirSync(join(HERE, folder))
    .filter((name) => name.endsWith(extension) && !/^harness/i.test(name))
    .map((name) => basename(name, extension));

/** A language: how what it needs is installed into a folder, and how a program of it is run there. */
interface Language {
  readonly programs: readonly string[];
  /** What has to be on the machine, and a call that fails where it is not. */
  readonly needs: readonly [program: string, ...parameters: string[]];
  install(folder: string): Promise<unknown>;
  command(folder: string, program: string): readonly [file: string, ...parameters: string[]];
}

const LANGUAGES: Record<string, Language> = {
  node: {
    programs: programs('node', '.mjs'),
    needs: [process.execPath, '--version'],
    install: (folder) =>
      run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: folder,
        timeout: REGISTRY_MS,
      }),
    command: (folder, program) => [process.execPath, join(folder, `${program}.mjs`)],
  },
  python: {
    programs: programs('python', '.py'),
    needs: ['python3', '-c', 'import ensurepip'],
    install: (folder) => makePython(folder, join(folder, 'requirements.txt')),
    command: (folder, program) => [join(folder, 'venv/bin/python'), join(folder, `${program}.py`)],
  },
  go: {
    programs: readdirSync(join(HERE, 'go')).filter((name) => !name.startsWith('go.')),
    needs: ['go', 'version'],
    install: (folder) =>
      run('go', ['build', '-mod=readonly', '-o', join(folder, 'bin/'), './...'], {
        cwd: folder,
        timeout: REGISTRY_MS,
        env: { ...process.env, GOPATH: join(folder, 'path'), GOFLAGS: '-modcacherw' },
      }),
    command: (folder, program) => [join(folder, 'bin', program)],
  },
  java: {
    programs: programs('java', '.java'),
    needs: ['mvn', '--version'],
    install: async (folder) => {
      const jars = join(folder, 'jars');
      await run('mvn', ['-q', '-B', '-ntp', 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`], {
        cwd: folder,
        timeout: REGISTRY_MS,
      });
      await run('sha256sum', ['--check', '--strict', '--quiet', join(folder, 'jars.sha256')], { cwd: jars });
      const sources = ['Harness', ...LANGUAGES.java!.programs].map((name) => join(folder, `${name}.java`));
      await run('javac', ['-nowarn', '-cp', `${jars}/*`, '-d', join(folder, 'classes'), ...sources]);
    },
    command: (folder, program) => ['java', '-cp', `${folder}/classes:${folder}/jars/*`, program],
  },
  ruby: {
    programs: programs('ruby', '.rb'),
    needs: ['ruby', '-e', '%w[oauth2 rack/oauth2 openid_connect].each { |name| require name }'],
    install: () => Promise.resolve(),
    command: (folder, program) => ['ruby', join(folder, `${program}.rb`)],
  },
};

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

    it.each(language.programs)('%s', async (program) => {
      const [file, ...parameters] = language.command(folder(), program);
      const clientId = await oauth.client({ redirect_uris: [REDIRECT_URI] });
      const child = spawn(file, parameters, {
        cwd: folder(),
        env: {
          PATH: process.env.PATH,
          HOME: folder(),
          LANG: 'C.UTF-8',
          ISSUER: oauth.issuer,
          CLIENT_ID: clientId,
          REDIRECT_URI,
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
      for (const page of programs('browser', '.js')) {
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

    it.each(programs('browser', '.js'))('%s', async (page) => {
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
