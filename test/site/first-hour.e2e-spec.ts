import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { launchChromium } from '../support/chromium.js';
import { postgres } from '../support/database.js';
import { serve, type LocalServer } from '../support/http-server.js';
import { freePort } from '../support/oauth.js';
import { until } from '../support/timing.js';

const run = promisify(execFile);
const MODULE = 'public-user-api.example/publicuserapi';

/** The page of an app around the lines that `/developer` shows, as in the README of the TypeScript client. */
const page = (server: string) => `<!doctype html><title>Trailmix</title><button>Sign in</button><p></p>
<script type="importmap">{"imports":{"public-user-api-client":"/node_modules/public-user-api-client/dist/index.js"}}</script>
<script type="module">
import { PublicUserApi } from 'public-user-api-client';
import { session } from './session.js';
const api = new PublicUserApi({ baseUrl: '${server}', credentials: session });
const show = async () => { document.querySelector('p').textContent = \`Hello \${(await api.me()).display_name}\`; };
document.querySelector('button').onclick = async () => location.assign(await session.begin());
if (location.pathname === '/callback') {
  await session.finish(location.href);
  history.replaceState(null, '', '/');
  await show();
}
</script>`;

// Always on the embedded database, and by the steps of README and guides.
postgres.describe('in the first hour, with README and guides only,', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-first-hour-'));
  let server: string;
  let npm: ChildProcess;
  let printed = '';
  let browser: Browser;
  let app: LocalServer;
  beforeAll(async () => {
    const PORT = String(await freePort());
    const DATA_DIR = join(folder, 'data');
    const env = { PATH: process.env.PATH, HOME: folder, DATA_DIR, PORT, DEVELOPER_CONSOLE: 'true' };
    npm = spawn('npm', ['start'], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [npm.stdout!, npm.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
    await until(() => printed.includes('Press Ctrl-C to stop the server.'), '`npm start`');
    server = /Front page +(http:\S+?)\/?\s/.exec(printed)![1]!;
    app = await serve((request, response) => {
      const path = normalize(new URL(request.url!, 'http://x').pathname);
      const file = join(folder, 'app', path);
      if (path === '/' || path === '/callback')
        return response.setHeader('Content-Type', 'text/html').end(page(server));
      if (!existsSync(file)) return response.writeHead(404).end();
      return response.setHeader('Content-Type', 'text/javascript').end(readFileSync(file));
    });
    browser = await launchChromium();
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    process.kill(-npm.pid!, 'SIGTERM');
    await once(npm, 'close');
    rmSync(folder, { recursive: true, force: true });
  });

  /** A new browser, whose clicks are counted. */
  async function visitor() {
    const visited = await (await browser.newContext()).newPage();
    let clicks = 0;
    const click = async (target: Locator) => {
      clicks++;
      await target.click();
    };
    return { page: visited, click, clicks: () => clicks };
  }
  type Visitor = Awaited<ReturnType<typeof visitor>>;

  const button = (of: Page, name: string) => of.getByRole('button', { name, exact: true });
  async function signIn({ page: at, click }: Visitor, username: string): Promise<void> {
    const [, password] = /Members .*\(password: (\S+)\)/.exec(printed)!;
    await at.getByLabel('Username').fill(username);
    await at.getByLabel('Password').fill(password!);
    await click(button(at, 'Sign in'));
  }

  /** From the start page to a developer's own app on another origin. */
  async function makeApp(name: string): Promise<Visitor> {
    const ada = await visitor();
    const { page: at, click } = ada;
    await at.goto(server);
    await click(at.getByRole('link', { name: 'Your apps and keys' }));
    await signIn(ada, 'ada');
    await click(at.getByRole('link', { name: 'Register an app' }));
    await at.getByLabel('Name', { exact: true }).fill(name);
    await at.getByLabel('Redirect URIs', { exact: true }).fill(`${app.url}/callback`);
    await click(button(at, 'Register'));
    const [install, code] = await at.locator('.secret code').allInnerTexts();
    mkdirSync(join(folder, 'app'), { recursive: true });
    await run('sh', ['-c', `${install} --no-audit --no-fund`], { cwd: join(folder, 'app') });
    writeFileSync(join(folder, 'app/session.js'), code!);
    return ada;
  }

  /** A member uses the app. */
  async function useApp(): Promise<Visitor> {
    const grace = await visitor();
    await grace.page.goto(app.url);
    await grace.click(button(grace.page, 'Sign in'));
    await signIn(grace, 'grace');
    await grace.click(button(grace.page, 'Allow'));
    await grace.page.getByText('Hello Grace Hopper').waitFor();
    return grace;
  }

  it('a developer creates a browser app, in which another member signs in and sees their name', async () => {
    const [ada, grace] = [await makeApp('Trailmix'), await useApp()];
    expect([ada.clicks(), grace.clicks()]).toEqual([4, 3]);
  });

  it('a developer creates a key, and programs in Python and Go use the key, with and without the clients', async () => {
    const ada = await visitor();
    const { page: at, click } = ada;
    await at.goto(server);
    await click(at.getByRole('link', { name: 'Create a key', exact: true }));
    await signIn(ada, 'ada');
    await click(at.getByRole('link', { name: 'Create a key', exact: true }));
    await at.getByLabel('Name', { exact: true }).fill('My backend');
    for (const scope of await at.getByRole('checkbox').all()) await scope.check();
    await click(button(at, 'Create the key'));
    const key = (await at.locator('.secret code').first().innerText()).trim();
    expect(ada.clicks()).toBe(4);

    const env = { ...process.env, API_KEY: key, API_URL: server };
    const place = mkdtempSync(join(folder, 'backend-'));
    const programOf = (file: string, language: string) => {
      const [, program] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(readFileSync(file, 'utf8'))!;
      return program!;
    };
    const guide = 'docs/developers/first-program.md';
    writeFileSync(join(place, 'events.py'), programOf(guide, 'python'));
    writeFileSync(join(place, 'events.go'), programOf(guide, 'go'));
    const listed = [
      await run('python3', ['events.py'], { cwd: place, env }),
      await run('go', ['run', 'events.go'], { cwd: place, env }),
    ].map(({ stdout }) => stdout);
    expect(listed[0]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S/);
    expect(listed[1]).toBe(listed[0]);

    await run('python3', ['-m', 'venv', 'venv'], { cwd: place });
    const { url: wheel } = await fetch(`${server}/clients/python.whl`); // redirects to the complete file name, which pip requires
    await run('venv/bin/pip', ['install', '--quiet', '--retries', '10', wheel], { cwd: place, env });
    writeFileSync(join(place, 'client.py'), programOf('clients/python/README.md', 'python'));
    expect((await run('venv/bin/python', ['client.py'], { cwd: place, env })).stdout).toMatch(
      /^The events of Ada Lovelace:\n/,
    );

    const module = join(place, 'module');
    mkdirSync(module);
    writeFileSync(join(module, 'main.go'), programOf('clients/go/README.md', 'go'));
    const ofGo = {
      ...env,
      GOTOOLCHAIN: 'local',
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(place, 'modules'),
      GOPROXY: `${server}/clients/go,off`,
      GONOSUMDB: 'public-user-api.example',
    };
    for (const command of [
      ['mod', 'init', 'app'],
      ['get', `${MODULE}@latest`],
    ])
      await run('go', command, { cwd: module, env: ofGo });
    expect((await run('go', ['run', '.'], { cwd: module, env: ofGo })).stdout).toMatch(
      /^The events of Ada Lovelace:\n/,
    );
  });

  it('a member finds an app with access to their data, and ends the access', async () => {
    await makeApp('Pocketbook');
    const grace = await useApp();
    const { page: at, click } = grace;
    const using = await at.context().newPage();
    const before = grace.clicks();
    await using.goto(server);
    await click(using.getByRole('link', { name: 'Account', exact: true }));
    await click(using.locator('summary').filter({ hasText: 'Revoke access of Pocketbook' }));
    await click(button(using, 'Revoke access of Pocketbook'));
    await using.getByText('The app no longer has access to your account.').waitFor();
    expect(grace.clicks() - before).toBe(3);
    const answer = await at.evaluate(async (api) => {
      const [{ PublicUserApi }, { session }] = await Promise.all(
        ['public-user-api-client', '/session.js'].map((name) => import(name)),
      );
      return new PublicUserApi({ baseUrl: api, credentials: session }).me().then(
        () => 'still there',
        ({ code }: { code: string }) => code,
      );
    }, server);
    expect(answer).not.toBe('still there');
  });
});
