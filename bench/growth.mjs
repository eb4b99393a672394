#!/usr/bin/env node
// What grows with the number of members: `node bench/growth.mjs [members …]` (10,000 to 2,000,000). Each size has a PostgreSQL of its own below
// bench/.data, is filled, asked, and deleted. `--fill` keeps it, for a later run that only asks.
//
// Up to 500,000 members are imported by `pua import`, or as many as `--import` says; beyond, they are copies of those, by growth.sql.
// A member has what generate-import.mjs gives: an event for every ten members, two answers, 3.3 connections (6.7 rows), an achievement. Then a
// second import adds what an import into a full database costs: of a thousand members spread over all, forty answers and forty connections, so
// that each of their first pages is full; of member 1, 100,000 connections; of member 2, answers to 20,000 events.
import './own-node.mjs';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { startPostgres } from '../bin/postgres.mjs';
import { ASKED, keyMaker, POSTGRES } from './data.mjs';
import { request, runGenerator } from './generator.mjs';
import { startOurs } from './servers.mjs';
import { cpuMicroseconds, memoryMegabytes } from './usage.mjs';

const root = join(import.meta.dirname, '..');
const data = join(import.meta.dirname, '.data');
const CONNECTIONS_A_MEMBER = 10 / 3;
const ROWS_OF_ASKED = 40;
const BIG = { connections: 100_000, events: 20_000 };
/** Requests a second of each list, and for how long: every other of the thousand is asked once. */
const RATE = 100;
const SECONDS = 5;
const ROUTES = ['profile', 'events', 'connections', 'achievements'];
const TIMES = 5;

/** Ids of who is asked: spread over all, without the two who have very much. */
const asked = (members) => Array.from({ length: ASKED }, (_, i) => (i + 1) * Math.floor(members / ASKED));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { fill: { type: 'boolean' }, import: { type: 'string', default: '500000' } },
});
const sizes = positionals.map(Number);

await build();
for (const members of sizes.length > 0 ? sizes : [10_000, 100_000, 500_000, 1_000_000, 2_000_000]) {
  const cluster = join(data, `growth-${members}`);
  const facts = join(cluster, 'facts.json');
  if (!existsSync(facts)) writeFileSync(facts, JSON.stringify(await fill(cluster, members)));
  if (values.fill) continue;
  print(await ask(cluster, JSON.parse(readFileSync(facts, 'utf8'))));
  rmSync(cluster, { recursive: true });
}

/** Imports members, copies them, and imports what is asked for; returns what that took, and the keys of those who will be asked. */
async function fill(cluster, members) {
  const imported = Math.min(members, Number(values.import));
  const { first } = await importOnce(imported);
  rmSync(cluster, { recursive: true, force: true });
  execFileSync('cp', ['--archive', baseOf(imported), cluster]); // PostgreSQL's files belong to another user
  const more = join(cluster, 'more');
  mkdirSync(more);
  await writeMore(more, members);
  const postgres = await startPostgres(cluster, POSTGRES);
  const client = new pg.Client(postgres.url);
  try {
    await client.connect();
    await copyMembers(client, imported, members / imported);
    const secretKey = useDatabase(postgres.url);
    const second = await withCpuOf(postgres, () => pua('import', more));
    rmSync(more, { recursive: true });
    const timed = async (statement) => {
      const begun = performance.now();
      const { rows } = await client.query(statement);
      return { seconds: (performance.now() - begun) / 1000, row: rows[0] };
    };
    const vacuum = await timed('VACUUM');
    const analyze = await timed('ANALYZE');
    const { row } = await timed('SELECT pg_database_size(current_database())::float8 AS bytes');
    const keys = await makeKeys(members);
    return { members, imported, secretKey, keys, first, second, vacuum, analyze, bytes: row.bytes };
  } finally {
    await client.end();
    await postgres.stop();
  }
}

function baseOf(imported) {
  return join(data, `growth-imported-${imported}`);
}

/** A database with so many members, made by the first who needs it. @returns what the import took */
async function importOnce(members) {
  const base = baseOf(members);
  const facts = join(base, 'facts.json');
  if (existsSync(facts)) return JSON.parse(readFileSync(facts, 'utf8'));
  rmSync(base, { recursive: true, force: true });
  const files = join(base, 'files');
  mkdirSync(base, { recursive: true });
  await run('bench/generate-import.mjs', files, members, Math.round(members * CONNECTIONS_A_MEMBER));
  const postgres = await startPostgres(base, POSTGRES);
  try {
    useDatabase(postgres.url);
    await pua('db', 'migrate');
    const first = await withCpuOf(postgres, () => pua('import', files));
    rmSync(files, { recursive: true });
    writeFileSync(facts, JSON.stringify({ first }));
    return { first };
  } finally {
    await postgres.stop();
  }
}

/** As if the same members had been imported several times, with other ids. */
async function copyMembers(client, imported, times) {
  if (times === 1) return;
  const sql = readFileSync(join(import.meta.dirname, 'growth.sql'), 'utf8');
  const rows = {
    members: imported,
    events: Math.ceil(imported / 10),
    connections: Math.round(imported * CONNECTIONS_A_MEMBER),
  };
  const { rows: triggers } = await client.query(
    `SELECT tgrelid::regclass AS table, tgname AS name, tgenabled AS state FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'`,
  );
  const alter = (change) =>
    client.query(
      triggers.map((one) => `ALTER TABLE ${one.table} ${change(one)} TRIGGER ${one.name}`).join(';'),
    );
  await alter(() => 'DISABLE');
  await client.query('SET session_replication_role = replica');
  for (let n = 1; n < times; n++)
    await client.query(
      sql.replaceAll(/:(imported_)?(members|events|connections|imported)\b/g, (_, first, name) =>
        String(name === 'imported' ? imported : rows[name] * (first ? 1 : n)),
      ),
    );
  await client.query('RESET session_replication_role');
  await alter(({ state }) => (state === 'A' ? 'ENABLE ALWAYS' : 'ENABLE'));
  await client.query('VACUUM (ANALYZE)');
}

/** Has programs and the code of dist use the database, with a new secret. */
function useDatabase(url) {
  const secretKey = randomBytes(32).toString('base64');
  Object.assign(process.env, {
    NODE_ENV: 'production',
    DATABASE_URL: url,
    SECRET_KEY: secretKey,
    PUBLIC_URL: 'http://localhost:3000',
  });
  return secretKey;
}

function pua(...words) {
  return run('dist/src/cli/main.js', ...words);
}

async function withCpuOf(postgres, work) {
  const before = cpuMicroseconds(postgres.pid);
  const { seconds, memory, cpu } = await work();
  return { seconds, memory, cpu: cpu + (cpuMicroseconds(postgres.pid) - before) / 1e6 };
}

/** Runs a program of this repository. @returns its seconds, CPU seconds and highest memory in MB */
async function run(program, ...words) {
  const begun = performance.now();
  const child = spawn(process.execPath, [join(root, program), ...words.map(String)], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let memory = 0;
  let cpu = 0;
  const sampling = setInterval(() => {
    memory = Math.max(memory, memoryMegabytes(child.pid));
    cpu = Math.max(cpu, cpuMicroseconds(child.pid) / 1e6);
  }, 100);
  const [code] = await once(child, 'close');
  clearInterval(sampling);
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return { seconds: (performance.now() - begun) / 1000, cpu, memory };
}

async function writeMore(folder, members) {
  const events = Math.ceil(members / 10);
  const answers = createWriteStream(join(folder, 'participants.ndjson'));
  const connections = createWriteStream(join(folder, 'connections.ndjson'));
  let id = 4 * members; // higher than any other
  const answer = (user_id, event_id) =>
    answers.write(`${JSON.stringify({ user_id, event_id, role: 'attendee', rsvp_status: 'going' })}\n`);
  const connect = (requester_id, addressee_id) => {
    const at = '2024-05-01 12:00:00';
    const record = {
      id: id++,
      requester_id,
      addressee_id,
      status: 'accepted',
      requested_at: at,
      connected_at: at,
    };
    connections.write(`${JSON.stringify(record)}\n`);
  };
  for (const member of asked(members))
    for (let n = 1; n <= ROWS_OF_ASKED; n++) {
      answer(member, 1 + ((member + 97 * n) % events));
      connect(member, 1 + ((member + 3 * n) % members));
    }
  for (let n = 1; n <= Math.min(BIG.events, events); n++) answer(2, n);
  // Not those at the end, of whom some are connected to member 1 by the lines before.
  for (let n = 2; n <= Math.min(BIG.connections + 1, members - 200); n++) connect(1, n);
  for (const file of [answers, connections]) await once(file.end(), 'close');
}

async function makeKeys(members) {
  const { loadConfig } = await import('../dist/src/config/config.js');
  const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
  const config = loadConfig();
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  try {
    const create = await keyMaker(dataSource, config);
    const keys = [];
    for (const member of asked(members)) keys.push(await create(member));
    return { asked: keys, connections: await create(1), events: await create(2) };
  } finally {
    await dataSource.destroy();
  }
}

/** First pages over a PostgreSQL and a server that have just started: of members of whom nobody has read anything since, then of the same. */
async function ask(cluster, facts) {
  const postgres = await startPostgres(cluster, POSTGRES);
  const server = await startOurs({
    url: postgres.url,
    secretKey: facts.secretKey,
    postgresPid: postgres.pid,
  });
  try {
    const port = new URL(server.url).port;
    const load = async (route, part) => {
      const requests = facts.keys.asked
        .filter((_, i) => i % 2 === part)
        .map((key) => request(`/api/public/${route}`, `X-API-Key: ${key}`));
      const { outcome } = await runGenerator({
        port,
        requests,
        rate: RATE,
        seconds: SECONDS,
        connections: 32,
      });
      const { answered, refused, failed, unanswered } = outcome;
      if (refused.count + failed + unanswered > 0) throw new Error(`${route}: ${JSON.stringify(outcome)}`);
      return answered;
    };
    for (const route of ROUTES) await load(route, 0); // for the compilers of Node and PostgreSQL's plans
    const [first, again] = [{}, {}];
    for (const route of ROUTES) first[route] = await load(route, 1);
    for (const route of ROUTES) again[route] = await load(route, 1);
    const big = {
      connections: await slowest(`${server.url}/api/public/connections`, facts.keys.connections),
      events: await slowest(`${server.url}/api/public/events`, facts.keys.events),
    };
    return { ...facts, firstPages: first, again, big, serverMemory: memoryMegabytes(server.pid) };
  } finally {
    await server.stop();
    await postgres.stop();
  }
}

/** ms of the slowest of some requests, without the first. */
async function slowest(url, key) {
  let longest = 0;
  for (let n = 0; n <= TIMES; n++) {
    const begun = performance.now();
    const response = await fetch(url, { headers: { 'X-API-Key': key } });
    await response.text();
    if (response.status !== 200) throw new Error(`${response.status} to ${url}`);
    if (n > 0) longest = Math.max(longest, performance.now() - begun);
  }
  return longest;
}

function print({ members, first, second, vacuum, analyze, bytes, firstPages, again, big, serverMemory }) {
  const n = (value, digits = 0) => value.toLocaleString('en', { maximumFractionDigits: digits });
  const latencies = (pages) => ROUTES.map((route) => `${n(pages[route].p50, 1)} / ${n(pages[route].p99, 1)}`);
  const cells = [
    members,
    ...[first, second].flatMap(({ seconds, cpu, memory }) => [n(seconds), n(cpu), n(memory)]),
    n(bytes / 1e9, 2),
    n(bytes / members),
    n(vacuum.seconds, 1),
    n(analyze.seconds, 1),
    ...latencies(firstPages),
    ...latencies(again),
    n(big.connections, 1),
    n(big.events, 1),
    n(serverMemory),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
