#!/usr/bin/env node
// Runs a command over a throw-away PostgreSQL: `node bin/with-postgres.mjs npm test`. The command finds it in
// TEST_DATABASE_URL. The cluster listens on loopback only and is gone afterwards.
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = '/usr/lib/postgresql';
const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
const binaries = versions
  .map((version) => join(root, version, 'bin'))
  .find((path) => existsSync(join(path, 'initdb')));
if (!binaries) {
  console.error(
    'PostgreSQL is not installed (no initdb below /usr/lib/postgresql): apt-get install postgresql',
  );
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'pua-postgres-'));
// PostgreSQL refuses to run as root.
const owner = {};
if (process.getuid() === 0) {
  const id = (flag) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);
  Object.assign(owner, { uid: id('-u'), gid: id('-g') });
  chownSync(folder, owner.uid, owner.gid);
}

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});

function run(binary, ...parameters) {
  const { status, stderr } = spawnSync(join(binaries, binary), parameters, {
    ...owner,
    encoding: 'utf8',
    cwd: folder,
  });
  if (status !== 0) {
    console.error(stderr);
    process.exit(1);
  }
}

const data = join(folder, 'data');
run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
const settings = {
  listen_addresses: '127.0.0.1',
  port,
  unix_socket_directories: folder,
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: process.env.PG_SHARED_BUFFERS ?? '256MB',
};
const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
const server = spawn(join(binaries, 'postgres'), ['-D', data, ...flags], {
  ...owner,
  cwd: folder,
  stdio: 'ignore',
  detached: true,
});
const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
while (spawnSync(join(binaries, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port), '-q']).status !== 0) {
  if (server.exitCode !== null) {
    console.error('PostgreSQL did not start');
    process.exit(1);
  }
}

const [command, ...parameters] = process.argv.slice(2);
const child = spawn(command, parameters, {
  stdio: 'inherit',
  env: { ...process.env, TEST_DATABASE_URL: url, TEST_POSTGRES_PID: String(server.pid) },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('close', (code) => {
  server.once('close', () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(code ?? 1);
  });
  server.kill('SIGINT'); // fast shutdown
});
