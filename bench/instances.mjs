// Instances over a new, filled database of bin/with-postgres.mjs's temporary PostgreSQL: for programs that watch several
// instances, kill them, or disconnect them from their database.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../bin/postgres.mjs';
import { CLIENT_ID, REDIRECT_URI } from './oauth-client.mjs';

const root = join(import.meta.dirname, '..');

/** Every member's password. */
export const PASSWORD = 'correct horse battery staple';

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
/** Spawns a process that is killed when this process exits. */
export function spawnBound(...parameters) {
  const child = spawn(...parameters);
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

/** Creates a private database. */
export async function freshDatabase() {
  const name = `bench_${randomBytes(4).toString('hex')}`;
  const admin = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const secretKey = randomBytes(32).toString('base64');
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL), { pathname: `/${name}` }).href;
  return {
    name,
    url,
    /** The environment of an instance: its own ports, the same secrets for all. */
    async environment(settings = {}) {
      const port = String(await freePort());
      return {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        NODE_ENV: 'test', // webhook endpoints may be on this host
        SECRET_KEY: secretKey,
        DATABASE_URL: url,
        HOST: '127.0.0.1',
        PORT: port,
        PUBLIC_URL: `http://localhost:${port}`,
        LOG_LEVEL: 'silent',
        ...settings,
      };
    },
    async end() {
      const superuser = new pg.Client({ connectionString: process.env.TEST_SUPERUSER_URL });
      await superuser.connect();
      await superuser.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await superuser.end();
    },
  };
}

/** A server process. */
export class Instance {
  /**
   * @param {string} name
   * @param {Record<string, string>} environment
   * @param {import('node:stream').Writable} [log] destination of its log
   */
  constructor(name, environment, log) {
    Object.assign(this, { name, environment, log });
    this.url = `http://127.0.0.1:${environment.PORT}`;
  }

  get pid() {
    return this.child.pid;
  }

  /** @returns {Promise<this>} when the server is ready */
  async start() {
    this.#spawn();
    for (let starts = 1; !(await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok; await pause(20)) {
      if (this.child.exitCode === null) continue;
      // Restarted as systemd would: on a busy host the server may not get a connection in time.
      if (starts++ === 10) throw new Error(`${this.name} did not start`);
      this.#spawn();
    }
    return this;
  }

  #spawn() {
    this.child = spawnBound(process.execPath, ['bin/server.mjs'], {
      cwd: root,
      env: this.environment,
      stdio: ['ignore', this.log ? 'pipe' : 'ignore', 'inherit'],
    });
    if (this.log) this.child.stdout.pipe(this.log, { end: false });
  }

  /** @returns {Promise<number | null>} the exit code, once the process has ended */
  async kill(signal = 'SIGKILL') {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode; // the process has already ended
    const ended = once(child, 'close');
    child.kill(signal);
    return (await ended)[0];
  }
}

/**
 * Loads the server's own code to fill the database, which is migrated when the promise resolves.
 *
 * @param {Record<string, string>} environment
 */
export async function openServices(environment) {
  // Found by class names: the folders differ between versions.
  const paths = readdirSync(join(root, 'dist/src'), { recursive: true });
  const load = (name) =>
    import(
      join(
        root,
        'dist/src',
        paths.find((path) => basename(path) === `${name}.js`),
      )
    );
  const { loadConfig } = await load('config');
  const { createDataSource } = await load('data-source');
  const { hashPassword } = await load('passwords');
  const { migrate } = await load('migrate');
  const { ALL_PLATFORM_SCOPES, ALL_SCOPES } = await load('scopes');
  const { ApiKeysService } = await load('api-keys.service');
  const config = loadConfig(environment);
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  await migrate(dataSource);
  const keys = new ApiKeysService(dataSource, config);
  return {
    dataSource,
    config,
    /** Adds members 1 to `count`, `member_1` …, and twice as many events: each member organizes two and attends more. */
    async addMembers(count) {
      await dataSource.query(
        `INSERT INTO users (id, username, first_name, password_hash)
         SELECT i, 'member_' || i, 'Member ' || i, $1 FROM generate_series(1, $2::int) i`,
        [await hashPassword(PASSWORD), count],
      );
      await dataSource.query(
        `INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
         SELECT i, 'Event ' || i, 'scheduled', 'public', timestamptz '2031-01-01Z' + i * interval '1 hour', 'Europe/Vienna',
           1 + i % $1::int FROM generate_series(1, 2 * $1::int) i`,
        [count],
      );
      await dataSource.query(
        `INSERT INTO participants (user_id, event_id, role, rsvp_status)
         SELECT 1 + i % $1::int, 1 + (i * 7 + i / $1::int) % (2 * $1::int), 'attendee', 'going' FROM generate_series(1, 10 * $1::int) i
         ON CONFLICT DO NOTHING`,
        [count],
      );
    },
    /** Registers the app of oauth-client.mjs. */
    async addClient() {
      await dataSource.query(
        `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ($1, 'Bench', 'web', $2, $3)`,
        [CLIENT_ID, [REDIRECT_URI], ALL_SCOPES],
      );
    },
    /** Creates a key with all scopes, for a member, or for the platform if `userId` is null. */
    async makeKey(userId) {
      const scopes = userId === null ? ALL_PLATFORM_SCOPES : ALL_SCOPES;
      const wanted = { userId, name: 'bench', scopes, environment: 'live', cidrs: [], actor: 'admin' };
      return (await keys.create({ ...wanted, noExpiryReason: 'bench' })).key;
    },
    /** @returns {Promise<{method: string, path: string}[]>} every route of the application */
    async routes() {
      const { closeApp, createApp } = await load('app');
      const { RouteTable } = await load('route-table');
      const app = await createApp(config);
      const all = app.get(RouteTable).routes.map(({ method, path }) => ({ method, path }));
      await closeApp(app);
      return all;
    },
  };
}
