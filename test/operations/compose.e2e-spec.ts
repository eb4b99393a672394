import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findBinaries, postgresUser, startPostgres } from '../../bin/postgres.mjs';
import { SETTINGS } from '../../src/config/settings.js';
import { puaProcess } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { query } from '../support/drills.js';
import { freePort } from '../support/oauth.js';
import { profileAt, ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

const FOLDER = 'deploy/compose';
/** As in the image: all connections require a password, except for replication. */
const HBA = 'local all all trust\nhost all all all scram-sha-256\n';
const PASSWORDS = { pua: "p'a/s s", replicator: "re'pl\\ica" };

postgres.describe('docker-compose.yml of deploy/compose', () => {
  const configured = (file: string, environment: Record<string, string>) =>
    execFileSync('docker-compose', ['--file', file, 'config'], {
      env: { PATH: process.env.PATH, ...environment },
      encoding: 'utf8',
      stdio: 'pipe',
    });
  /** Variables without a default. */
  const SECRETS = { SECRET_KEY: 'a', POSTGRES_PASSWORD: 'b', REPLICATION_PASSWORD: 'c' };

  it('is valid, like the single-server file, and requires REPLICATION_PASSWORD', () => {
    configured('docker-compose.yml', SECRETS);
    const made = configured(join(FOLDER, 'docker-compose.yml'), SECRETS);
    const services = made.split(/^services:\n/m)[1]!.split(/^\S/m)[0]!;
    expect([...services.matchAll(/^ {2}([\w-]+):$/gm)].map(([, service]) => service)).toEqual([
      'api-1',
      'api-2',
      'caddy',
      'migrate',
      'primary',
      'replica',
    ]);
    const { REPLICATION_PASSWORD: _, ...others } = SECRETS;
    expect(() => configured(join(FOLDER, 'docker-compose.yml'), others)).toThrow('REPLICATION_PASSWORD');
  });

  it('has a single-server variant that publishes its port on loopback only', () => {
    const ports = readFileSync('docker-compose.yml', 'utf8').match(/(?<=^ +ports:\n)(?: +- .*\n)+/gm);
    expect(ports).toEqual(["      - '127.0.0.1:3000:3000'\n"]);
  });

  it('publishes only the proxy’s ports, sets only existing settings and PGPASSWORD, and requires every secret', () => {
    const file = readFileSync(join(FOLDER, 'docker-compose.yml'), 'utf8');
    expect(file.match(/^ +ports:$/gm)).toHaveLength(1);
    expect(file).toMatch(/^ {2}caddy:\n(?: {4}.*\n)*? {4}ports:\n/m);
    const [, given] = /^x-api:[^]*?^ {2}environment:\n((?: {4}\S.*\n)+)/m.exec(file)!;
    const names = [...given!.matchAll(/^ {4}(\w+):/gm)].map(([, name]) => name!);
    expect(names.filter((name) => !(name in SETTINGS))).toEqual(['PGPASSWORD']);
    expect(names).toEqual(expect.arrayContaining(['DATABASE_READ_URL', 'TRUST_PROXY']));
    const secrets = [...file.matchAll(/: \$\{(\w+)(:\?)?/g)].filter(([, name]) => name !== 'PUBLIC_URL');
    expect(new Set(secrets.map(([, name]) => name))).toEqual(new Set(Object.keys(SECRETS)));
    expect(secrets.filter(([, , isWanted]) => isWanted === undefined)).toEqual([]);
  });
});

postgres.describe('a replica created by deploy/compose', () => {
  let folder: string;
  let primary: Awaited<ReturnType<typeof startPostgres>>;
  let replica: ChildProcess | undefined;
  let port: number;
  let PGDATA: string;
  const owner = postgresUser();
  const PATH = `${findBinaries()}:${process.env.PATH}`;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-compose-'));
    chmodSync(folder, 0o755); // PostgreSQL runs as another user
    for (const name of ['primary', 'replica']) {
      mkdirSync(join(folder, name));
      if (owner.uid !== undefined) chownSync(join(folder, name), owner.uid, owner.gid!);
    }
    PGDATA = join(folder, 'replica/data');
    port = await freePort();
    primary = await startPostgres(join(folder, 'primary'), { wal_keep_size: '1GB' });
    await ask(primary.url, `CREATE ROLE pua LOGIN SUPERUSER PASSWORD '${PASSWORDS.pua.replace("'", "''")}'`);
    await ask(primary.url, 'CREATE DATABASE pua OWNER pua');
    const data = join(folder, 'primary/data');
    writeFileSync(join(data, 'pg_hba.conf'), HBA);
    await ask(primary.url, 'SELECT pg_reload_conf()');
    execFileSync(resolve(FOLDER, 'primary.sh'), {
      env: {
        PATH,
        PGHOST: '127.0.0.1',
        PGPORT: new URL(primary.url).port,
        PGPASSWORD: PASSWORDS.pua,
        POSTGRES_USER: 'pua',
        POSTGRES_DB: 'pua',
        REPLICATION_PASSWORD: PASSWORDS.replicator,
        PGDATA: data,
      },
      stdio: 'pipe',
    });
    await ask(url(), 'SELECT pg_reload_conf()');
  });
  afterAll(async () => {
    await stop();
    await primary?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** In a new process: the password is in its environment. */
  async function pua<T>(environment: Readonly<Record<string, string>>, args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await puaProcess(environment, [...args, '--json']);
    if (code !== 0) throw new Error(`pua ${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** The server's connection to the database, without the password. */
  const url = (at = new URL(primary.url).port) => `postgres://pua@127.0.0.1:${at}/pua`;
  async function ask(address: string, sql: string): Promise<unknown> {
    const whole = new URL(address);
    whole.password = encodeURIComponent(PASSWORDS.pua);
    return (await query<{ is: unknown }>(whole.href, sql))[0]?.is;
  }

  /** Runs the container's entrypoint and command. Resolves when the database accepts connections. */
  async function start(): Promise<void> {
    const flags = ['-c', `port=${port}`, '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']; // prettier-ignore
    const script = readFileSync(join(FOLDER, 'replica.sh'), 'utf8');
    const child = spawn('sh', ['-c', script, 'replica.sh', 'postgres', '-c', 'hot_standby_feedback=on', ...flags], {
      ...owner,
      cwd: join(folder, 'replica'),
      env: {
        PATH,
        PGDATA,
        PRIMARY: `host=127.0.0.1 port=${new URL(primary.url).port} user=replicator`,
        PGPASSWORD: PASSWORDS.replicator,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    }); // prettier-ignore
    replica = child;
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`the replica did not start: ${errors}`);
      return (await ask(url(String(port)), 'SELECT pg_is_in_recovery() AS is').catch(() => undefined)) as
        boolean | undefined;
    });
  }
  async function stop(): Promise<void> {
    if (!replica || replica.exitCode !== null) return;
    replica.kill('SIGINT'); // the image's STOPSIGNAL
    await once(replica, 'close');
  }

  it('replaces a partial copy, follows the primary, serves reads, and continues after a restart', async () => {
    mkdirSync(`${PGDATA}.copying`);
    writeFileSync(join(`${PGDATA}.copying`, 'PG_VERSION'), '15\n');
    if (owner.uid !== undefined) chownSync(`${PGDATA}.copying`, owner.uid, owner.gid!);
    await start();
    expect(existsSync(`${PGDATA}.copying`)).toBe(false);

    const environment = {
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY!,
      LOG_LEVEL: 'silent',
      DATABASE_URL: url(),
      DATABASE_READ_URL: url(String(port)),
      PGPASSWORD: PASSWORDS.pua,
      METRICS_PORT: String(await freePort()),
      RATE_LIMIT_READ: '0',
    };
    await pua(environment, ['db', 'migrate']);
    await pua(environment, ['users', 'create', '--username', 'ada', '--bio', 'on both']);
    const { key } = await pua<{ key: string }>(environment, ['keys', 'create', '--user', 'ada', '--name', 'test', '--scopes', 'profile:read']); // prettier-ignore
    await using server = await ServerProcess.start(environment);
    const read = async () => (await (await profileAt(server.url, key)).json()) as { bio?: string };
    const readFromReplica = async () => {
      const metrics = await fetch(`http://127.0.0.1:${environment.METRICS_PORT}/metrics`);
      return Number(/^member_reads_total\{place="replica"\} (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
    };
    /** Waits until the replica has served one more read. */
    const readThere = async () => {
      const before = await readFromReplica();
      return eventually(async () => {
        const { bio } = await read();
        return (await readFromReplica()) > before ? bio : undefined;
      });
    };
    expect(await readThere()).toBe('on both');
    await stop();
    expect((await read()).bio).toBe('on both'); // on the primary
    writeFileSync(join(PGDATA, 'as-it-was'), '');
    await start();
    expect(existsSync(join(PGDATA, 'as-it-was'))).toBe(true);
    await pua(environment, ['users', 'update', 'ada', '--bio', 'after the pause']);
    await eventually(async () => ((await readThere()) === 'after the pause' ? true : undefined));
  });
});
