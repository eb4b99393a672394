// Starts a private PgBouncer on loopback in front of PostgreSQL, with the settings in docs/operators/scaling.md.
import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, postgresUser } from './postgres.mjs';

/** Debian's path. */
const PROGRAM = '/usr/sbin/pgbouncer';

/**
 * @param {string} databaseUrl of a PostgreSQL that needs no password
 * @param {Record<string, string | number>} [settings] override or extend those of docs/operators/scaling.md
 * @returns {Promise<{url: string, pid: number, stop: () => Promise<void>}>} the same database, through PgBouncer
 */
export async function startPgbouncer(databaseUrl, settings = {}) {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: apt-get install pgbouncer`);
  const folder = mkdtempSync(join(tmpdir(), 'pua-pgbouncer-'));
  const owner = postgresUser(); // PgBouncer does not run as root
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const { hostname, port: behind, username } = new URL(databaseUrl);
  const port = await freePort();
  const users = join(folder, 'users.txt');
  writeFileSync(users, `"${username}" ""\n`, { mode: 0o644 });
  const file = join(folder, 'pgbouncer.ini');
  const all = {
    ...documented(),
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    ...settings,
  };
  writeFileSync(
    file,
    `[databases]\n* = host=${hostname} port=${behind}\n[pgbouncer]\n${Object.entries(all)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join('')}`,
    { mode: 0o644 },
  );
  const child = spawn(PROGRAM, [file], { ...owner, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (log = (log + text).slice(-4_000)));
  const ended = new Promise((resolve) => child.once('close', resolve));
  const url = new URL(databaseUrl);
  url.port = String(port);
  while (!(await listens(port))) {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${await ended.then(() => log)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url: url.href,
    pid: child.pid,
    stop: async () => {
      child.kill('SIGTERM'); // immediate: cuts off connected clients
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The settings in docs/operators/scaling.md. */
function documented() {
  const page = readFileSync(join(import.meta.dirname, '../docs/operators/scaling.md'), 'utf8');
  const [, settings] = /## PgBouncer[^]*?```ini\n([^]*?)```/.exec(page);
  return Object.fromEntries(
    settings
      .trim()
      .split('\n')
      .map((line) => line.split(/ = (.*)/)),
  );
}

function listens(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => undefined);
    socket.once('connect', () => socket.destroy());
  });
}
