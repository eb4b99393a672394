// Starts a server without limits over a new database of bin/with-postgres.mjs's throw-away PostgreSQL, for one benchmark.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import pg from 'pg';

/** @returns a function that runs `pua` on it, its address, a connection to its database, and what ends it all */
export async function startFresh(port = 3999) {
  const server = process.env.TEST_DATABASE_URL;
  const name = `bench_${randomBytes(4).toString('hex')}`;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const databaseUrl = server.replace(/\/postgres$/, `/${name}`);
  const environment = {
    ...process.env,
    NODE_ENV: 'test',
    SECRET_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: 'silent',
    PORT: String(port),
    HOST: '127.0.0.1',
    RATE_LIMIT_READ: '0',
    RATE_LIMIT_WRITE: '0',
    RATE_LIMIT_PLATFORM: '0',
  };
  const pua = (...args) => {
    const { stdout, stderr, status } = spawnSync(process.execPath, ['bin/pua.mjs', ...args], {
      env: environment,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  pua('db', 'migrate');
  const child = spawn(process.execPath, ['dist/src/main.js'], { env: environment, stdio: 'inherit' });
  process.on('exit', () => child.kill('SIGKILL'));
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const ready = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (ready) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const end = async () => {
    child.kill();
    await once(child, 'close');
    await database.end();
    await admin.end();
    // FORCE ends remaining sessions, autovacuum included, which an owner may not.
    const superuser = new pg.Client({ connectionString: process.env.TEST_SUPERUSER_URL });
    await superuser.connect();
    await superuser.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await superuser.end();
  };
  return { url: `http://127.0.0.1:${port}`, pid: child.pid, pua, database, end };
}
