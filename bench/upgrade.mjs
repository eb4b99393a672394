#!/usr/bin/env node
// Upgrades the previous released commit to this tree, under load: `node bench/upgrade.mjs [--members 300000] [--from <commit>]`. The released
// program is installed from its own lock file, creates its own database, and runs as two servers. Meanwhile this tree's migrations run; then one
// server of each version serves, one of the released version starts over the new schema, and all are replaced. Finally, the migrations are
// undone, and the released program serves again. Fails if a request fails, or if a session waits for a lock for more than two seconds.
import './own-node.mjs';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { freePort, startPostgres } from '../bin/postgres.mjs';
import { prepareMembers } from './oauth.mjs';
import { Browser, exchange, refresh, send } from './oauth-client.mjs';
import { hasCommit, installReleased, RELEASED } from './released.mjs';

const MAX_WAIT_MS = 2_000;
/** Minimum number of successes of each kind in each phase. */
const TIMES = 20;
/** Pause after a response, so that the load leaves the migrations room on two cores. */
const THINKING_MS = 20;
const READERS = 3;
/** Without a deadline, unlike the servers, so that every lock wait is visible. */
const PROBES = {
  users: [`SELECT username FROM users WHERE id = 500`, `UPDATE users SET bio = 'probed' WHERE id = 500`],
  events: ['SELECT title FROM events WHERE id = 500', `UPDATE events SET summary = 'probed' WHERE id = 500`],
  participants: ['SELECT FROM participants WHERE user_id = 500'],
  connections: ['SELECT FROM connections WHERE user_id = 500'],
  api_keys: ['SELECT FROM api_keys WHERE user_id = 500'],
  oauth_state: ['SELECT FROM oauth_state LIMIT 1'],
  oauth_sessions: ['SELECT FROM oauth_sessions LIMIT 1'],
  oauth_clients: ['SELECT FROM oauth_clients', `UPDATE oauth_clients SET name = name WHERE id = 'bench'`],
  webhook_deliveries: ['SELECT FROM webhook_deliveries LIMIT 1'],
};
const PROBE_EVERY_MS = 50;

const { values: flags } = parseArgs({
  options: {
    members: { type: 'string', default: '300000' },
    from: { type: 'string', default: RELEASED },
  },
});
const members = Number(flags.members);
const root = join(import.meta.dirname, '..');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function run(command, parameters, cwd, environment = process.env) {
  const { status, stdout, stderr, error } = spawnSync(command, parameters, {
    cwd,
    env: environment,
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  if (error || status !== 0) throw new Error(`${command} ${parameters.join(' ')}: ${error ?? stderr}`);
  return stdout;
}

if (!hasCommit(flags.from)) {
  console.error(
    `NOT RUN: the upgrade from ${flags.from}. This clone does not have that commit: git fetch --unshallow`,
  );
  process.exit(3);
}
await build();
const released = installReleased(flags.from);
const cluster = makeCluster();
const { secretKey, keys } = JSON.parse(readFileSync(join(cluster, 'keys.json'), 'utf8'));
const database = await startPostgres(cluster, { shared_buffers: '2GB', max_wal_size: '4GB' });
const environment = {
  PATH: process.env.PATH,
  NODE_ENV: 'production',
  DATABASE_URL: database.url,
  SECRET_KEY: secretKey,
  PUBLIC_URL: 'http://localhost:3999',
  LOG_LEVEL: 'error',
  SHUTDOWN_DELAY: '1',
  ...Object.fromEntries(['READ', 'WRITE', 'AUTH'].map((kind) => [`RATE_LIMIT_${kind}`, '0'])),
};
Object.assign(process.env, environment);

/** Descriptions of observed faults. */
const faults = [];
/** URLs of the servers that get requests. */
const serving = [];
const all = [];
const phases = [];
/** Whether servers of both versions serve, or have just served. */
let isMixed = false;
let isOver = false;
/** While the migrations are undone, no server runs. */
let isPaused = false;
/** Number of calls and probes in progress; a call may send several requests. */
let underWay = 0;

/** The released version's own database, in a copy that may be changed. */
function makeCluster() {
  const script = `const { openDataset } = await import('./bench/data.mjs'); await (await openDataset(${members})).stop();`;
  run(process.execPath, ['--input-type=module', '--eval', script], released);
  const made = run('sh', ['-c', `ls -d bench/.data/${members}-*`], released).trim();
  const copy = join(root, 'bench/.data/upgrading');
  rmSync(copy, { recursive: true, force: true });
  cpSync(join(released, made, 'keys.json'), join(copy, 'keys.json'), { recursive: true });
  run('cp', ['-a', '--reflink=auto', join(released, made, 'data'), copy], root);
  return copy;
}

const pua = (tree, ...parameters) =>
  JSON.parse(run(process.execPath, ['bin/pua.mjs', ...parameters, '--json'], tree, environment));

/** The server's program; older versions have another path. */
const PROGRAMS = ['bin/server.mjs', 'dist/src/main.js'];

async function start(tree) {
  const port = await freePort();
  const child = spawn(process.execPath, [PROGRAMS.find((path) => existsSync(join(tree, path)))], {
    cwd: tree,
    env: { ...environment, PORT: String(port), HOST: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let log = '';
  child.stdout.on('data', (text) => (log += text));
  const server = {
    name: tree === root ? 'this tree' : 'the release',
    url: `http://127.0.0.1:${port}`,
    child,
  };
  all.push(server);
  while ((await readiness(server)) !== 200) {
    if (child.exitCode !== null) throw new Error(`${server.name} did not start: ${log}`);
    await pause(50);
  }
  serving.push(server);
  return server;
}

const readiness = (server) =>
  send(`${server.url}/readyz`).then(
    ({ status }) => status,
    () => 0,
  );

/** As a load balancer and a service manager do: no new requests, then SIGTERM. */
async function end(server) {
  serving.splice(serving.indexOf(server), 1);
  const ended = once(server.child, 'exit');
  server.child.kill('SIGTERM');
  const [code] = await ended;
  if (code !== 0) faults.push(`${server.name} ended with ${code}`);
}

/** Alternates between the servers, as callers do. */
const any = {
  name: 'a server',
  turn: 0,
  get url() {
    return serving[this.turn++ % serving.length].url;
  },
};

/** Repeats the request until the end. */
async function caller(kind, call) {
  for (; !isOver; await pause(THINKING_MS)) {
    if (isPaused) continue;
    const phase = phases.at(-1);
    const asked = performance.now();
    underWay++;
    try {
      const status = await call();
      if (status !== 200) throw Object.assign(new Error(`status ${status}`), { status });
      phase.done[kind] = (phase.done[kind] ?? 0) + 1;
    } catch (error) {
      if (error.status === 503) phase.refused++;
      else faults.push(`${phase.name}, ${kind}: ${error.message}`);
    }
    underWay--;
    phase.longest = Math.max(phase.longest, performance.now() - asked);
  }
}

async function probe(name, sql) {
  const client = new pg.Client(database.url);
  client.on('error', () => undefined); // PostgreSQL was stopped, and the reason is reported
  await client.connect();
  for (; !isOver; await pause(PROBE_EVERY_MS)) {
    if (isPaused) continue;
    const phase = phases.at(-1);
    const asked = performance.now();
    underWay++;
    await client.query(sql).catch((error) => faults.push(`${name}: ${error.message}`));
    underWay--;
    const ms = performance.now() - asked;
    if (ms > phase.wait.ms) phase.wait = { ms, name };
  }
  await client.end();
}

function beginPhase(name) {
  phases.push({ name, done: {}, refused: 0, conflicts: 0, longest: 0, wait: { ms: 0, name: '' } });
  return phases.at(-1);
}

async function phase(name, work = async () => undefined) {
  const kept = beginPhase(name);
  const begun = performance.now();
  const result = await work();
  kept.worked = (performance.now() - begun) / 1000;
  while (KINDS.some((kind) => (kept.done[kind] ?? 0) < TIMES)) {
    if (faults.length > 20) throw new Error('too many faults');
    await pause(50);
  }
  kept.seconds = (performance.now() - begun) / 1000;
  return result;
}

const KINDS = ['read', 'write', 'refresh', 'sign-in'];
const READS = ['me', 'profile', 'events', 'connections', 'achievements', 'achievements?action=stats', 'sync'];
const key = (i) => ({ 'X-API-Key': keys[i % keys.length] });

try {
  const step = Math.floor(members / 1000);
  const [refresher, comer] = await prepareMembers({ url: database.url, members: [7 * step, 9 * step] });
  const olds = [await start(released), await start(released)];
  beginPhase('begin');

  const callers = [];
  let reads = 0;
  for (let i = 0; i < READERS; i++)
    callers.push(
      caller('read', async () => {
        const path = READS[reads++ % READS.length];
        return (await send(`${any.url}/api/public/${path}`, { headers: key(reads) })).status;
      }),
    );
  // Each write depends on the previous one, so a duplicate or lost write makes the next write fail.
  const profile = async (init) =>
    fetch(`${any.url}/api/public/profile`, { ...init, headers: { ...key(4), ...init?.headers } });
  let etag = (await profile()).headers.get('etag');
  let written = 0;
  callers.push(
    caller('write', async () => {
      const answer = await profile({
        method: 'PUT',
        headers: { 'Content-Type': 'application/json', 'If-Match': etag },
        body: JSON.stringify({ bio: String(written + 1) }),
      });
      const text = await answer.text();
      if (answer.status === 200) {
        written++;
        etag = answer.headers.get('etag');
      } else if (answer.status === 412 && isMixed) {
        // 1.1.0 and 1.2.0 compute a profile's ETag differently: a 412 contains the ETag to retry with.
        phases.at(-1).conflicts++;
        etag = answer.headers.get('etag');
      } else if (answer.status === 503) {
        // The outcome is unknown: the caller reads the profile.
        const seen = await profile();
        etag = seen.headers.get('etag');
        written = Number((await seen.json()).bio);
      } else throw new Error(`status ${answer.status}: ${text}`);
      return answer.status === 412 ? 200 : answer.status;
    }),
  );
  let { refresh_token } = await exchange(any, await new Browser(any).authorize(refresher));
  callers.push(
    caller('refresh', async () => {
      ({ refresh_token } = await refresh(any, refresh_token));
      return 200;
    }),
    caller('sign-in', async () => {
      await exchange(any, await new Browser(any).authorize(comer));
      return 200;
    }),
  );
  for (const [table, statements] of Object.entries(PROBES))
    for (const sql of statements)
      callers.push(probe(`${table}, ${sql.startsWith('UPDATE') ? 'written' : 'read'}`, sql));

  await phase('the release alone');
  const applied = await phase('migrating', async () => {
    const child = spawn(process.execPath, ['bin/pua.mjs', 'db', 'migrate', '--json'], {
      cwd: root,
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const chunks = child.stdout.toArray();
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error('pua db migrate failed');
    return JSON.parse(Buffer.concat(await chunks)).applied;
  });
  await phase('the release, over the new schema');
  for (const server of olds)
    if ((await readiness(server)) !== 200) faults.push('the release is not ready over the new schema');
  isMixed = true;
  await end(olds[0]);
  const again = await start(released);
  const first = await start(root);
  await phase('both versions, the release started anew');
  await end(olds[1]);
  await end(again);
  const second = await start(root);
  await phase('this tree alone');

  isPaused = true;
  while (underWay > 0) await pause(THINKING_MS);
  await end(first);
  await end(second);
  const stood = lastOf();
  const undone = pua(root, 'db', 'rollback', '--to', stood, '--yes').undone;
  await start(released);
  await start(released);
  isPaused = false;
  await phase('the release, after pua db rollback --to');
  isOver = true;
  await Promise.all(callers);
  const [{ bio }] = await query('SELECT bio FROM users WHERE id = $1', [5 * step]);
  if (Number(bio) !== written) faults.push(`${written} writes were acknowledged, and ${bio} is stored`);
  report(applied, undone);
} catch (error) {
  console.error(error, faults);
  process.exitCode = 1;
} finally {
  isOver = true;
  for (const { child } of all) child.kill('SIGKILL');
  await database.stop();
  rmSync(cluster, { recursive: true, force: true });
}

/** The last migration of the released version. */
function lastOf() {
  return run('sh', ['-c', 'ls migrations | tail -n 1'], released)
    .trim()
    .replace(
      /^(\d+)-(.*)\.ts$/,
      (_, time, words) => words.replace(/(?:^|-)(\w)/g, (__, c) => c.toUpperCase()) + time,
    );
}

async function query(sql, parameters) {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query(sql, parameters);
  await client.end();
  return rows;
}

function report(applied, undone) {
  const named = phases.slice(1);
  for (const { name, wait } of named)
    if (wait.ms > MAX_WAIT_MS) faults.push(`${name}: ${wait.name} waited for ${Math.round(wait.ms)} ms`);
  console.log(`${members} members, ${applied.length} migrations applied, ${undone.length} undone\n`);
  console.log('| Phase | Took | Requests | 503 | 412 | Slowest request | Longest wait of a statement |');
  console.log('|---|---|---|---|---|---|---|');
  for (const { name, worked, seconds, done, refused, conflicts, longest, wait } of named)
    console.log(
      `| ${[
        name,
        `${(name === 'migrating' ? worked : seconds).toFixed(1)} s`,
        Object.values(done).reduce((sum, n) => sum + n, 0),
        refused,
        conflicts,
        `${Math.round(longest)} ms`,
        `${Math.round(wait.ms)} ms (${wait.name})`,
      ].join(' | ')} |`,
    );
  console.log(
    faults.length === 0 ? '\nNo request failed.' : `\n${faults.length} faults:\n${faults.join('\n')}`,
  );
  process.exitCode = faults.length === 0 ? 0 : 1;
}
