import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { migrate } from '../../src/database/schema/migrate.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { PROCESS, pua } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { type FormPage, OauthTest, PASSWORD } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';

interface Snippet {
  /** File and line. */
  readonly at: string;
  readonly language: string;
  readonly code: string;
  /** Reasons for snippets that are not run. */
  readonly excuse: string | undefined;
}

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync('docs', { recursive: true }).map((name) => `docs/${String(name)}`),
].filter((path) => path.endsWith('.md'));

function snippetsOf(page: string): Snippet[] {
  const source = readFileSync(page, 'utf8');
  const fence = /(?:<!-- not run: (.+?) -->\s+)?^( *)```(\w*)\n([^]*?)^ *```$/gm;
  return [...source.matchAll(fence)].map(
    ({ index, 0: whole, 1: excuse, 2: indent, 3: language, 4: code }) => ({
      at: `${page}:${source.slice(0, index + whole.indexOf('```')).split('\n').length}`,
      language: language!,
      code: code!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      excuse,
    }),
  );
}

const isOfLibraries = (at: string) => at.startsWith('docs/developers/libraries.md:');

/** Complete programs: the file that contains the program, and the command that runs the program. */
const PROGRAMS: Record<string, { file: string; run: readonly string[] }> = {
  ts: { file: 'events.ts', run: [process.execPath, '--no-warnings', 'events.ts'] },
  python: { file: 'events.py', run: ['python3', 'events.py'] },
  go: { file: 'events.go', run: ['go', 'run', 'events.go'] },
};

const SNIPPETS = PAGES.flatMap(snippetsOf);
const ofLanguage = (...languages: string[]) =>
  SNIPPETS.filter(({ language, excuse }) => languages.includes(language) && excuse === undefined).map(
    (snippet) => [`${snippet.at} ${snippet.code.trim().split('\n')[0]}`, snippet] as const,
  );

describe('the snippets of README and docs', () => {
  it('are run, except the listed snippets', () => {
    const excused = SNIPPETS.filter(({ at, excuse }) => excuse !== undefined && !isOfLibraries(at));
    expect(excused.map(({ at, language, excuse }) => `${at.split(':')[0]} ${language}: ${excuse}`)).toEqual([
      'README.md sh: bin/smoke.mjs and .ci/run do',
      'CONTRIBUTING.md ts: test/repository/recipe.e2e-spec.ts does',
      'docs/api-contract.md json: a response, such as test/api/errors.e2e-spec.ts compares',
      ...['ts', 'ts', 'sql', 'ts', 'ts', 'ts'].map(
        (language) =>
          `docs/contributors/add-a-resource.md ${language}: test/repository/recipe.e2e-spec.ts does`,
      ),
      'docs/developers/assistants.md sh: a line for another program',
      ...Array<string>(2).fill('docs/developers/assistants.md json: a file of another program'),
      'docs/developers/assistants.md sh: a line for another program',
      'docs/developers/browser-app.md sh: test/clients/typescript.e2e-spec.ts does, in a folder of its own',
      'docs/developers/confidential-clients.md csharp: there is no .NET; test/oauth/openid-basic.e2e-spec.ts sends what its documentation says it sends',
      ...['properties', 'js', 'js', 'sh'].map(
        (language, i) =>
          `docs/developers/confidential-clients.md ${language}: npm run compat does, as ${
            ['spring/Spring.java', 'node/auth-core.mjs', 'node/passport-oauth2.mjs', 'oauth2-proxy/main.go'][
              i
            ]
          }`,
      ),
      'docs/developers/first-program.md sh: test/clients does, each in a folder of its own',
      'docs/developers/generated-clients.md sh: compat/generated.e2e-spec.ts does',
      ...['swift', 'kotlin'].map(
        (language) =>
          `docs/developers/mobile-app.md ${language}: npm run compat tests this flow with AppAuth-JS`,
      ),
      'docs/developers/webhooks.md json: a message, such as test/webhooks/webhooks.e2e-spec.ts compares',
      'docs/developers/webhooks.md js: test/webhooks/example.e2e-spec.ts does, as examples/webhooks/receiver.mjs',
      'docs/developers/webhooks.md json: a message, such as test/webhooks/access.e2e-spec.ts compares',
      ...Array<string>(2).fill(
        'docs/operators/admin.md bash: test/operations/drills.e2e-spec.ts does, over clusters of its own',
      ),
      'docs/operators/admin.md bash: an application must be pending; test/oauth/review.e2e-spec.ts runs these commands',
      ...['ini', 'bash', 'bash', 'bash', 'bash'].map(
        (language) =>
          `docs/operators/backup.md ${language}: test/operations/backup.e2e-spec.ts does, over clusters of its own`,
      ),
      'docs/operators/deploy.md sh: test/operations/proxies.e2e-spec.ts runs it on its own ports',
      'docs/operators/deploy.md sh: there is no systemd; test/operations/deploy.e2e-spec.ts checks both units with its tools, and runs what they start',
      'docs/operators/deploy.md sh: there is no Docker; test/operations/compose.e2e-spec.ts checks the file, and runs its scripts',
      'docs/operators/deploy.md sh: there is no cluster; test/operations/monitoring.e2e-spec.ts asks a Prometheus what the rule asks',
      'docs/operators/failover.md sh: .ci/run does',
      'docs/operators/monitoring.md sh: test/libraries/opentelemetry.e2e-spec.ts does, in a folder of its own',
      ...Array<string>(2).fill(
        'docs/operators/monitoring.md bash: test/operations/drills.e2e-spec.ts does, over clusters of its own',
      ),
      'docs/operators/operations.md sh: test/oauth/rolling-key-change.e2e-spec.ts goes through the rounds',
      'docs/operators/operations.md bash: test/operations/drills.e2e-spec.ts does, over clusters of its own',
      'docs/operators/operations.md sql: test/operations/smaller-role.e2e-spec.ts does',
      'docs/operators/operator.md sh: test/repository/config.spec.ts starts with such settings',
      'docs/operators/scaling.md sh: names of servers that are not there',
      'docs/operators/scaling.md ini: test/database/pgbouncer.e2e-spec.ts does, with these settings',
      'docs/operators/sign-in.md sh: there is no such mail server',
      'docs/operators/sign-in.md sh: there is no such login',
      'docs/trust/certification.md sh: there is no suite; test/oauth/openid-basic.e2e-spec.ts registers such clients',
    ]);
  });

  it('in docs/developers/libraries.md each name a program that exists in compat', () => {
    const snippets = SNIPPETS.filter(({ at }) => isOfLibraries(at));
    expect(snippets.length).toBeGreaterThanOrEqual(4);
    for (const { excuse } of snippets) {
      const [, program] = /^npm run compat does, as (\S+)$/.exec(excuse!)!;
      expect([program, existsSync(join('compat', program!))]).toEqual([program, true]);
    }
  });

  it('are in languages that this test can run, except diagrams and plain text on four pages', () => {
    const others = SNIPPETS.filter(
      ({ language, excuse }) =>
        excuse === undefined && ![...Object.keys(PROGRAMS), 'sh', 'js', 'ndjson', 'sql'].includes(language),
    );
    for (const { at, language } of others)
      expect([at, language]).toEqual([
        expect.stringMatching(/^docs\/\w+\/(architecture|growth|scaling|tables)\.md:/),
        expect.stringMatching(/^(mermaid)?$/),
      ]);
  });

  it('are all found', () => {
    const fences = PAGES.flatMap((page) => readFileSync(page, 'utf8').match(/^ *```/gm) ?? []);
    expect(SNIPPETS.length).toBe(fences.length / 2);
    expect(SNIPPETS.length).toBeGreaterThan(30);
  });
});

// Starts many processes, so it runs only with the tests on PostgreSQL, as in .ci/run.
postgres.describe('documented code:', () => {
  let oauth: OauthTest;
  let environment: Record<string, string>;
  /** Placeholders for the reader's own values. */
  let meanings: (readonly [written: string, meant: string])[];
  /** An otherwise empty folder with the files that snippets name: `./export`, `changes.ndjson`, `keys.json`. */
  let folder: string;
  let member: { id: number; username: string };

  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await Receiver.start();
    oauth = await OauthTest.start({ seedDemo: true });
    environment = { ...oauth.api.environment, PUBLIC_URL: oauth.issuer };
    await oauth.client({ id: 'demo' });
    await oauth.client({ id: 'backend', profile: 'oidc', secret_auth_method: 'client_secret_basic' });
  });
  afterAll(async () => {
    await oauth.dataSource.query('DROP DATABASE IF EXISTS restored');
    await oauth.close();
    await receiver.close();
  });

  const prepare = async (snippet: Snippet) => {
    const { dataSource, api } = oauth;
    await dataSource.query(`UPDATE users SET username = 'former-' || id WHERE username = 'ada'`);
    // One snippet disables the app, and one enables it.
    await dataSource.query(
      `UPDATE oauth_clients SET disabled_at = CASE WHEN $1 THEN now() END WHERE id = 'demo'`,
      [snippet.code.includes('clients enable demo')],
    );
    const makesAda = /pua users create --username ada/.test(snippet.code);
    member = await oauth.member(makesAda ? {} : { username: 'ada' });
    const key = await api.key(member.id);
    meanings = [
      ['<key>', key],
      ['4fGh7Kq2LmPz', key.split('_')[2]!],
      ['http://localhost:3000', oauth.issuer],
      ['https://api.example', oauth.issuer],
      ['postgres://localhost/public_user_api', environment.DATABASE_URL!],
      ['postgres://localhost/restored', environment.DATABASE_URL!.replace(/\/[^/]+$/, '/restored')],
    ];
    if (snippet.code.includes('wh_') || snippet.code.includes('msg_')) {
      const { id } = await new WebhooksService(dataSource, api.config).create({
        url: receiver.url,
        types: ['events.updated'],
        actor: 'admin',
      });
      await dataSource.query(
        `INSERT INTO webhook_deliveries (id, endpoint_id, type, user_id, thing_id, changed_at, status, ended_at)
VALUES ('0b5e6c1a9f3d4e2b8c7a6f5e4d3c2b1a', $1, 'events.updated', 0, 1, now(), 'delivered', now())
ON CONFLICT (id) DO UPDATE SET endpoint_id = $1`,
        [id],
      );
      meanings.unshift(['wh_4fGh7Kq2LmPz9xQa', id]); // before the key's placeholder, which is a part of this placeholder
    }
    if (snippet.code.includes('remove-passkey'))
      await dataSource.query(
        `INSERT INTO passkeys (id, user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
OVERRIDING SYSTEM VALUE VALUES (7, $1, $2, $2, $2, 0, false, false, 'Lost')`,
        [member.id, Buffer.from('lost')],
      );
    if (snippet.code.includes('old-app')) await oauth.client({ id: 'old-app' });
    if (/clients (review|approve|reject)/.test(snippet.code))
      meanings.push(['5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c', await oauth.appToReview(member.id)]);
    folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'snippet-'));
    mkdirSync(join(folder, 'export'));
    const record = { id: 5_000_000 + member.id, username: `imported-${member.id}` };
    writeFileSync(join(folder, 'export/users.ndjson'), `${JSON.stringify(record)}\n`);
    writeFileSync(join(folder, 'changes.ndjson'), `${JSON.stringify({ type: 'users', record })}\n`);
    const { publicKey } = await generateKeyPair('ES256');
    writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [await exportJWK(publicKey)] }));
  };
  /** An event that the member attends. */
  const event = async (title: string, fields: Record<string, unknown> = {}) => {
    const id = await oauth.api.platform.event({ title, ...fields });
    await oauth.api.platform.participant(id, member.id);
  };
  const meant = (code: string) =>
    meanings.reduce((done, [written, meaning]) => done.replaceAll(written, meaning), code);

  /** Runs a program in the folder. */
  const run = async ([command, ...args]: readonly string[], env: NodeJS.ProcessEnv) => {
    const child = spawn(command!, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    return { status, stdout, stderr };
  };
  /** `pua` and `npx pua` of this checkout, in any folder; curl fails for an error response. */
  const shell = async (code: string) => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const program = resolve('bin/pua.mjs');
    writeFileSync(join(bin, 'pua'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
    writeFileSync(join(bin, 'npx'), `#!/bin/sh\n[ "$1" = pua ] || exit 99\nshift\nexec pua "$@"\n`);
    for (const name of ['pua', 'npx']) chmodSync(join(bin, name), 0o755);
    writeFileSync(join(folder, '.curlrc'), 'fail\nsilent\nshow-error\n');
    const PATH = `${bin}:${process.env.PATH}`;
    return run(['bash', '-e', '-c', code], { ...PROCESS, ...environment, PATH, CURL_HOME: folder, PASSWORD });
  };
  /** Runs a program that calls the API, by default with the member's key. */
  const runProgram = (command: readonly string[], API_KEY = meant('<key>')) =>
    run(command, { ...process.env, API_URL: oauth.issuer, API_KEY });

  afterEach(async () => {
    // Other code recognizes a browser by these globals of the test of pages.
    for (const name of ['sessionStorage', 'location']) Reflect.deleteProperty(globalThis, name);
    await migrate(oauth.dataSource); // `db rollback` drops the newest table
  });

  it.each(ofLanguage('sh'))('sh: %s', async (_, snippet) => {
    await prepare(snippet);
    const { status, stdout, stderr } = await shell(meant(snippet.code));
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout,
      stderr: expect.not.stringMatching(/error/i),
    });
    if (snippet.code.includes('curl'))
      expect(stdout).toContain(snippet.code.includes('/sync') ? '"data":[],"next":"' : '"username":"ada"');
    if (snippet.code.includes('.env'))
      expect(readFileSync(join(folder, '.env'), 'utf8')).toMatch(/^SECRET_KEY=\S{44}\n$/);
    if (snippet.code.includes('rejects')) expect(existsSync(join(folder, 'rejects.ndjson'))).toBe(true);
  });

  it.each(ofLanguage(...Object.keys(PROGRAMS)))('a program reads all events: %s', async (_, snippet) => {
    await prepare(snippet);
    const titles = Array.from({ length: 101 }, (_, i) => `Event ${i} of ${member.id}`);
    for (const title of titles) await event(title);
    const { file, run: command } = PROGRAMS[snippet.language]!;
    writeFileSync(join(folder, file), snippet.code);
    expect((await runProgram(command, 'a typo')).stderr).toContain('"code":"invalid_credentials"');
    const { stdout, stderr } = await runProgram(command);
    expect(stderr).toBe('');
    if (!snippet.code.includes('place.json')) {
      const printed = stdout.trim().split('\n');
      expect(printed.map((line) => line.replace(/^\S+ \S+ /, '')).toSorted()).toEqual(titles.toSorted());
      return;
    }
    expect(stdout).toMatch(/^101 events, in step with /);
    await event('Later');
    expect((await runProgram(command)).stdout).toMatch(/^102 events/);
    const { events } = JSON.parse(readFileSync(join(folder, 'place.json'), 'utf8')) as {
      events: Record<string, { title: string }>;
    };
    expect(
      Object.values(events)
        .map(({ title }) => title)
        .toSorted(),
    ).toEqual([...titles, 'Later'].toSorted());
  });

  it('examples/go prints an upcoming event', async () => {
    await prepare(SNIPPETS[0]!);
    await event('Far ahead', { starts_at: '2099-01-01T10:00:00Z', timezone: 'Europe/Berlin' });
    expect(await runProgram(['go', 'run', resolve('examples/go/main.go')])).toEqual({
      status: 0,
      stdout: '2099-01-01 11:00:00 Europe/Berlin Far ahead\n',
      stderr: '',
    });
  });

  it.each(ofLanguage('ndjson'))('ndjson, imported unchanged: %s', async (_, snippet) => {
    await prepare(snippet);
    meanings = [
      ['"user_id":7', `"user_id":${await oauth.api.platform.user()}`],
      ['"event_id":5', `"event_id":${await oauth.api.platform.event()}`],
    ];
    const { code, stdout, stderr } = await pua(environment, ['import', '-', '--json'], meant(snippet.code));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ imported: true, rejected: 0 });
  });

  it.each(ofLanguage('sql'))('sql: %s', async (_, { code }) => {
    const roles = [...code.matchAll(/ALTER ROLE (\w+)/g)].map(([, role]) => role!);
    for (const role of new Set(roles)) await oauth.dataSource.query(`CREATE ROLE ${role}`);
    try {
      expect(await oauth.dataSource.query(code)).not.toBeInstanceOf(Error); // a failed statement throws
    } finally {
      for (const role of new Set(roles)) await oauth.dataSource.query(`DROP ROLE ${role}`);
    }
  });

  it.each(ofLanguage('js'))('js, in a page that signs a member in: %s', async (_, snippet) => {
    await prepare(snippet);
    const [redirectUri] = /https:\/\/app\.example\/callback/.exec(snippet.code)!;
    const [signedOutUri] = /https:\/\/app\.example\/signed-out/.exec(snippet.code) ?? [];
    const guide = readFileSync(snippet.at.split(':')[0]!, 'utf8');
    if (signedOutUri) expect(guide).toContain(`--post-logout-redirect-uri ${signedOutUri}\n`);
    const clientId = await oauth.client({
      redirect_uris: [redirectUri],
      ...(signedOutUri && { post_logout_redirect_uris: [signedOutUri] }),
    });
    meanings.push(['my-client-id', clientId]);
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const file = join(folder, 'page.mjs');
    writeFileSync(file, meant(snippet.code));
    const page = (await import(pathToFileURL(file).href)) as {
      signIn(): Promise<void>;
      afterSignIn(): Promise<unknown>;
      signOut(): Promise<void>;
    };
    // Browser APIs that Node lacks.
    const stored = new Map<string, string>();
    const sessionStorage = {
      setItem: (name: string, value: string) => void stored.set(name, value),
      getItem: (name: string) => stored.get(name) ?? null,
    };
    const location = { href: 'https://app.example/', assign: (url: URL) => void (location.href = url.href) };
    Object.assign(globalThis, { sessionStorage, location });
    await page.signIn();
    const browser = oauth.browser();
    const back = await browser.authorize(location.href, { username: 'ada' });
    location.href = back.href;
    expect(await page.afterSignIn()).toMatchObject({ id: member.id, username: 'ada' });
    if (!signedOutUri) return;
    await page.signOut();
    const asked = (await browser.open(new URL(location.href))) as FormPage;
    expect(await browser.submit(asked, { logout: 'yes' })).toEqual(new URL(signedOutUri));
  });
});
