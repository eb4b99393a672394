import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from '../test/support/api.js';
import { installPackages, makePython, mavenJars } from '../test/support/packages.js';

/*
 * Clients that third-party generators create from a running server's OpenAPI document. Each sends the same twenty requests. The
 * decoded responses, written as JSON again, must equal what the server sent. Packages are installed by version and hash.
 */

const HERE = join(import.meta.dirname, 'generated');
/** Maximum number of types in the generated Go client; inline schemas would cause 538. */
const MAX_GO_TYPES = 120;

interface Call {
  readonly operation: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body?: object;
  readonly status: number;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
}

/** Fields that depend on the time, and the request id. */
const MOVING = ['request_id', 'next', 'rarity_computed_at'];
const still = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (MOVING.includes(key) ? typeof inner : inner)));

describe('clients generated from the OpenAPI document', () => {
  let root: string;
  let api: TestApi;
  let key: string;
  let calls: readonly Call[];
  let operations: ReadonlyMap<string, Operation & { readonly path: string; readonly method: string }>;
  let jars: string;
  /** The server's responses, read without a client. */
  let expected: unknown;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'pua-generated-'));
    api = await TestApi.start();
    const document = await (await fetch(`${api.url}/api/public/openapi.json`)).text();
    writeFileSync(join(root, 'openapi.json'), document);
    const { paths } = JSON.parse(document) as { paths: Record<string, Record<string, Operation>> };
    operations = new Map(
      Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item).map(
          ([method, operation]) => [operation.operationId, { ...operation, path, method }] as const,
        ),
      ),
    );
    const user = await api.platform.user({ bio: null });
    key = await api.key(user);
    calls = await twentyCalls(user);
    expect(calls).toHaveLength(20);
    const sent = calls.map(({ operation, parameters, body }) => ({
      operation,
      parameters,
      body,
      tag: operations.get(operation)!.tags[0],
    }));
    writeFileSync(join(root, 'calls.json'), JSON.stringify(sent));
    const answers = [];
    for (const call of calls) answers.push(await answerTo(call));
    expect(answers.map(({ status }) => status)).toEqual(calls.map(({ status }) => status));
    expected = still(answers);
  });
  afterAll(async () => {
    await api.close();
    rmSync(root, { recursive: true, force: true });
  });

  async function twentyCalls(user: number): Promise<Call[]> {
    const { platform } = api;
    const [first] = [
      await platform.event({ organizer_id: user }),
      await platform.event({ title: 'Zoë’s 🎲' }),
    ];
    await platform.participant(first, user, { role: 'organizer', rsvp_status: null });
    await platform.participant(first + 1, user);
    await platform.connection(user, await platform.user());
    await platform.connection(user, await platform.user(), { status: 'pending_sent', connected_at: null });
    const earned = await platform.achievement({ target: 3 });
    await platform.progress(user, earned, { earned_at: '2024-01-01T10:00:00Z', pin_position: 1 });
    await platform.achievement({ is_hidden: true });
    await platform.fold();
    const page = await api.get('/events?limit=1&sort=starts_at', key);
    const changes = await api.get('/sync?resources=events,profile', key);
    const call = (operation: string, parameters = {}, status = 200, body?: object): Call => ({
      operation,
      parameters,
      status,
      ...(body ? { body } : {}),
    });
    return [
      call('updateProfile', {}, 200, { first_name: 'Zoë', bio: '“Engines”\n\u2028 & 🎲' }),
      call('updateProfile', {}, 422, { bio: 'x'.repeat(501) }),
      call('getMe'),
      call('getProfile'),
      call('listEvents'),
      call('listEvents', {
        limit: 1,
        sort: '-starts_at',
        status: ['scheduled', 'completed'],
        is_online: false,
        starts_after: '2020-01-31',
      }),
      call('listEvents', { limit: 1, sort: 'starts_at', cursor: page.body.pagination.next_cursor }),
      call('listEvents', { cursor: 'none' }, 400),
      call('getEvent', { id: first }),
      call('getEvent', { id: 9_000_000_000_000_000 }, 404),
      call('listConnections'),
      call('listConnections', { status: ['accepted', 'pending_sent'], sort: 'display_name' }),
      call('listEarnedAchievements'),
      call('listAllAchievements', { earned: true, sort: 'name', rarity: ['unrated', 'common'] }),
      call('getAchievementStatistics'),
      call('listPinnedAchievements'),
      call('getAchievement', { id: earned }),
      call('listChanges', { cursor: changes.body.next, resources: ['events', 'profile'] }),
      call('getCredential'),
      call('getProblem', { code: 'event_not_found' }),
    ];
  }

  async function answerTo({ operation, parameters, body }: Call) {
    const { path, method } = operations.get(operation)!;
    const inQuery = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters))
      if (!path.includes(`{${name}}`)) for (const one of [value].flat()) inQuery.append(name, String(one));
    const filled = path.replace(/\{(\w+)\}/, (_, name: string) => String(parameters[name]));
    const response = await fetch(`${api.url}${filled}?${inQuery}`, {
      method: method.toUpperCase(),
      headers: { 'X-API-Key': key, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: response.status, body: (await response.json()) as unknown };
  }

  /** Runs a program. @returns its output and its warnings */
  async function run(file: string, parameters: readonly string[], cwd: string): Promise<string> {
    const { PATH, HOME } = process.env;
    const { stdout, stderr } = await promisify(execFile)(file, parameters, {
      cwd,
      maxBuffer: 10_000_000,
      env: {
        PATH,
        HOME,
        LANG: 'C.UTF-8',
        NO_PROXY: '*',
        BASE_URL: api.url,
        API_KEY: key,
        CALLS: join(root, 'calls.json'),
      },
    });
    return stdout + stderr;
  }

  /** Copies the programs of a language to a new folder. */
  function folderOf(language: string): string {
    const folder = join(root, language);
    cpSync(join(HERE, language), folder, { recursive: true });
    return folder;
  }

  const expectSame = (printed: string) => expect(still(JSON.parse(printed))).toEqual(expected);

  it('openapi-typescript generates types with which openapi-fetch calls the API', async () => {
    const folder = folderOf('node');
    await installPackages(folder);
    const bin = (name: string) => join(folder, 'node_modules/.bin', name);
    await run(bin('openapi-typescript'), ['../openapi.json', '-o', 'schema.ts'], folder);
    const strict = ['--strict', '--noEmit', '--allowJs', '--checkJs', '--allowImportingTsExtensions'];
    await run(bin('tsc'), [...strict, '--module', 'nodenext', '--target', 'es2024', 'calls.mjs'], folder);
    expectSame(await run(process.execPath, ['calls.mjs'], folder));
  });

  it('openapi-python-client generates a client that compiles and calls the API', async () => {
    const folder = folderOf('python');
    const programs = await makePython(folder, join(folder, 'requirements.txt'));
    const options = ['--path', '../openapi.json', '--meta', 'none', '--output-path', 'client'];
    const said = await run(
      join(programs, 'openapi-python-client'),
      ['generate', ...options, '--config', 'config.yml'],
      folder,
    );
    expect(said.trim()).toBe('Generating client');
    expectSame(await run(join(programs, 'python'), ['calls.py'], folder));
  });

  it(`oapi-codegen generates a Go client with at most ${MAX_GO_TYPES} types`, async () => {
    const folder = folderOf('go');
    const file = join(folder, 'api/api.go');
    mkdirSync(join(folder, 'api'));
    const options = ['-generate', 'types,client', '-package', 'api', '-o', file, '../openapi.json'];
    await run('go', ['tool', 'oapi-codegen', ...options], folder);
    expect(readFileSync(file, 'utf8').match(/^type /gm)!.length).toBeLessThanOrEqual(MAX_GO_TYPES);
    await run('go', ['build', '-mod=readonly', '-o', 'program', './calls'], folder);
    expectSame(await run(join(folder, 'program'), [], folder));
  });

  describe('openapi-generator', () => {
    beforeAll(async () => void (jars = await mavenJars(folderOf('kotlin'))));

    /** Warnings without a consequence: docs/developers/generated-clients.md. */
    const OF_ANY = /OpenAPI 3\.1 support is still in beta|Failed to get the schema name: null/;
    async function generate(language: string, ...options: readonly string[]) {
      const jar = join(jars, 'openapi-generator-cli-7.25.0.jar');
      const from = ['-jar', jar, 'generate', '-i', 'openapi.json', '-g', language, '-o', `made-${language}`];
      const said = await run('java', [...from, ...options], root);
      expect(said.split('\n').filter((line) => /WARN|ERROR/.test(line) && !OF_ANY.test(line))).toEqual([]);
      return join(root, `made-${language}`);
    }

    it('generates a Kotlin client that compiles', async () => {
      // `name`, a sort order, cannot be an enum constant in Kotlin, but NAME can.
      const made = await generate('kotlin', '--additional-properties=enumPropertyNaming=UPPERCASE');
      const folder = join(root, 'kotlin');
      const compiler = 'org.jetbrains.kotlin.cli.jvm.K2JVMCompiler';
      const options = ['-no-stdlib', '-no-reflect', '-nowarn', '-jvm-target', '17', '-d', 'classes'];
      const from = [join(made, 'src/main/kotlin'), 'Calls.kt'];
      // Excludes the generator, which contains other versions of the clients' dependencies.
      const classPath = readdirSync(jars)
        .filter((name) => !name.startsWith('openapi-generator'))
        .map((name) => join(jars, name))
        .join(':');
      await run('java', ['-cp', classPath, compiler, ...options, '-cp', classPath, ...from], folder);
      expectSame(await run('java', ['-cp', `classes:${classPath}`, 'CallsKt'], folder));
    });

    // This host has no Swift compiler.
    it('generates a Swift client without a warning, and with a type for each schema', async () => {
      const models = join(await generate('swift6'), 'Sources/OpenAPIClient/Models');
      for (const name of ['EventPage', 'EventStatus', 'Problem', 'AchievementStatistics'])
        expect([name, existsSync(join(models, `${name}.swift`))]).toEqual([name, true]);
    });
  });
});
