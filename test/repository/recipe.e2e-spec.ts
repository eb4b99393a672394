import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { createEmptyDatabase, postgres, testConfig, type TestDatabase } from '../support/database.js';
import { Receiver } from '../support/receiver.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

const RECIPE = ['docs/contributors/add-a-resource.md', 'CONTRIBUTING.md']
  .map((page) => readFileSync(page, 'utf8'))
  .join('\n');

/** The files that the recipe shows, by path. */
const FILES = Array.from(
  RECIPE.matchAll(/^```(?:ts|sql)\n(?:\/\/|--) (\S+)\n([^]*?)^```$/gm),
  ([, path, code]) => ({ path: path!, code: code! }),
);

/** Tests that check the project's declarations; `npm test` in a copy of this tree would repeat all other tests. */
const CONCERNED = [
  'test/api/(assistants|badges|changes|credentials|errors|entry-point|events|openapi|sync|usage)\\.',
  'test/repository/(code|config|dependencies|docs|docs.commands|long-texts)\\.spec',
  'test/site/(front|reference|samples|snippets)\\.',
  'test/oauth/(assistants|consents|metadata|developer)\\.',
  'test/operations/(personal-data|import)\\.',
  'test/database/(migrations|names|vocabulary)',
];

/** Columns of tables are padded to a width that changes. */
const withoutPadding = (text: string) => text.trim().replaceAll(/ {2,}/g, ' ');

/** The lines that the recipe adds to existing files. */
const LINES = Array.from(
  RECIPE.matchAll(/^\| `(\S+?)` \| `(.+?)` \| `(.+)` \|$/gm),
  ([, path, anchor, line]) => ({
    path: path!,
    anchor: withoutPadding(anchor!.replaceAll('\\|', '|')),
    line: line!.replaceAll('\\|', '|'),
  }),
);

function addLine(root: string, { path, anchor, line }: (typeof LINES)[number]): void {
  const file = join(root, path);
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((text) => withoutPadding(text) === anchor);
  if (at === -1) throw new Error(`${path} has no line ${anchor}`);
  lines.splice(at + 1, 0, line);
  writeFileSync(file, lines.join('\n'));
}

/** Runs a program in the copy. @returns its output @throws with its output if it fails */
async function run(
  root: string,
  program: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<string> {
  const env = { PATH: process.env.PATH!, HOME: process.env.HOME!, ...environment };
  const running = promisify(execFile)(program, args, { cwd: root, env, maxBuffer: Infinity });
  const { stdout } = await running.catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${program} ${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout;
}

interface Page {
  data: Record<string, unknown>[];
  pagination: { total: number; next_cursor: string | null };
}

it.each(LINES)('the recipes add lines below an existing line: $path, $anchor', ({ path, anchor }) => {
  if (FILES.some((file) => file.path === path)) return;
  expect(readFileSync(path, 'utf8').split('\n').map(withoutPadding)).toContain(anchor);
});

// Needs two processes and a build, so it runs only with the tests on PostgreSQL, as in .ci/run.
postgres.describe('a list and a field added by the recipes:', () => {
  let root: string;
  let database: TestDatabase;
  let dataSource: DataSource;
  let server: ServerProcess;
  let member: number;
  let key: string;
  beforeAll(async () => {
    root = mkdtempSync(join(process.env.TEST_FOLDER!, 'recipe-'));
    // Only files of git: no built or installed files.
    const files = (await run('.', 'git', ['ls-files', '-z'])).split('\0');
    for (const path of files.filter((path) => existsSync(path) && path !== ''))
      cpSync(path, join(root, path), { recursive: true });
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
    await run(root, 'git', ['init', '-q']); // tests query git for the project's files
    for (const { path, code } of FILES) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), code);
    }
    for (const line of LINES) addLine(root, line);
    await run(root, process.execPath, ['bin/docs.mjs']); // also builds

    database = await createEmptyDatabase();
    // The server migrates without a time limit: other work may delay the migration, and the test waits for its end.
    server = await ServerProcess.start(
      { ...database.environment, RATE_LIMIT_READ: '0', ASSISTANTS: 'true' },
      root,
    );
    dataSource = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
    const users = await dataSource.query<{ id: number }[]>(
      `INSERT INTO users (username) VALUES ('ada'), ('grace') RETURNING id`,
    );
    member = users[0]!.id;
    await dataSource.query(
      `INSERT INTO badges (user_id, name, description, awarded_at) VALUES ($1, 'Ärmel', 'a "quoted" one', '2026-01-02T00:00:00Z'),
        ($1, 'Zebra', NULL, '2026-01-03T00:00:00Z'), ($1, 'Berg', NULL, '2026-01-01T00:00:00Z'), ($2, 'Theirs', NULL, now())`,
      [member, users[1]!.id],
    );
    key = await keyFor('badges:read');
  });
  afterAll(async () => {
    await server?.kill();
    await dataSource?.destroy();
    await database?.drop();
  });

  /** Runs an admin's commands with the copy's program. */
  const pua = async (args: string[]) => {
    const command = ['bin/pua.mjs', ...args, '--json'];
    return JSON.parse(await run(root, process.execPath, command, database.environment)) as { key: string };
  };
  const keyFor = async (scope: string) =>
    (await pua(['keys', 'create', '--user', 'ada', '--name', 'test', '--scopes', scope])).key;
  const get = async (path: string, credential = key) => {
    const headers = { 'X-API-Key': credential };
    const answer = await fetch(`${server.url}/api/public${path}`, { headers });
    return { status: answer.status, body: (await answer.json()) as Page & { code: string } };
  };
  const names = (page: Page) => page.data.map(({ name }) => name);

  it('they require seven new files, and 21 lines in existing files', () => {
    expect(FILES).toHaveLength(7);
    expect(LINES).toHaveLength(21);
  });

  it('the list returns only the member’s items', async () => {
    const { status, body } = await get('/badges');
    expect(status).toBe(200);
    expect(body.data).toEqual([
      { id: 2, name: 'Zebra', description: null, awarded_at: '2026-01-03 00:00:00' },
      { id: 1, name: 'Ärmel', description: 'a "quoted" one', awarded_at: '2026-01-02 00:00:00' },
      { id: 3, name: 'Berg', description: null, awarded_at: '2026-01-01 00:00:00' },
    ]);
    expect(body.pagination).toMatchObject({ total: 3, next_cursor: null });
  });

  it('the list can be sorted, filtered and paged', async () => {
    expect(names((await get('/badges?sort=name')).body)).toEqual(['Berg', 'Zebra', 'Ärmel']);
    expect(names((await get('/badges?q=%C3%A4RM')).body)).toEqual(['Ärmel']);
    expect(names((await get('/badges?awarded_after=2026-01-02')).body)).toEqual(['Zebra', 'Ärmel']);
    const first = (await get('/badges?limit=2')).body;
    const next = (await get(`/badges?limit=2&cursor=${first.pagination.next_cursor}`)).body;
    expect([...names(first), ...names(next)]).toEqual(['Zebra', 'Ärmel', 'Berg']);
  });

  it('the list rejects an undeclared parameter, an undeclared value, and a credential without the scope', async () => {
    expect(await get('/badges?since=1')).toMatchObject({ status: 400, body: { code: 'unknown_parameter' } });
    expect(await get('/badges?sort=id')).toMatchObject({ status: 400, body: { code: 'invalid_parameter' } });
    const other = await keyFor('profile:read');
    expect(await get('/badges', other)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
    expect(await get('/badges', 'none')).toMatchObject({ status: 401 });
  });

  it('the list is in the OpenAPI document, and in the contract', async () => {
    const { body } = await get('/openapi.json');
    const document = body as unknown as {
      paths: Record<string, { get: { 'x-required-scope': string; parameters: { name: string }[] } }>;
      components: { schemas: Record<string, { properties: object; required: string[] }> };
    };
    const badges = document.paths['/api/public/badges']!.get;
    expect(badges.parameters.map(({ name }) => name)).toEqual([
      'limit',
      'cursor',
      'sort',
      'q',
      'awarded_after',
      'If-None-Match',
    ]);
    expect(document.components.schemas.Badge).toMatchObject({
      properties: {
        id: { type: 'integer', minimum: 1 },
        name: { type: 'string' },
        description: { type: ['string', 'null'] },
        awarded_at: { type: 'string' },
      },
      required: ['id', 'name', 'description', 'awarded_at'],
    });
    expect(badges['x-required-scope']).toBe('badges:read');
    const contract = readFileSync(join(root, 'docs/api-contract.md'), 'utf8');
    expect(contract).toMatch(/^\| GET \/api\/public\/badges +\| badges:read +\|/m);
  });

  it('the list is an assistant’s tool without further code', async () => {
    const ask = async (method: string, params: object = {}) => {
      const answer = await fetch(`${server.url}/api/public/mcp`, {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      return ((await answer.json()) as { result: unknown }).result;
    };
    expect(await ask('tools/list')).toMatchObject({
      tools: [
        {
          name: 'list_badges',
          title: 'List badges',
          description: expect.stringMatching(/^The badges that the member was awarded\./),
          inputSchema: {
            properties: {
              q: { type: 'string' },
              awarded_after: {},
              sort: {},
              limit: {},
              cursor: {},
              fields: { items: { enum: ['id', 'name', 'description', 'awarded_at'] } },
            },
          },
          annotations: { readOnlyHint: true },
        },
      ],
    });
    expect(await ask('tools/call', { name: 'list_badges', arguments: { q: 'ärm' } })).toMatchObject({
      content: [{ text: expect.stringContaining('"name":"Ärmel"') }],
    });
    expect(LINES.filter(({ path }) => path.startsWith('src/mcp'))).toEqual([]);
    expect(FILES.filter(({ path }) => path.startsWith('src/mcp'))).toEqual([]);
  });

  it('sync reports changes of the list, and a webhook gets a message', async () => {
    const sync = async (cursor?: string) => {
      const { body } = await get(`/sync${cursor === undefined ? '' : `?cursor=${cursor}`}`);
      return body as unknown as { data: object[]; next: string; resources: string[] };
    };
    const { next, resources } = await sync();
    expect(resources).toEqual(['badges']);
    const receiver = await Receiver.start();
    const keyId = key.split('_')[2]!;
    const types = 'badges.updated,badges.removed';
    await pua(['webhooks', 'create', '--url', receiver.url, '--types', types, '--key', keyId]);
    const [{ id }] = (await dataSource.query(
      `INSERT INTO badges (user_id, name) VALUES ($1, 'New') RETURNING id`,
      [member],
    )) as [{ id: number }];
    const added = await eventually(async () => ((await sync(next)).data.length > 0 ? sync(next) : undefined));
    expect(added.data).toEqual([{ resource: 'badges', id, kind: 'updated' }]);
    await dataSource.query('DELETE FROM badges WHERE user_id = $1 AND id = $2', [member, id]);
    const gone = await eventually(async () => {
      const { data } = await sync(added.next);
      return data.length > 0 ? data : undefined;
    });
    expect(gone).toEqual([{ resource: 'badges', id, kind: 'removed' }]);
    await receiver.until(() => receiver.received.some(({ message }) => message.type === 'badges.removed'));
    await receiver.close();
  });

  it('docs/trust/personal-data.md lists the table as exported, and as deleted with the member', () => {
    expect(readFileSync(join(root, 'docs/trust/personal-data.md'), 'utf8')).toMatch(
      /^\| `badges` +\| `user_id` +\| deleted +\| `badges` +\|/m,
    );
  });

  it('the Python and Go clients read the list, and the TypeScript client compiles', async () => {
    await run(root, 'node_modules/.bin/tsc', ['-p', 'clients/typescript', '--noEmit']);
    const programs = join(root, 'venv/bin');
    await run(root, 'python3', ['-m', 'venv', join(root, 'venv')]);
    await run(root, join(programs, 'pip'), ['install', '--quiet', '--retries', '10', './clients/python']);
    const program = `import sys
from public_user_api import Client
print([badge["name"] for badge in Client(sys.argv[1], api_key=sys.argv[2]).badges(sort="name")])`;
    const said = await run(root, join(programs, 'python'), ['-c', program, server.url, key]);
    expect(said).toBe("['Berg', 'Zebra', 'Ärmel']\n");
    const folder = join(root, 'go-program');
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'main.go'),
      `package main

import (
	"context"
	"fmt"
	"os"

	"public-user-api.example/publicuserapi"
)

func main() {
	api, _ := publicuserapi.New(os.Args[1], publicuserapi.APIKey(os.Args[2]))
	for badge, err := range api.Badges(publicuserapi.BadgesQuery{Sort: "name"}).All(context.Background()) {
		fmt.Println(badge.Name, err)
	}
}
`,
    );
    const module = 'public-user-api.example/publicuserapi';
    writeFileSync(
      join(folder, 'go.mod'),
      `module badges\n\ngo 1.24\n\nrequire ${module} v0.0.0\n\nreplace ${module} => ../clients/go\n`,
    );
    expect(await run(root, 'gofmt', ['-l', 'clients/go'])).toBe('');
    const go = await run(root, 'go', ['-C', folder, 'run', '.', server.url, key], { GOTOOLCHAIN: 'local' });
    expect(go).toBe('Berg <nil>\nZebra <nil>\nÄrmel <nil>\n');
  });

  it('the field is in imports, lists, details, OpenAPI and documents', async () => {
    const event = {
      id: 7,
      title: 'Ball',
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2030-01-01T20:00:00Z',
      timezone: 'UTC',
      organizer_id: member,
      dress_code: 'White "tie"',
    };
    const participant = { event_id: 7, user_id: member, role: 'organizer' };
    const importing = (record: object) => {
      const folder = mkdtempSync(join(root, 'import-'));
      writeFileSync(join(folder, 'events.ndjson'), JSON.stringify(record));
      writeFileSync(join(folder, 'participants.ndjson'), JSON.stringify(participant));
      return pua(['import', folder]);
    };
    await importing(event);
    const eventKey = await keyFor('events:read');
    const dressCodes = async () => [
      (await get('/events', eventKey)).body.data[0]!.dress_code,
      ((await get('/events/7', eventKey)).body as unknown as typeof event).dress_code,
    ];
    expect(await dressCodes()).toEqual([event.dress_code, event.dress_code]);
    await importing({ ...event, dress_code: null });
    expect(await dressCodes()).toEqual([null, null]);
    await expect(importing({ ...event, dress_code: 'x'.repeat(101) })).rejects.toThrow(
      /dress_code: must have at most 100 characters, but has 101/,
    );
    const { body } = await get('/openapi.json');
    expect(body).toHaveProperty('components.schemas.Event.properties.dress_code', {
      type: ['string', 'null'],
      description: 'What to wear',
    });
    for (const path of ['docs/operators/import.md', 'docs/schema.sql', 'clients/go/schema.go'])
      expect([path, readFileSync(join(root, path), 'utf8')]).toEqual([
        path,
        expect.stringMatching(/dress_?code/i),
      ]);
  });

  it('a wrong field name makes a command fail, and the error names the source line', async () => {
    const path = 'src/resources/events/import.ts';
    const file = join(root, path);
    const right = readFileSync(file, 'utf8');
    const wrong = right.replace(`'dress_code'`, `'dress_cod'`);
    const line = wrong.split('\n').findIndex((text) => text.includes(`'dress_cod'`)) + 1;
    writeFileSync(file, wrong);
    await expect(run(root, process.execPath, ['bin/pua.mjs', 'import', '--help'])).rejects.toThrow(
      `${path}:${line}:`,
    );
    writeFileSync(file, right);
    await run(root, process.execPath, ['bin/pua.mjs', '--version']); // builds again
  });

  it('the list’s items are erased with their member, but not with another member', async () => {
    await dataSource.query(`WITH erased AS (INSERT INTO users (username) VALUES ('alan') RETURNING id)
INSERT INTO badges (user_id, name) SELECT id, 'Erased' FROM erased`);
    await pua(['users', 'erase', 'alan', '--yes']);
    const left = await dataSource.query(`SELECT name FROM badges WHERE name IN ('Erased', 'Theirs')`);
    expect(left).toEqual([{ name: 'Theirs' }]);
  });

  it('the project passes the typecheck and the tests of its declarations', async () => {
    await expect(run(root, 'npm', ['run', '-s', 'typecheck'])).resolves.toBeDefined();
    const environment = { OUTER_WORKERS: '4' }; // those of .ci/run, whose ports these must not take
    await expect(run(root, 'npm', ['test', '--', ...CONCERNED], environment)).resolves.toBeDefined();
  });
});
