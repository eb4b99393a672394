#!/usr/bin/env node
// Writing: feeds and an import beside COPY of the same rows into bare tables with the same indexes, which is the limit; and webhooks:
// `npm run build && node bench/writing.mjs`. Over its own PostgreSQL, durable as in production.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '../bin/postgres.mjs';
import { startFresh } from './fresh-server.mjs';
import { cpuMicroseconds } from './usage.mjs';

const POSTGRES = { shared_buffers: '512MB', max_connections: 100, max_wal_size: '4GB' };
const FEED = { lines: 1_000, times: 20, single: 300 };
const IMPORT = { users: 30_000, connections: 100_000 };
/** In the order of their references. */
const IMPORTED = ['users', 'achievements', 'events', 'participants', 'connections', 'user_achievements'];
const WEBHOOKS = { receivers: 4, members: 2_500, participants: 50_000, probes: 20 };
const DEADLINE_MS = 120_000;

/**
 * @typedef {object} Writing
 * @property {number} feedRate lines/s, in feeds of 1,000 new members
 * @property {number} feedCpu µs of server and database a line
 * @property {number} feedTimesCopy the time of such a feed, as a multiple of COPY of its rows
 * @property {number} singleRate feeds of one line a second, one after the other over one connection
 * @property {number} importRate lines/s
 * @property {number} importCpu µs of the database a line
 * @property {number} importTimesCopy
 * @property {number} webhookRate messages/s, to four receivers
 * @property {number} webhookCpu µs of server and database a message
 * @property {number} webhookP50 ms from a write's commit to the receiver
 * @property {number} webhookP99
 * @property {number} fanOut seconds until each of 50,000 participants' messages about one change is written
 * @property {number} besideFanOut the longest in ms that somebody else's message took meanwhile
 */

/** @returns {Promise<Writing>} */
export async function measureWriting() {
  const folder = mkdtempSync(join(tmpdir(), 'pua-writing-'));
  const cluster = await startPostgres(folder, POSTGRES);
  chmodSync(folder, 0o777); // PostgreSQL writes what COPY reads
  Object.assign(process.env, { TEST_DATABASE_URL: cluster.url, TEST_SUPERUSER_URL: cluster.url });
  try {
    const results = {};
    for (const measure of [measureFeeds, measureImport, measureWebhooks]) {
      const fresh = await startFresh();
      try {
        Object.assign(results, await measure(fresh, folder, cluster));
      } finally {
        await fresh.end();
      }
    }
    return results;
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Empty tables like those, with all of their columns as plain values and all of their indexes, and nothing else. */
async function makeBare(database, tables) {
  await database.query('CREATE SCHEMA bare');
  for (const table of tables)
    await database.query(`CREATE TABLE bare.${table} (LIKE public.${table} INCLUDING INDEXES)`);
}

/** @returns ms of a COPY of the rows that a query selects into the bare table */
async function copy(database, folder, table, query) {
  const file = `'${join(folder, table)}.copy'`;
  await database.query(`COPY (${query}) TO ${file} (FORMAT binary)`);
  const began = performance.now();
  await database.query(`COPY bare.${table} FROM ${file} (FORMAT binary)`);
  return performance.now() - began;
}

async function measureFeeds({ url, pid, pua, database }, folder, cluster) {
  const key = pua('keys', 'create', '--platform', '--name', 'feed', '--scopes', 'platform:write');
  const feed = async (lines) => {
    const began = performance.now();
    const response = await fetch(`${url}/api/platform/records`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/x-ndjson' },
      body: lines.map((line) => JSON.stringify(line)).join('\n'),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${answer}`);
    return performance.now() - began;
  };
  const members = (from, count, version = 1) =>
    Array.from({ length: count }, (_, i) => ({
      type: 'users',
      op: 'put',
      version,
      record: { id: from + i, username: `m${from + i}`, bio: `version ${version}` },
    }));
  const { lines, times, single } = FEED;
  for (let n = 0; n < 5; n++) await feed(members(1e6 + n * lines, lines)); // warm
  await makeBare(database, ['users']);
  const cpu = () => cpuMicroseconds(pid) + cpuMicroseconds(cluster.pid);
  let [fed, copied] = [0, 0];
  const before = cpu();
  for (let n = 0; n < times; n++) fed += await feed(members(1 + n * lines, lines));
  const used = cpu() - before;
  for (let n = 0; n < times; n++) {
    const [from, to] = [n * lines, (n + 1) * lines];
    copied += await copy(database, folder, 'users', `SELECT * FROM users WHERE id > ${from} AND id <= ${to}`);
  }
  let singles = 0;
  for (const version of [2, 3]) {
    singles = 0; // the first round warms up
    for (let n = 0; n < single; n++) singles += await feed(members(1 + n, 1, version));
  }
  return {
    feedRate: (1000 * times * lines) / fed,
    feedCpu: used / (times * lines),
    feedTimesCopy: fed / copied,
    singleRate: (1000 * single) / singles,
  };
}

async function measureImport({ pua, database }, folder, cluster) {
  const files = join(folder, 'import');
  const generator = join(import.meta.dirname, 'generate-import.mjs');
  const made = spawn(process.execPath, [generator, files, String(IMPORT.users), String(IMPORT.connections)], {
    stdio: 'inherit',
  });
  await once(made, 'close');
  const [began, cpu] = [performance.now(), cpuMicroseconds(cluster.pid)];
  pua('import', files);
  const [took, used] = [performance.now() - began, cpuMicroseconds(cluster.pid) - cpu];
  await makeBare(database, IMPORTED);
  let [copied, lines] = [0, 0];
  for (const table of IMPORTED) {
    copied += await copy(database, folder, table, `SELECT * FROM ${table}`);
    const { rows } = await database.query(`SELECT count(*)::int AS count FROM ${table}`);
    lines += table === 'connections' ? rows[0].count / 2 : rows[0].count; // a line has two sides
  }
  return { importRate: (1000 * lines) / took, importCpu: used / lines, importTimesCopy: took / copied };
}

async function measureWebhooks({ url, pid, pua, database }, folder, cluster) {
  const { receivers, members, participants, probes } = WEBHOOKS;
  const ended = [];
  try {
    const heard = new Map();
    const mine = createServer(async (request, response) => {
      const { data } = JSON.parse(await text(request));
      heard.get(data.member_id)?.(performance.now());
      response.writeHead(204).end();
    });
    await once(mine.listen(0, '127.0.0.1'), 'listening');
    ended.push(() => mine.close());

    await database.query(
      `INSERT INTO users (id, username) SELECT i, 'member_' || i FROM generate_series(1, ${participants + 1}) i`,
    );
    // One member, whose key's receiver is this process.
    const probe = participants + 1;
    const scopes = 'profile:read,profile:write,events:read';
    const key = pua('keys', 'create', '--user', String(probe), '--name', 'probe', '--scopes', scopes);
    const own = `http://127.0.0.1:${mine.address().port}/`;
    pua('webhooks', 'create', '--url', own, '--types', 'profile.updated', '--key', key.split('_')[2]);
    const delay = async () => {
      const arrived = new Promise((resolve) => heard.set(probe, resolve));
      const response = await fetch(`${url}/api/public/profile`, {
        method: 'PUT',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ bio: String(performance.now()) }),
      });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      await response.arrayBuffer();
      const committed = performance.now();
      return Math.max(0, (await Promise.race([arrived, sleep(DEADLINE_MS, Infinity)])) - committed);
    };
    const delays = [];
    for (let n = 0; n < 100; n++) delays.push(await delay());
    delays.sort((a, b) => a - b);

    // All members of one event have an app; its title changes.
    await database.query(`
      INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
        VALUES (1, 'Before', 'scheduled', 'public', now() + interval '1 year', 'UTC', 1);
      INSERT INTO participants (user_id, event_id, role, rsvp_status) SELECT i, 1, 'attendee', 'going' FROM generate_series(2, ${participants}) i;
      INSERT INTO participants (user_id, event_id, role) VALUES (1, 1, 'organizer') ON CONFLICT DO NOTHING;
      INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ('app', 'App', 'web', '{https://app.example/}', '{events:read}');
      INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
        SELECT 'g' || i, i, 'app', '{"resources": {"api": "events:read"}}', now() + interval '1 day' FROM generate_series(1, ${participants}) i;
      INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
        SELECT sha256(i::text::bytea), 'RefreshToken', 'g' || i, '{}', now() + interval '1 day' FROM generate_series(1, ${participants}) i;
      ANALYZE`);
    await settled(database);
    const canned = [];
    for (let n = 0; n <= receivers; n++) canned.push(await startCanned(ended));
    pua('webhooks', 'create', '--url', canned[0], '--types', 'events.updated', '--client', 'app');
    await sleep(1_000);
    const beside = [];
    const began = performance.now();
    await database.query(`UPDATE events SET title = 'After' WHERE id = 1`);
    const probing = (async () => {
      for (let n = 0; n < probes; n++) beside.push(await delay());
    })();
    const count = `SELECT count(*)::int AS count FROM webhook_deliveries WHERE type = 'events.updated'`;
    await until(async () => (await database.query(count)).rows[0].count >= participants);
    const fanOut = (performance.now() - began) / 1000;
    await probing;
    await database.query(
      `UPDATE webhook_endpoints SET disabled_at = now(), disabled_because = 'admin' WHERE client_id = 'app'`,
    );
    await database.query('TRUNCATE webhook_deliveries');

    // Receivers of the platform itself, which are told of every member.
    for (const address of canned.slice(1))
      pua('webhooks', 'create', '--url', address, '--types', 'profile.updated', '--platform');
    await sleep(1_000);
    const sent = `SELECT count(*)::int AS count, extract(epoch FROM max(ended_at) - min(changed_at)) AS seconds
      FROM webhook_deliveries WHERE status = 'delivered'`;
    const cpu = () => cpuMicroseconds(pid) + cpuMicroseconds(cluster.pid);
    const before = cpu();
    await database.query(`UPDATE users SET bio = 'told' WHERE id <= ${members}`);
    await until(async () => (await database.query(sent)).rows[0].count >= receivers * members);
    const { count: messages, seconds } = (await database.query(sent)).rows[0];
    const at = (share) => delays[Math.floor(share * (delays.length - 1))];
    return {
      webhookRate: messages / seconds,
      webhookCpu: (cpu() - before) / messages,
      webhookP50: at(0.5),
      webhookP99: at(0.99),
      fanOut,
      besideFanOut: Math.max(...beside),
    };
  } finally {
    for (const end of ended) end();
  }
}

/** Everything that was loaded has been looked at by whoever makes messages of changes. */
const settled = (database) =>
  until(async () => {
    const { rows } = await database.query(`SELECT NOT EXISTS (SELECT FROM changes c, change_places p
      WHERE p.name = 'told' AND (c.changed_in, c.sequence) > (p.changed_in, p.sequence)) AS done`);
    return rows[0].done;
  });

async function startCanned(ended) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'canned.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  ended.push(() => child.kill());
  const [port] = await once(child.stdout, 'data');
  return `http://127.0.0.1:${String(port).trim()}/`;
}

async function until(isSo) {
  const deadline = performance.now() + DEADLINE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('what was awaited did not come about');
    await sleep(20);
  }
}

if (process.argv[1] === import.meta.filename) console.log(await measureWriting());
