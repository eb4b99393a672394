import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { embeddedAddress } from '../../src/database/embedded/address.js';
import { embeddedLock, takeEmbeddedLock } from '../../src/database/embedded/lock.js';
import { openEmbedded, type EmbeddedDatabase } from '../../src/database/embedded/embedded.js';
import { postgres, thorough } from '../support/database.js';
import { foreignFolder } from '../support/folders.js';

/** One session serves every connection: data of one connection must never reach another. */
describe('the embedded database, with many connections', () => {
  let host: string;
  let database: EmbeddedDatabase;
  beforeAll(async () => {
    database = (await openEmbedded(mkdtempSync(join(process.env.TEST_FOLDER!, 'embedded-'))))!;
    ({ host } = database);
  });
  afterAll(() => database.close());

  const connect = async () => {
    const client = new pg.Client({ host, port: 5432, user: 'postgres', database: 'postgres' });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const connected = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = await connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  };

  thorough.it('keeps queries separate even if their messages arrive in many pieces', async () => {
    const ask = (name: string, size: number) =>
      connected(async (client) => {
        for (let i = 0; i < 15; i++) {
          const sql = `SELECT $1::text AS ${name}, length($2::text) AS length`;
          const { rows } = await client.query(sql, [`${name}${i}`, 'x'.repeat(size)]);
          expect(rows).toEqual([{ [name]: `${name}${i}`, length: size }]);
        }
      });
    await Promise.all([ask('one', 2_000_000), ask('two', 1_500_000), ask('three', 10), ask('four', 70_000)]);
  });

  it('keeps transactions separate while other connections open and close', async () => {
    await connected((client) => client.query('CREATE TABLE counter (who text PRIMARY KEY, n int)'));
    let ended = false;
    const passersBy = [1, 2].map(async () => {
      while (!ended) await connected((client) => client.query('SELECT $1::int', [1]));
    });
    const workers = ['a', 'b', 'c', 'd'].map((who) =>
      connected(async (client) => {
        await client.query('INSERT INTO counter VALUES ($1, 0)', [who]);
        for (let i = 1; i <= 60; i++) {
          await client.query('BEGIN');
          await client.query('UPDATE counter SET n = n + 1 WHERE who = $1', [who]);
          await client.query(i % 3 === 0 ? 'ROLLBACK' : 'COMMIT');
        }
      }),
    );
    await Promise.all(workers);
    ended = true;
    await Promise.all(passersBy);
    const { rows } = await connected((client) => client.query('SELECT n FROM counter'));
    expect(rows).toEqual(Array.from({ length: 4 }, () => ({ n: 40 })));
  });

  it('responds correctly to repeated statements of new connections after the table changed', async () => {
    await connected((client) => client.query('CREATE TABLE thing (id int PRIMARY KEY, name text)'));
    const read = (id: number) =>
      connected(
        async (client) => (await client.query<object>('SELECT * FROM thing WHERE id = $1', [id])).rows,
      );
    for (let i = 0; i < 12; i++) expect(await read(1)).toEqual([]);
    await connected((client) =>
      client.query("ALTER TABLE thing ADD size int; INSERT INTO thing VALUES (1, 'one', 7)"),
    );
    for (let i = 0; i < 12; i++) expect(await read(1)).toEqual([{ id: 1, name: 'one', size: 7 }]);
    const long = `SELECT $1::int AS ${'x'.repeat(70)}`; // PostgreSQL truncates the name, with a notice
    for (let n = 0; n < 3; n++) {
      expect((await connected((client) => client.query<object>(long, [n]))).rows).toEqual([
        { ['x'.repeat(63)]: n },
      ]);
      await connected((client) => client.query(`SELECT $1::int + ${n}`, [1])); // gets exactly one response
    }
    await expect(
      connected((client) => client.query('SELECT * FROM nothing WHERE id = $1', [1])),
    ).rejects.toThrow('nothing');
    expect(await read(2)).toEqual([]);
  });

  it('rolls back only the transaction of a broken connection', async () => {
    await connected((client) => client.query('CREATE TABLE note (text text)'));
    const cut = await connect();
    await cut.query('BEGIN');
    await cut.query("INSERT INTO note VALUES ('lost')");
    const waiting = connected((client) => client.query("INSERT INTO note VALUES ('kept')"));
    (cut as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    await waiting;
    const { rows } = await connected((client) => client.query('SELECT text FROM note'));
    expect(rows).toEqual([{ text: 'kept' }]);
  });
});

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe('the files of the embedded database', () => {
  const before = process.umask();
  afterEach(() => void process.umask(before));
  const inFolder = () => mkdtempSync(join(process.env.TEST_FOLDER!, 'files-'));
  const refusal = (dataDir: string) =>
    openEmbedded(dataDir).then(
      () => 'opened',
      (error: Error) => error.message,
    );

  it('are private to their owner, even in a folder that others can read, and with umask 000', async () => {
    const folder = inFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'embedded'), { mode: 0o777 });
    process.umask(0o000);
    const database = await openEmbedded(folder);
    expect(readdirSync(folder).sort()).toEqual(['.s.PGSQL.5432', 'embedded', 'embedded.holder']);
    for (const name of readdirSync(folder))
      expect([name, modeOf(join(folder, name)) & 0o077]).toEqual([name, 0]);
    await database!.close();
  });

  it('cannot be opened in a folder that other users own or can write to', async () => {
    const folder = inFolder();
    chmodSync(folder, 0o775);
    expect(await refusal(folder)).toMatch(/ is writable by others: run `chmod 700 /);
    chmodSync(folder, 0o700);
    expect(await refusal(foreignFolder(folder))).toMatch(/ belongs to another user/);
  });

  it('have their socket in a private folder of the temporary directory if DATA_DIR is too long for a socket path', async () => {
    const dataDir = join(inFolder(), 'long'.repeat(30)); // too long for the path of a socket
    const { host } = embeddedAddress(dataDir);
    expect(host.startsWith(tmpdir())).toBe(true);
    mkdirSync(host);
    chmodSync(host, 0o755);
    expect(await refusal(dataDir)).toMatch(/ is accessible to others/);
    rmdirSync(host);
    symlinkSync(inFolder(), host);
    expect(await refusal(dataDir)).toMatch(/ is a link: remove it/);
    rmSync(host);
    mkdirSync(host, { mode: 0o700 });
    if (foreignFolder(host) === host) expect(await refusal(dataDir)).toMatch(/ belongs to another user/);
    rmdirSync(host);
    const database = await openEmbedded(dataDir);
    expect(modeOf(host)).toBe(0o700);
    await database!.close();
    rmSync(host, { recursive: true });
  });
});

// Starts processes: not for every `npm test`.
postgres.describe('the lock of the embedded database', () => {
  it('is held by one process at a time, even if many processes compete and holders are killed', async () => {
    const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'lock-'));
    let killed = 0;
    const contend = async (): Promise<void> => {
      const child = spawn(process.execPath, ['test/support/lock-contender.mjs', folder], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      const [said, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'close')]);
      if (signal === 'SIGKILL') killed++;
      expect(said).toBe('');
      expect(code === 0 || signal === 'SIGKILL').toBe(true);
    };
    for (let round = 1; round <= 4; round++) await Promise.all(Array.from({ length: 8 }, contend));
    expect(killed).toBeGreaterThan(0);
    // A later process gets the lock at once.
    const unlock = await takeEmbeddedLock(folder, () => Promise.resolve(false));
    expect(readdirSync(embeddedLock(folder))).toHaveLength(1);
    unlock!();
    expect(readdirSync(embeddedLock(folder))).toEqual([]);
  });
});

// Uses only the embedded database. `npm test` skips these slow tests: each test creates databases.
postgres.describe('the initial snapshot of embedded databases', () => {
  /** Copies the built program, without the files that the program creates at run time. */
  const program = () => {
    const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'program-'));
    for (const part of ['src', 'migrations', 'schema'])
      cpSync(join('dist', part), join(folder, 'dist', part), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    return { folder, snapshots: join(folder, 'dist/.snapshots') };
  };
  /** Runs statements of such a program in a new process. */
  const start = (folder: string, statements: string) =>
    spawn(process.execPath, ['--liftoff-only', '-e', statements], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  const MAKE = `const { readySnapshot } = await import('./dist/src/database/embedded/snapshot.js');
    console.log(await readySnapshot());`;

  it('is shared by competing processes, even after a process was killed while creating the snapshot', async () => {
    const { folder, snapshots } = program();
    const killed = start(folder, MAKE);
    const ended = once(killed, 'close');
    while (!existsSync(snapshots) || readdirSync(snapshots).length === 0) await setImmediate();
    killed.kill('SIGKILL');
    await ended;
    const [draft] = readdirSync(snapshots) as [string];
    const yesterday = new Date(Date.now() - 86_400_000);
    utimesSync(join(snapshots, draft), yesterday, yesterday);
    mkdirSync(join(snapshots, 'of-a-younger-version'));

    const made = await Promise.all([1, 2].map(() => text(start(folder, MAKE).stdout)));
    expect(made[0]).toBe(made[1]);
    const name = basename(made[0]!.trim());
    expect(readdirSync(snapshots).sort()).toEqual([name, 'of-a-younger-version'].sort());
    expect(modeOf(snapshots)).toBe(0o700);
    const again = readFileSync(join(snapshots, name, 'PG_VERSION'));
    expect(await text(start(folder, MAKE).stdout)).toBe(made[0]);
    expect(readFileSync(join(snapshots, name, 'PG_VERSION'))).toEqual(again);
  });

  it('is skipped if the program cannot create the folder of snapshots', async () => {
    const { folder, snapshots } = program();
    writeFileSync(snapshots, ''); // the program cannot create a folder there
    const dataDir = join(folder, 'data');
    const opened = start(
      folder,
      `const { openEmbedded } = await import('./dist/src/database/embedded/embedded.js');
      const database = await openEmbedded(${JSON.stringify(dataDir)});
      await database.close();
      console.log('closed');`,
    );
    expect(await text(opened.stdout)).toBe('closed\n');
    expect(existsSync(join(dataDir, 'embedded/PG_VERSION'))).toBe(true);
  });
});
