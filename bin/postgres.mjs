// Starts a private PostgreSQL: a cluster in a folder, on loopback, which ends with the process that started it.
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chownSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const ROOT = '/usr/lib/postgresql';

/** Eighths of the ports below the system's range for outgoing connections, which could take a port before a server listens on it. */
const EIGHTHS = [1_375, 4_000];
/** Each test process takes its own ports, and any other process those of 0: two processes could find the same port free. */
const { JEST_WORKER_ID = 0, OUTER_WORKERS = 0 } = process.env; // a test that runs tests sets the second
const worker = Number(JEST_WORKER_ID) + Number(OUTER_WORKERS);
const given = new Set();

/** Returns a free port, and never the same port twice. */
export async function freePort() {
  for (;;) {
    const port = 8 * randomInt(...EIGHTHS) + (worker % 8);
    if (given.has(port)) continue;
    const isFree = await new Promise((resolve) => {
      const probe = createServer().once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (!isFree || given.has(port)) continue;
    given.add(port);
    return port;
  }
}

/**
 * Starts the cluster in `folder`, which must exist; if the folder has no cluster, first creates an empty one, or a streaming standby,
 * whose log is the file `log` in the folder.
 *
 * @param {string} folder
 * @param {Record<string, string | number>} settings as in postgresql.conf; without `port`, on a free port
 * @param {string} [primary] URL of the cluster to follow
 * @returns {Promise<{url: string, pid: number, stop: (signal?: NodeJS.Signals) => Promise<void>}>}
 */
export async function startPostgres(folder, settings, primary) {
  const binaries = findBinaries();
  const owner = postgresUser();
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  if (!existsSync(data)) {
    const [program, parameters] = primary
      ? ['pg_basebackup', ['-d', primary, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']]
      : ['initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']];
    const { status, stderr } = spawnSync(join(binaries, program), parameters, {
      ...owner,
      encoding: 'utf8',
      cwd: folder,
    });
    if (status !== 0) fail(stderr);
  }
  const { port = await freePort() } = settings;
  const flags = Object.entries({
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    ...settings,
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = primary ? openSync(join(folder, 'log'), 'a') : 'ignore';
  const server = spawn(join(binaries, 'postgres'), ['-D', data, ...flags], {
    ...owner,
    cwd: folder,
    stdio: ['ignore', 'ignore', log],
    detached: true,
  });
  const ended = new Promise((resolve) => server.once('close', resolve));
  while (
    spawnSync(join(binaries, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port), '-q']).status !== 0
  ) {
    if (server.exitCode !== null) fail('PostgreSQL did not start');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    pid: server.pid,
    stop: async (signal = 'SIGINT') => {
      server.kill(signal); // fast shutdown by default
      await ended;
    },
  };
}

/** Sends a signal to all processes of a PostgreSQL, the main process first: each is its own group. */
export function signalPostgres(postmaster, signal) {
  const send = (pid) => {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error; // it has already ended
    }
  };
  // Children that are stopped outlive the main process, and are then no longer its children.
  const children = childrenOf(postmaster);
  send(postmaster);
  for (const pid of [...children, ...childrenOf(postmaster)]) send(pid);
}

function childrenOf(parent) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        // State and parent follow the last bracket, since the name may contain brackets.
        return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    });
}

/** Finds the binaries of the newest PostgreSQL installed. */
export function findBinaries() {
  const versions = existsSync(ROOT) ? readdirSync(ROOT).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions
    .map((version) => join(ROOT, version, 'bin'))
    .find((path) => existsSync(join(path, 'initdb')));
  return found ?? fail(`PostgreSQL is not installed (no initdb below ${ROOT}): apt-get install postgresql`);
}

/** Returns the user for PostgreSQL, which does not run as root, if the current user is root. */
export function postgresUser() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
