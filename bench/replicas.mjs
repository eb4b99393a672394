// What reads cost the primary with and without replicas (node bench/replicas.mjs cost), and whether any writer reads older data
// than they wrote while one replica lags and another is killed (node bench/replicas.mjs writes); both without an argument. Over
// streaming replicas of the benchmark's database, on this machine; needs PostgreSQL and wrk.
import './own-node.mjs';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../bin/postgres.mjs';
import { openDataset } from './data.mjs';
import { measure, requireWrk } from './load.mjs';
import { apiKey, COMPARED, requestsOf } from './questions.mjs';
import { startOurs } from './servers.mjs';
import { cpuMicroseconds } from './usage.mjs';

const MEMBERS = 10_000;
const PLAN = { seconds: 3, connections: 16 };
const ROUNDS = 2;
const WRITES = 10_000;
/** Concurrent writers. */
const WRITERS = 20;
const DELAY = '300ms';

requireWrk();
const dataset = await openDataset(MEMBERS);
const folders = ['first', 'second'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
const replicas = [];
try {
  for (const folder of folders)
    replicas.push(await startPostgres(folder, { fsync: 'off', max_connections: 200 }, dataset.url));
  if (process.argv[2] !== 'writes') await measureReads();
  if (process.argv[2] !== 'cost') await readOwnWrites();
} finally {
  for (const replica of replicas) await replica.stop();
  await dataset.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** Measures the primary's CPU time per read, in all its processes, with no, one and two replicas in turns: the lowest of all. */
async function measureReads() {
  const keys = dataset.keys.map(apiKey);
  const lowest = new Map(COMPARED.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 0; count <= replicas.length; count++) {
      const server = await startOurs(dataset, readUrls(replicas.slice(0, count)));
      for (const question of COMPARED) {
        const requests = requestsOf(question, keys);
        await measure(server, question, requests, { ...PLAN, seconds: 1 }); // now every key is cached
        const before = replicas.map(({ pid }) => cpuMicroseconds(pid));
        const {
          databaseCpu,
          serverCpu,
          requests: answered,
        } = await measure(server, question, requests, PLAN);
        const onReplicas = replicas.map(({ pid }, i) => (cpuMicroseconds(pid) - before[i]) / answered);
        const known = lowest.get(question.name);
        if (!(known[count]?.databaseCpu < databaseCpu)) known[count] = { databaseCpu, serverCpu, onReplicas };
      }
      await server.stop();
    }
  }
  for (const [name, turns] of lowest)
    for (const [count, { databaseCpu, serverCpu, onReplicas }] of turns.entries()) {
      const share = (100 * databaseCpu) / turns[0].databaseCpu;
      const [first, second] = onReplicas.map((us) => us.toFixed(0));
      console.log(
        `${name}, ${count} replicas: primary ${databaseCpu.toFixed(1)} µs a request (${share.toFixed(1)} %), replicas ${first} and ${second}, server ${serverCpu.toFixed(0)}`,
      );
    }
}

/** Reads own writes on two servers, while one replica lags and the other is killed half-way. */
async function readOwnWrites() {
  const settings = readUrls(replicas);
  const servers = [await startOurs(dataset, settings), await startOurs(dataset, settings)];
  const late = new pg.Client(replicas[1].url);
  await late.connect();
  await late.query(`ALTER SYSTEM SET recovery_min_apply_delay = '${DELAY}'`);
  await late.query('SELECT pg_reload_conf()');
  await late.end();
  const statuses = {};
  const took = [];
  let [writes, reads, stale] = [0, 0, 0];
  const call = async (server, key, options = {}) => {
    const response = await fetch(`${server.url}/api/public/profile`, {
      ...options,
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    });
    const what = `${options.method ?? 'GET'} ${response.status}`;
    statuses[what] = (statuses[what] ?? 0) + 1;
    return { status: response.status, body: await response.json() };
  };
  await Promise.all(
    dataset.keys.slice(0, WRITERS).map(async (key) => {
      while (writes < WRITES) {
        const bio = `the ${writes++}th write`;
        if (writes === WRITES / 2) process.kill(-replicas[0].pid, 'SIGKILL');
        const begun = performance.now();
        const { status } = await call(servers[writes % 2], key, {
          method: 'PUT',
          body: JSON.stringify({ bio }),
        });
        took.push(performance.now() - begun);
        if (status !== 200) continue; // whether it was written is unknown
        for (const server of servers) {
          const found = await call(server, key);
          if (found.status !== 200) continue;
          reads++;
          if (found.body.bio !== bio) stale++;
        }
      }
    }),
  );
  took.sort((one, other) => one - other);
  console.log(
    `${writes} writes, ${reads} reads of what was written, on both servers: ${stale} stale; statuses ${JSON.stringify(statuses)}; a write took ${took[took.length >> 1].toFixed(0)} ms (median)`,
  );
  for (const server of servers) await server.stop();
}

function readUrls(some) {
  return some.length === 0 ? {} : { DATABASE_READ_URL: some.map(({ url }) => url).join(' ') };
}
