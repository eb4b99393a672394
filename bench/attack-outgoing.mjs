#!/usr/bin/env node
// What others notice of strangers whose names no server answers, and of receivers that never end their responses:
// `node bin/with-postgres.mjs node bench/attack-outgoing.mjs` (with [seconds], 10). For the names it needs root on Linux: it runs in a
// mount namespace whose /etc/resolv.conf leads to a name server that never answers. The server connects to its database by name, and
// in the end all of its connections are cut amidst the first attack.
import './own-node.mjs';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { startFresh } from './fresh-server.mjs';
import { memoryMegabytes } from './usage.mjs';

const SILENT_NAME_SERVER = '127.53.53.53';
const DOCUMENTS_PER_SECOND = 50;
const MEMBERS = 300;
const RECEIVERS = 40;
const PAUSE_MS = 100;
/** What the server has to be started with. */
export const settings = { CLIENT_ID_METADATA_DOCUMENTS: 'true' };

/**
 * @typedef {Awaited<ReturnType<typeof startFresh>> & {addresses: number}} Target `addresses`: from which strangers come
 * @typedef {object} Attack
 * @property {string} name
 * @property {(target: Target) => Promise<any>} prepare what it needs, made before anything is measured
 * @property {(target: Target, prepared: any, until: AbortSignal) => Promise<void>} attack goes on until the signal
 */

/** @type {Attack[]} */
export const attacks = [
  {
    name: 'documents at dead names',
    prepare: async () => {},
    attack: (target, _, until) => askForDocuments(target, until),
  },
  { name: 'webhooks at dead names', prepare: registerDeadNames, attack: changeMembers },
  { name: 'receivers that drip their responses', prepare: registerDrips, attack: changeMembers },
];

async function askForDocuments(target, until) {
  for (let n = 0; !until.aborted; n++) {
    const query = new URLSearchParams({ client_id: `https://dead-${n}.example/client.json` });
    void ask(target, {
      path: `/oauth/authorize?${query}`,
      localAddress: `127.0.1.${1 + (n % target.addresses)}`,
    });
    await pause(1_000 / DOCUMENTS_PER_SECOND);
  }
}

/** Cuts all connections to the database in the midst of that. @returns after how long a read is answered again, in ms */
async function reconnect(target, [read]) {
  const end = new AbortController();
  const asking = askForDocuments(target, end.signal);
  await pause(3_000);
  await target.database.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  const cut = performance.now();
  await pause(50);
  while ((await ask(target, read)).status !== read.usual) await pause(50);
  const ms = performance.now() - cut;
  end.abort();
  await asking;
  return ms;
}

function registerDeadNames(target) {
  return registered(
    target,
    ['a', 'b', 'c'].map((name) => `https://dead-${name}.example/hooks`),
  );
}

/** Receivers that take every message, and never end their responses. */
async function registerDrips(target) {
  let open = 0;
  const receiver = createServer((_, response) => {
    open++;
    response.on('close', () => open--).writeHead(200);
    const dripping = setInterval(() => response.write('.'), 50);
    response.on('close', () => clearInterval(dripping));
  });
  await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address();
  const urls = Array.from({ length: RECEIVERS }, (_, n) => `http://127.0.0.1:${port}/${n}`);
  return {
    ...(await registered(target, urls)),
    openSockets: () => open,
    end: () => receiver.closeAllConnections(),
  };
}

/** Receivers of the platform, which are told of every change; and members whose changes they are told of. */
async function registered({ pua, database }, urls) {
  for (const url of urls) pua('webhooks', 'create', '--url', url, '--types', 'profile.updated', '--platform');
  const { rows } = await database.query(
    `INSERT INTO users (username) SELECT 'changed_' || gen_random_uuid() FROM generate_series(1, ${MEMBERS}) RETURNING id`,
  );
  return { ids: rows.map(({ id }) => id) };
}

async function changeMembers({ database }, { ids, openSockets = () => 0, end = () => {} }, until) {
  let most = 0;
  while (!until.aborted) {
    await database.query('UPDATE users SET bio = $2 WHERE id = ANY ($1)', [
      ids.splice(0, 2),
      String(Math.random()),
    ]);
    most = Math.max(most, openSockets());
    await pause(300);
  }
  await database.query(
    `UPDATE webhook_deliveries SET status = 'dead', ended_at = now() WHERE status = 'pending'`,
  );
  await database.query(
    `UPDATE webhook_endpoints SET disabled_at = now(), disabled_because = 'admin' WHERE disabled_at IS NULL`,
  );
  if (most > 0) console.log(`responses that were open at once: at most ${most}`);
  end();
}

/** @returns {Promise<{status: number, ms: number}>} status 0 where there was no response */
function ask({ url }, { path, method = 'GET', headers = {}, body, localAddress = '127.0.9.9' }) {
  const started = performance.now();
  return new Promise((resolve) => {
    const done = (status) => resolve({ status, ms: performance.now() - started });
    const sent = request(url + path, { method, headers, localAddress, timeout: 5_000 }, (response) =>
      response.resume().on('end', () => done(response.statusCode)),
    );
    sent.on('timeout', () => sent.destroy()).on('error', () => done(0));
    sent.end(body);
  });
}

/** Requests of every kind by somebody else. */
function honestKinds({ pua }) {
  pua('users', 'create', '--username', 'honest');
  const scopes = 'profile:read,profile:write,events:read';
  const headers = {
    'X-API-Key': pua('keys', 'create', '--user', 'honest', '--name', 'h', '--scopes', scopes),
  };
  const json = { ...headers, 'Content-Type': 'application/json' };
  const client = pua(
    'clients',
    'create',
    '--name',
    'h',
    '--type',
    'native',
    '--redirect-uri',
    'http://127.0.0.1/cb',
  );
  const authorize = new URLSearchParams({
    client_id: client,
    response_type: 'code',
    redirect_uri: 'http://127.0.0.1/cb',
    scope: 'openid',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  });
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const token = { grant_type: 'refresh_token', client_id: client, refresh_token: 'x'.repeat(43) };
  return [
    { path: '/api/public/events', headers, usual: 200 },
    { path: '/api/public/profile', method: 'PUT', headers: json, body: '{"bio":"honest"}', usual: 200 },
    {
      path: '/oauth/token',
      method: 'POST',
      headers: form,
      body: String(new URLSearchParams(token)),
      usual: 400,
    },
    { path: `/oauth/authorize?${authorize}`, headers: { Accept: 'text/html' }, usual: 303 },
    { path: '/account/apps', headers: { Accept: 'text/html' }, usual: 200 },
    { path: '/readyz', usual: 200 },
  ];
}

/** Sends each kind ten times a second until the signal. */
async function watch(target, kinds, until) {
  const asked = [];
  while (!until.aborted) {
    for (const kind of kinds)
      asked.push(
        ask(target, kind).then(({ status, ms }) => ({ is: status === kind.usual, status, ms, kind })),
      );
    await pause(PAUSE_MS);
  }
  const answers = await Promise.all(asked);
  const good = answers.filter(({ is }) => is);
  const times = good.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const bad = Object.entries(
    Object.groupBy(
      answers.filter(({ is }) => !is),
      ({ kind, status }) => `${kind.path.split('?')[0]} ${status}`,
    ),
  ).map(([what, { length }]) => `${length} × ${what}`);
  return {
    good: (100 * good.length) / answers.length,
    p99: times[Math.floor(times.length * 0.99)] ?? Infinity,
    bad,
  };
}

async function measure(target, kinds, { name, prepare, attack }, seconds) {
  const prepared = await prepare(target);
  await watch(target, kinds, AbortSignal.timeout(3_000));
  const usual = memoryMegabytes(target.pid);
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, memoryMegabytes(target.pid))), 200);
  const until = AbortSignal.timeout(1_000 * seconds);
  const [beside] = await Promise.all([watch(target, kinds, until), attack(target, prepared, until)]);
  clearInterval(looking);
  await pause(2_000);
  const after = await watch(target, kinds, AbortSignal.timeout(2_000));
  const told = ({ good, p99, bad }) =>
    `${good.toFixed(1)} % good, p99 ${p99.toFixed(0)} ms ${bad.join(', ')}`;
  console.log(
    `${name}, ${target.addresses} addresses: ${told(beside)}; memory ${(most / usual).toFixed(2)} x; then ${told(after)}`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.env.NAMES_ARE_DEAD === undefined) {
    const file = join(tmpdir(), `resolv-${process.pid}.conf`);
    writeFileSync(file, `nameserver ${SILENT_NAME_SERVER}\n`);
    const command = `mount --bind ${file} /etc/resolv.conf && exec "$0" "$@"`;
    const { status } = spawnSync(
      'unshare',
      ['--mount', 'sh', '-c', command, process.execPath, ...process.argv.slice(1)],
      {
        env: { ...process.env, NAMES_ARE_DEAD: '1' },
        stdio: 'inherit',
      },
    );
    process.exit(status ?? 1);
  }
  createSocket('udp4').bind(53, SILENT_NAME_SERVER);
  Object.assign(process.env, settings, { RATE_LIMIT_AUTH: '1000000' }); // honest callers have one address
  process.env.TEST_DATABASE_URL = process.env.TEST_DATABASE_URL.replace('127.0.0.1', 'localhost');
  const target = { ...(await startFresh(3_996)), addresses: 1 };
  try {
    const kinds = honestKinds(target);
    for (const attack of attacks)
      for (const addresses of [1, 20])
        await measure({ ...target, addresses }, kinds, attack, Number(process.argv[2] ?? 10));
    const ms = await reconnect({ ...target, addresses: 20 }, kinds);
    console.log(
      `connections to the database cut meanwhile: a read is answered again after ${ms.toFixed(0)} ms`,
    );
  } finally {
    await target.end();
  }
  process.exit();
}
