import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { startPostgres } from '../../bin/postgres.mjs';
import { VERSION } from '../../src/config/version.js';
import { puaProcess } from '../support/command-line.js';
import { createTestDatabase, postgres } from '../support/database.js';
import { openDatabase } from '../support/open-database.js';
import { query } from '../support/drills.js';
import { freePort } from '../support/oauth.js';
import { profileAt, ServerProcess } from '../support/server.js';

/** Runs a program to its end. */
function run(file: string, parameters: string[], environment: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const env = { PATH: process.env.PATH, ...environment };
    execFile(file, parameters, { env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

// Always on the embedded database. Many processes, one after the other, so not in every `npm test`.

postgres.describe('the first start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-start-'));
  let port: number;
  let settings: Record<string, string>;
  let server: ServerProcess;
  /** Output of the first start, without its log. */
  let first: string[];
  let firstErrors: string;
  let key: string;
  beforeAll(async () => {
    port = await freePort();
    settings = { DATA_DIR: folder, PORT: String(port), RATE_LIMIT_WRITE: '0' };
    server = await ServerProcess.start(settings);
    first = server.output.split('\n').filter((text) => !text.startsWith('{'));
    firstErrors = server.errors;
    key = /pua_test_\w+/.exec(first.join('\n'))![0];
  });
  afterAll(async () => {
    await server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  const line = (name: string, printed = first) => printed.find((text) => text.startsWith(`  ${name} `))!;

  it('prints URLs that respond', async () => {
    for (const name of ['Front page', 'API', 'Docs', 'OAuth', 'Account', 'Demo']) {
      const [url] = /http\S+/.exec(line(name))!;
      // The API's root has no data; only the routes below the root have data.
      const { status } = await fetch(name === 'API' ? `${url}/openapi.json` : url);
      expect([name, status]).toEqual([name, 200]);
    }
  });

  it('prints the members and their password, a test key, and a curl line that succeeds unchanged', async () => {
    expect(line('Members')).toMatch(/ ada, grace \(password: \S+\)$/);
    const [pasted] = / *export API_KEY=.*\n *curl .*/.exec(first.join('\n'))!;
    const { stdout } = await run('sh', ['-c', `${pasted} -s`]);
    expect(JSON.parse(stdout)).toMatchObject({ username: 'ada', display_name: 'Ada Lovelace' });
    expect(first.join('\n').split(key)).toHaveLength(2); // once
  });

  it('prints first that it starts, last how to stop the server, and no warning', () => {
    expect(firstErrors).toBe('');
    expect(first[0]).toBe(`Starting on the embedded database in ${folder} …`);
    expect(first.filter((text) => text !== '').at(-1)).toBe('Press Ctrl-C to stop the server.');
    expect(first.filter((text) => text !== '').length).toBe(14);
    expect(first.join('')).not.toContain('\u001b');
  });

  it('uses color on a terminal, logs one line per request, and stops on Ctrl-C', async () => {
    const data = mkdtempSync(join(tmpdir(), 'pua-terminal-'));
    const PORT = String(await freePort());
    const child = spawn('script', ['-qec', `exec '${process.execPath}' bin/server.mjs`, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm-256color', SHELL: '/bin/sh', DATA_DIR: data, PORT },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    let screen = '';
    const shows = (what: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const look = () => void (what.test(screen) && resolve());
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`ended without ${String(what)}: ${screen}`)));
        look();
      });
    child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text));
    try {
      await shows(/Press Ctrl-C to stop the server\./);
      expect(screen).toMatch(/\p{Cc}\[32mPublic User API is ready\.\p{Cc}\[39m/u);
      expect(screen).toMatch(/^ {2}\p{Cc}\[1mDocs +\p{Cc}\[22m http:\/\/localhost:\d+\/docs\r$/mu);
      const headers = { 'X-API-Key': /pua_test_\w+/.exec(screen)![0] };
      await (await fetch(`http://localhost:${PORT}/api/public/events?limit=2`, { headers })).arrayBuffer();
      await shows(/ ada\r\n/);
      expect(screen).toMatch(
        /\d\d:\d\d:\d\d\p{Cc}\[22m GET \/api\/public\/events\?limit=… \p{Cc}\[32m200\p{Cc}\[39m \d+ ms ada\r\n/u,
      );
      child.stdin.write('\u0003');
      expect(await ended).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
      rmSync(data, { recursive: true, force: true });
    }
  });

  describe('serves demo data:', () => {
    const get = async (path: string) => {
      const answer = await fetch(`${server.url}/api/public${path}`, { headers: { 'X-API-Key': key } });
      expect([path, answer.status]).toEqual([path, 200]);
      return (await answer.json()) as { data: Record<string, unknown>[]; pagination: { total: number } };
    };
    const valuesOf = (rows: readonly Record<string, unknown>[], name: string) =>
      new Set(rows.map((row) => row[name]));

    it.each(['/me', '/profile', '/credential'])('%s', async (path) => void (await get(path)));

    it('events of each time, state, role and RSVP, in several time zones', async () => {
      const { data } = await get('/events?limit=100');
      expect(valuesOf(data, 'status')).toEqual(
        new Set(['draft', 'scheduled', 'ongoing', 'completed', 'cancelled']),
      );
      expect(valuesOf(data, 'role')).toEqual(new Set(['organizer', 'co_organizer', 'attendee', 'invitee']));
      expect(valuesOf(data, 'rsvp_status')).toEqual(
        new Set([null, 'going', 'maybe', 'waitlisted', 'pending', 'declined']),
      );
      expect(valuesOf(data, 'visibility').size).toBeGreaterThan(1);
      expect(valuesOf(data, 'timezone').size).toBeGreaterThan(2);
      expect(valuesOf(data, 'is_online').size).toBe(2);
      expect(data.some(({ ends_at }) => ends_at === null)).toBe(true);
      expect(data.some(({ capacity }) => capacity !== null)).toBe(true);
      for (const time of ['upcoming', 'ongoing', 'past'])
        expect((await get(`/events?time_filter=${time}`)).pagination.total).toBeGreaterThan(0);
      expect((await get('/events')).pagination.total).toBeGreaterThan(20); // more than one page
    });

    it('connections of each state and source', async () => {
      const { data } = await get('/connections?limit=100&status=accepted,pending_sent,pending_received');
      expect(valuesOf(data, 'status').size).toBe(3);
      expect(valuesOf(data, 'source').size).toBe(5);
      expect(data.some(({ met_at_event }) => met_at_event !== null)).toBe(true);
    });

    it('achievements of each rarity, hidden and earned, in progress and pinned', async () => {
      const { data } = await get('/achievements?action=all&limit=100');
      expect(valuesOf(data, 'rarity')).toEqual(new Set(['common', 'uncommon', 'rare', 'epic', 'legendary']));
      expect(data.some(({ name }) => name === 'Hidden achievement')).toBe(true);
      expect(data.some(({ is_hidden, earned }) => is_hidden && earned)).toBe(true);
      expect(
        data.some(({ earned, progress }) => !earned && (progress as { current: number } | null)?.current),
      ).toBeTruthy();
      expect((await get('/achievements?action=pinned')).data).toHaveLength(3);
      expect(await get('/achievements?action=stats')).toMatchObject({
        rarest_earned: { id: expect.any(Number) },
      });
    });
  });

  it('rejects a second server on the same port, in one line', async () => {
    const second = await run(process.execPath, ['bin/server.mjs'], settings);
    expect(second).toEqual({
      code: 1,
      stdout: '',
      stderr: `Port ${port} on 127.0.0.1 is in use: stop the program that listens there, or set PORT\n`,
    });
  });

  it('rejects an address of another host, in one line', async () => {
    const elsewhere = { ...settings, HOST: '203.0.113.7', PUBLIC_URL: `http://localhost:${port}` };
    expect(await run(process.execPath, ['bin/server.mjs'], elsewhere)).toEqual({
      code: 1,
      stdout: '',
      stderr: `Port ${port} on 203.0.113.7 cannot be used (EADDRNOTAVAIL): set another HOST or PORT\n`,
    });
  });

  it('rejects a second server in the same folder, in one line', async () => {
    const second = await run(process.execPath, ['bin/server.mjs'], {
      ...settings,
      PORT: String(await freePort()),
    });
    expect(second).toEqual({
      code: 1,
      stdout: `Starting on the embedded database in ${folder} …\n`,
      stderr: `The data folder ${folder} is in use by another process (a server or pua): stop it, or name another DATA_DIR\n`,
    });
  });

  it('loses no acknowledged write when the server is killed repeatedly', async () => {
    const put = async (bio: string) => {
      const answer = await profileAt(server.url, key, bio);
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
      return Number(bio);
    };
    let n = 0;
    for (let round = 0; round < 3; round++) {
      let answered = 0;
      const writing = (async () => {
        for (;;) answered = await put(String(++n));
      })().catch(() => undefined);
      const enough = n + 20;
      while (answered < enough) await new Promise((resolve) => setImmediate(resolve));
      await server.kill('SIGKILL');
      await writing;
      server = await ServerProcess.start(settings);
      const { bio } = (await (await profileAt(server.url, key)).json()) as { bio: string };
      // The last write may be stored without its response.
      expect([answered, answered + 1]).toContain(Number(bio));
    }
  });

  it('prints the same output as later starts, which keep the key valid', async () => {
    await server.kill();
    server = await ServerProcess.start(settings);
    expect(server.output.split('\n').filter((text) => !text.startsWith('{'))).toEqual(first);
    expect((await profileAt(server.url, key)).status).toBe(200);
  });

  it('fails with an explanation if other hosts could reach the demo server', async () => {
    await server.kill();
    const reachable: Record<string, string>[] = [{ PUBLIC_URL: 'https://api.example' }, { HOST: '0.0.0.0' }];
    for (const open of reachable) {
      const refused = await run(process.execPath, ['bin/server.mjs'], { ...settings, ...open });
      expect(refused).toMatchObject({ code: 1, stdout: expect.not.stringContaining('ready') });
      expect(refused.stderr).toMatch(/^The database contains demo members, .*\n$/);
    }
    server = await ServerProcess.start(settings);
  });
});

postgres.it('a server with a public URL warns that NODE_ENV is not production', async () => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'pua-start-'));
  const server = await ServerProcess.start({ DATA_DIR, PUBLIC_URL: 'https://api.example' });
  await server.kill();
  expect(server.errors).toMatch(
    /^PUBLIC_URL is public, but NODE_ENV is not production: .*: set NODE_ENV=production\n$/,
  );
  rmSync(DATA_DIR, { recursive: true });
});

postgres.it(
  'a production start logs one line with version, address, database and workers, and no password',
  async () => {
    const { environment, drop } = await createTestDatabase();
    const url = new URL(environment.DATABASE_URL!);
    const server = await ServerProcess.start({
      ...environment,
      NODE_ENV: 'production',
      PUBLIC_URL: 'http://localhost:3000',
      WORKERS: '2',
      LOG_LEVEL: 'info',
    });
    const started = () => server.output.split('\n').filter((line) => line.includes('"server started"'));
    const [line] = await server.until(() => (started().length > 0 ? started() : undefined));
    await server.kill();
    expect(started()).toHaveLength(1);
    expect(JSON.parse(line!)).toEqual({
      level: 'info',
      time: expect.any(String),
      version: VERSION,
      address: new URL(server.url).host,
      public_url: 'http://localhost:3000',
      database: `${url.host}${url.pathname}`,
      workers: 2,
      msg: 'server started',
    });
    await drop();
  },
);

postgres.describe('a failed start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-start-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const fail = async (environment: Record<string, string>) => {
    const PORT = String(await freePort());
    const { code, stdout, stderr } = await run(process.execPath, ['bin/server.mjs'], {
      DATA_DIR: folder,
      PORT,
      ...environment,
    });
    expect([code, stdout]).toEqual([1, expect.not.stringContaining('ready')]);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    return stderr;
  };

  it.each([
    ['20.20.2', false],
    ['22.12.0', false],
    ['22.13.0', true],
    ['23.11.1', false],
    ['24.10.0', false],
    ['24.11.0', true],
    ['26.0.0', true],
  ])(
    'checks Node %s (supported: %s), as package.json and docs/operators/deploy.md state',
    async (node, accepted) => {
      const pretend = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { node: '${node}' } })`;
      const { code, stderr } = await run(process.execPath, ['--import', pretend, 'bin/require-node.mjs']);
      expect([code, stderr]).toEqual(
        accepted
          ? [0, '']
          : [
              1,
              expect.stringMatching(
                `^Node ${node} is not supported\\. Use 22.13 or a later 22, or 24.11 or later\\..*\n$`,
              ),
            ],
      );
      expect(readFileSync('package.json', 'utf8')).toContain('|| ^22.13.0 || >=24.11.0"');
      expect(readFileSync('docs/operators/deploy.md', 'utf8').replaceAll(/\s+/g, ' ')).toContain(
        'must be 22.13 or a later 22, or 24.11 or later',
      );
    },
  );

  it('names three bad settings, and no value', async () => {
    const stderr = await fail({ LOG_LEVEL: 'hunter2', DATABASE_URL: 'hunter2', WORKERS: 'hunter2' });
    for (const name of ['LOG_LEVEL', 'DATABASE_URL', 'WORKERS']) expect(stderr).toContain(name);
    expect(stderr).not.toContain('hunter2');
  });

  it('reports that the database cannot be reached', async () => {
    const url = `postgres://pua:hunter2@127.0.0.1:${await freePort()}/pua`;
    const stderr = await fail({ DATABASE_URL: url });
    expect(stderr).toMatch(/^The database cannot be reached .*: start it, or correct DATABASE_URL$/m);
    expect(stderr).not.toContain('hunter2');
  });

  it('reports a database that accepts connections and never responds', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const { port } = mute.address() as { port: number };
    mute.on('connection', (socket) => socket.on('error', () => undefined));
    expect(await fail({ DATABASE_URL: `postgres://pua@127.0.0.1:${port}/pua` })).toMatch(
      /^The database cannot be reached/,
    );
    mute.close();
  });

  it('reports that the data folder cannot be used', async () => {
    expect(await fail({ DATA_DIR: 'package.json/data' })).toMatch(/^DATA_DIR .* cannot be used \(ENOTDIR\)/);
  });

  it('reports that the schema is newer', async () => {
    await using database = await openDatabase();
    await database.dataSource.query(
      `INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'FromTheFuture9999999999999')`,
    );
    const DATABASE_URL = database.environment.DATABASE_URL!;
    expect(await fail({ DATABASE_URL })).toMatch(
      /FromTheFuture9999999999999.*: use the version that added them/,
    );
  });
});

postgres.it.each([
  ['a PostgreSQL without the required TLS', () => `${process.env.TEST_DATABASE_URL}?sslmode=require`],
  ['a server that speaks HTTP', (port: number) => `postgres://pua@127.0.0.1:${port}/postgres`],
])('a database URL that points to %s makes pua report an unreachable database', async (_, urlFor) => {
  const http = createHttpServer((_request, response) => void response.end()).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const settings = {
    NODE_ENV: 'test',
    SECRET_KEY: process.env.TEST_SECRET_KEY!,
    DATABASE_URL: urlFor((http.address() as AddressInfo).port),
  };
  try {
    const { code, stderr } = await puaProcess(settings, ['db', 'status']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^The database cannot be reached \(.+\): .+\n$/),
    ]);
  } finally {
    http.close();
  }
});

postgres.describe('a database whose password has special URL characters', () => {
  const PGPASSWORD = String.raw`p/a#s@s%w0 o\:r?d&$'"`;
  const role = `strange_${process.pid}`;

  it('is reached with the password in PGPASSWORD, as in the Compose file', async () => {
    const compose = readFileSync('docker-compose.yml', 'utf8');
    expect(/DATABASE_URL: (.*)/.exec(compose)![1]).toBe('postgres://pua@postgres:5432/pua');
    expect(compose).toMatch(/ PGPASSWORD: \$\{POSTGRES_PASSWORD:/);

    const cluster = await startPostgres(mkdtempSync(join(tmpdir(), 'pua-password-')), { fsync: 'off' });
    await query(cluster.url, `CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD ${pg.escapeLiteral(PGPASSWORD)}`);
    const [hba] = await query<{ file: string }>(cluster.url, "SELECT current_setting('hba_file') AS file");
    writeFileSync(hba!.file, 'host all all 127.0.0.1/32 scram-sha-256\n');
    await query(cluster.url, 'SELECT pg_reload_conf()');
    const settings = {
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY!,
      DATABASE_URL: cluster.url.replace('postgres@', `${role}@`),
    };
    const wrong = await puaProcess({ ...settings, PGPASSWORD: 'wrong' }, ['db', 'status']);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringMatching(/^The database cannot be reached/)]);
    expect(await puaProcess({ ...settings, PGPASSWORD }, ['db', 'migrate'])).toMatchObject({ code: 0 });
    const server = await ServerProcess.start({ ...settings, PGPASSWORD });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect(await server.kill()).toBe(0);
    await cluster.stop();
  });
});
