#!/usr/bin/env node
// What reaches a broker by logical replication, with the statements and properties of docs/streaming.md: `DEBEZIUM_HOME=<folder of Debezium Server>
// node bench/streaming.mjs`, with java, nats-server and nats on the PATH. Members edit their profiles all the time, while the connector is killed
// twice, and the broker once, each in the middle of delivering; then a member is erased. Fails if a change is missing, or in another order than a
// member's own.
import './own-node.mjs';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { freePort, startPostgres } from '../bin/postgres.mjs';
import { keyMaker } from './data.mjs';
import { startOurs } from './servers.mjs';
import { cpuMicroseconds, memoryMegabytes } from './usage.mjs';

const home = process.env.DEBEZIUM_HOME;
if (!home) throw new Error('DEBEZIUM_HOME is not set: the folder of Debezium Server');
const MEMBERS = 20;
/** Messages between one kill and the next. */
const BETWEEN_KILLS = 100;
const page = readFileSync(join(import.meta.dirname, '../docs/streaming.md'), 'utf8');
const [, statements] = /```sql\n(CREATE PUBLICATION.*?)```/s.exec(page);
const [, properties] = /```properties\n(.*?)```/s.exec(page);

const folder = mkdtempSync(join(tmpdir(), 'pua-streaming-'));
const cluster = mkdtempSync(join(tmpdir(), 'pua-streaming-postgres-'));
for (const name of ['nats', 'connector/config', 'connector/data'])
  mkdirSync(join(folder, name), { recursive: true });
await build();
const postgres = await startPostgres(cluster, {
  wal_level: 'logical',
  shared_buffers: '256MB',
});
const { port: postgresPort } = new URL(postgres.url);
const natsPort = await freePort();
Object.assign(process.env, {
  NODE_ENV: 'production',
  DATABASE_URL: postgres.url,
  SECRET_KEY: randomBytes(32).toString('base64'),
  PUBLIC_URL: 'http://localhost',
});
const pua = (...words) =>
  execFileSync(process.execPath, ['bin/pua.mjs', ...words], { cwd: join(import.meta.dirname, '..') });
const nats = (...words) =>
  execFileSync('nats', ['--server', `nats://127.0.0.1:${natsPort}`, ...words], {
    encoding: 'utf8',
    maxBuffer: 1e9,
  });

/** A program that is started again whenever it ends, as systemd does. */
class Part {
  starts = 0;
  log = '';
  #isOver = false;

  constructor(command, words, cwd) {
    Object.assign(this, { command, words, cwd });
  }

  start() {
    this.starts++;
    this.child = spawn(this.command, this.words, { cwd: this.cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.on('data', (text) => (this.log = (this.log + text).slice(-20_000)));
    this.ended = once(this.child, 'close').then(() => {
      if (this.#isOver) return;
      if (this.child.signalCode === null)
        console.error(`${this.command} ended by itself: ${this.#lastError()}`);
      setTimeout(() => this.start(), 1_000);
    });
  }

  #lastError() {
    return this.log.split('\n').findLast((line) => /error|exception/i.test(line));
  }

  kill() {
    this.child?.kill('SIGKILL');
  }

  async end() {
    this.#isOver = true;
    this.kill();
    await this.ended;
  }
}
const broker = new Part(
  'nats-server',
  ['-a', '127.0.0.1', '-p', natsPort, '-js', '-sd', join(folder, 'nats')],
  folder,
);
const runner = readdirSync(home).find((name) => name.endsWith('-runner.jar'));
const path = [join(home, runner), join(home, 'lib/*')].join(':');
const connector = new Part(
  'java',
  [
    '-Xmx256m',
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '--add-opens=java.base/java.lang=ALL-UNNAMED',
    '-cp',
    path,
    'io.debezium.server.Main',
  ],
  join(folder, 'connector'),
);
let server;
const database = new pg.Client(postgres.url);
try {
  pua('db', 'migrate');
  await database.connect();
  await database.query(
    `INSERT INTO users (id, username) SELECT i, 'member_' || i FROM generate_series(1, ${MEMBERS}) i`,
  );
  await database.query(statements);
  // What has to arrive: coalescing and erasure delete rows of the log itself.
  await database.query(`CREATE TABLE recorded (source text, changed_in bigint, sequence bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.recorded VALUES (TG_TABLE_NAME, NEW.changed_in, NEW.sequence); RETURN NULL; END $$;
    CREATE TRIGGER note AFTER INSERT ON changes FOR EACH ROW EXECUTE FUNCTION note();
    CREATE TRIGGER note AFTER INSERT ON platform_changes FOR EACH ROW EXECUTE FUNCTION note()`);
  const own = { hostname: '127.0.0.1', port: postgresPort, dbname: 'postgres' };
  const ours = Object.entries(own).reduce(
    (lines, [name, value]) => lines.replace(new RegExp(`(source.database.${name})=.*`), `$1=${value}`),
    properties.replace('nats.example:4222', `127.0.0.1:${natsPort}`),
  );
  writeFileSync(
    join(folder, 'connector/config/application.properties'),
    `${ours}quarkus.http.port=${await freePort()}\n`,
  );
  broker.start();
  await eventually(() =>
    nats(
      'stream',
      'add',
      'pua',
      '--subjects',
      'pua.>',
      '--storage',
      'file',
      '--max-age',
      '30d',
      '--defaults',
    ),
  );
  connector.start();
  const isStreaming = async () =>
    (await database.query("SELECT FROM pg_replication_slots WHERE slot_name = 'pua_changes' AND active")).rows
      .length > 0;
  await eventually(isStreaming);
  const dataset = { url: postgres.url, secretKey: process.env.SECRET_KEY, postgresPid: postgres.pid };
  server = await startOurs(dataset, { LOG_LEVEL: 'silent' });
  const cpuBefore = cpuMicroseconds(postgres.pid);
  const end = new AbortController();
  const edits = edit(server.url, await makeKeys(), end.signal);
  const heard = listen();
  const messages = () => JSON.parse(nats('stream', 'info', 'pua', '--json')).state.messages;
  for (const part of [connector, connector, broker, undefined]) {
    const before = await eventually(() => messages() + 1);
    await eventually(() => messages() > before + BETWEEN_KILLS);
    console.error(`${messages()} messages: ${part ? `${part.command} is killed` : 'the end'}`);
    part?.kill();
  }
  end.abort();
  const made = await edits;
  await eventually(isStreaming);
  const usage = {
    memory: memoryMegabytes(connector.child.pid),
    postgres: (cpuMicroseconds(postgres.pid) - cpuBefore) / made,
  };
  pua('users', 'erase', 'member_1', '--yes');
  const { rows } = await database.query('SELECT * FROM recorded ORDER BY changed_in, sequence');
  const expected = new Set(rows.map(idOf));
  const arrived = await everything(expected);
  heard.child.kill();
  report({ made, expected, arrived, usage, delays: heard.delays });
} finally {
  await server?.stop();
  for (const part of [connector, broker]) await part.end();
  if (process.exitCode) console.error(connector.log);
  await database.end();
  await postgres.stop();
  for (const one of [folder, cluster]) rmSync(one, { recursive: true });
}

function idOf({ source, __table: table = source, changed_in, sequence }) {
  return `${table} ${changed_in}-${sequence}`;
}

async function makeKeys() {
  const { loadConfig } = await import('../dist/src/config/config.js');
  const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
  const config = loadConfig();
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  const create = await keyMaker(dataSource, config);
  const keys = [];
  for (let member = 1; member <= MEMBERS; member++) keys.push(await create(member));
  await dataSource.destroy();
  return keys;
}

/** Every member counts in their first name, one edit after the other. @returns how many there were */
async function edit(url, keys, end) {
  let made = 0;
  const one = async (key) => {
    for (let n = 1; !end.aborted; await pause(1_000)) {
      const response = await fetch(`${url}/api/public/profile`, {
        method: 'PUT',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ first_name: String(n) }),
      });
      const text = await response.text();
      if (response.status === 503) continue; // the machine is busy: the same once more
      if (!response.ok) throw new Error(`${response.status}: ${text}`);
      n++;
      made++;
    }
  };
  await Promise.all(keys.map(one));
  return made;
}

/** A subscriber: how long after its transaction each message is there, in ms. */
function listen() {
  const child = spawn('nats', ['--server', `nats://127.0.0.1:${natsPort}`, 'sub', 'pua.>', '--raw'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const delays = [];
  child.stdout.on('data', (text) => {
    for (const [, changedAt] of String(text).matchAll(/"changed_at":"([^"]+)"/g))
      delays.push(Date.now() - Date.parse(changedAt));
  });
  return { child, delays };
}

/** Reads the stream from its beginning, until it has everything that is expected. @returns its messages, in order */
async function everything(expected) {
  return eventually(async () => {
    const text = nats('sub', '--stream', 'pua', '--all', '--raw', '--wait', '2s', 'pua.>');
    const rows = [...text.matchAll(/^\{.*\}$/gm)]
      .map(([line]) => JSON.parse(line))
      .filter((row) => row.sequence !== undefined);
    const ids = new Set(rows.map(idOf));
    return [...expected].every((id) => ids.has(id)) && rows;
  });
}

function report({ made, expected, arrived, usage, delays }) {
  const seen = new Set();
  const first = arrived.filter((row) => !seen.has(idOf(row)) && seen.add(idOf(row)));
  const counts = new Map();
  const disorder = first.filter(({ __table: table, user_id, type, fields }) => {
    if (table !== 'platform_changes' || type !== 'profile.updated') return false;
    const n = Number(JSON.parse(fields).first_name);
    const isLate = n < (counts.get(user_id) ?? 0);
    counts.set(user_id, n);
    return isLate;
  });
  const erased = first.some(
    ({ resource, id, user_id, kind }) =>
      resource === 'people' && id === 1 && user_id === null && kind === 'removed',
  );
  delays.sort((a, b) => a - b);
  const percentile = (share) => delays[Math.floor(share * delays.length)];
  console.log(
    `${made} edits, ${expected.size} changes: ${expected.size - first.length} missing, ${arrived.length - first.length} arrived twice, ` +
      `${disorder.length} out of a member's order; erasure ${erased ? 'seen' : 'NOT SEEN'}; ` +
      `p50 ${percentile(0.5)} ms, p95 ${percentile(0.95)} ms, longest ${percentile(0.9999)} ms after the change; ` +
      `connector started ${connector.starts} times, ${Math.round(usage.memory)} MB, PostgreSQL ${Math.round(usage.postgres)} µs an edit`,
  );
  if (disorder.length > 0 || !erased || expected.size !== first.length) process.exitCode = 1;
}

async function eventually(condition) {
  let reason;
  for (let tries = 0; tries < 120; tries++) {
    try {
      const found = await condition();
      if (found) return found;
    } catch (error) {
      reason = error;
    }
    await pause(1_000);
  }
  console.error(connector.log);
  throw new Error(`it did not happen: ${condition}`, { cause: reason });
}
