#!/usr/bin/env node
// Kills the leader of a PostgreSQL cluster repeatedly under load: `node bench/failover.mjs [--kills 10]`, and freezes the leader's Patroni as
// often: when it goes on, another leads. Three nodes under Patroni with etcd and HAProxy (deploy/patroni unchanged; docs/failover.md says how
// they are installed), two servers, members who write, read, sign in and refresh, and a platform that feeds. Fails if anything acknowledged is lost or done twice, or if any response
// but 503 is given while there is no primary; times are only reported. docs/failover.md has the figures.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { freePort } from '../bin/postgres.mjs';
import { prepareMembers } from './oauth.mjs';
import { Browser, exchange, refresh } from './oauth-client.mjs';
import { PatroniCluster } from './patroni-cluster.mjs';

const { values: flags } = parseArgs({ options: { kills: { type: 'string', default: '10' } } });
const KILLS = Number(flags.kills);
/** Requests of every kind to be acknowledged before and after each kill, so that some are under way. */
const BETWEEN = 5;
const WRITERS = 3;
const SIGNING_IN = 2;
const REFRESHING = 3;
const AGAIN_MS = 50;
/** Pause after a response, so that the load leaves the cluster room on two cores. */
const THINKING_MS = 20;
/** Not the promise, but when the run is given up. */
const PATIENCE_MS = 120_000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const root = join(import.meta.dirname, '..');

const servers = [];
/** Descriptions of everything that must not happen. */
const faults = [];
/** Numbers of responses by kind of request and status. */
const statuses = new Map();
const acknowledged = { write: 0, feed: 0, 'sign-in': 0, refresh: 0, read: 0 };
/** Refused but done: after a 503, the outcome of a write is unknown. */
const doneAfterAll = { write: 0, feed: 0, 'sign-in': 0, refresh: 0 };
let ending = false;
/** When the leader was killed; undefined while all nodes are there, or one is frozen. */
let killedAt;
/** For each kill, ms until each kind was first acknowledged. */
const back = [];
/** For each kill, the longest time without an answered read, in ms. */
const gaps = [];

/** Either server in turn: a browser and an app do not know which. */
const anyServer = {
  name: 'a server',
  turn: 0,
  get url() {
    return servers[this.turn++ % servers.length].url;
  },
};

function count(kind, status) {
  const counts = statuses.get(kind) ?? new Map();
  statuses.set(kind, counts.set(status, (counts.get(status) ?? 0) + 1));
}

/** @param {number} askedAt requests from before the kill do not count as answered after it */
function acknowledge(kind, askedAt) {
  acknowledged[kind]++;
  if (askedAt > killedAt) back.at(-1)[kind] ??= performance.now() - killedAt;
}

await build();
const folder = mkdtempSync(join(tmpdir(), 'pua-failover-'));
chmodSync(folder, 0o755); // PostgreSQL runs as another user
const cluster = new PatroniCluster(folder);
process.on('SIGTERM', () => process.exit(1)); // from a time limit: child processes end with this one
process.on('exit', () => {
  for (const { child } of servers) child.kill('SIGKILL');
});
const began = performance.now();
try {
  await cluster.start();
  say('the cluster is there');
  await drill();
} catch (error) {
  faults.push(error.stack);
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.log')))
    console.error(`\n== ${name}\n${readFileSync(join(folder, name), 'utf8').slice(-2_000)}`);
} finally {
  ending = true;
  for (const { child } of servers) child.kill('SIGKILL');
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (faults.length > 0) {
  console.error(`\nFailed:\n${[...new Set(faults)].slice(0, 20).join('\n')}`);
  process.exit(1);
}
say('nothing that was acknowledged is lost or was done twice');
process.exit(0);

async function drill() {
  const settings = {
    PATH: process.env.PATH,
    NODE_ENV: 'test',
    SECRET_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: cluster.url,
    LOG_LEVEL: 'error',
    HOST: '127.0.0.1',
    RATE_LIMIT_READ: '0',
    RATE_LIMIT_WRITE: '0',
    RATE_LIMIT_AUTH: '0',
    RATE_LIMIT_PLATFORM: '0',
  };
  await pua(settings, 'db', 'migrate');
  const keys = await Promise.all(
    Array.from({ length: WRITERS }, async (_, i) => {
      await pua(settings, 'users', 'create', '--username', `writer-${i}`);
      return pua(
        settings,
        'keys',
        'create',
        '--user',
        `writer-${i}`,
        '--name',
        'drill',
        '--scopes',
        'profile:read,profile:write',
      );
    }),
  );
  const feedKey = await pua(
    settings,
    'keys',
    'create',
    '--platform',
    '--name',
    'drill',
    '--scopes',
    'platform:write',
  );
  const writers = await query(
    "SELECT id, version FROM users WHERE username LIKE 'writer-%' ORDER BY username",
  );
  const signing = await query(
    `INSERT INTO users (username) SELECT 'member_' || n FROM generate_series(1, ${SIGNING_IN + REFRESHING}) n RETURNING id, username`,
  );
  await prepareMembers({ url: cluster.url, members: signing.map(({ id }) => id) });
  const members = signing.map(({ username }) => ({ username, password: 'correct horse battery staple' }));

  for (let i = 0; i < 2; i++) servers.push(await startServer(settings, await freePort()));
  say('two servers answer');

  const written = writers.map(({ id, version }, i) => ({ id, first: Number(version), key: keys[i], n: 0 }));
  const fed = [];
  const codes = [];
  const chains = members.slice(SIGNING_IN).map((member) => ({ member, used: [], token: undefined }));
  const loads = [
    ...written.map((writer) => writing(writer)),
    feeding(feedKey, Number(writers[0].id), fed),
    ...members.slice(0, SIGNING_IN).map((member) => signingIn(member, codes)),
    ...chains.map((chain) => refreshing(chain)),
    ...servers.map((server) => reading(server, keys[0])),
  ];
  const over = Promise.all(loads);
  over.catch((error) => {
    faults.push(error.stack);
    ending = true;
  });

  await everybody('before anything breaks');
  for (let kill = 1; kill <= KILLS; kill++) {
    const frozen = await cluster.freezeLeader();
    await cluster.untilAnotherLeads(frozen);
    await everybody(`while Patroni is frozen on ${frozen}`);
    cluster.thaw(frozen);
    await cluster.untilWhole();
    await everybody(`after Patroni was frozen on ${frozen}`);
    say(`freeze ${kill} of ${KILLS}, ${frozen}: its Patroni goes on, and follows`);

    const node = await cluster.killLeader();
    killedAt = performance.now();
    back.push({});
    gaps.push(0);
    await everybody(`after kill ${kill}`);
    cluster.startNode(node);
    await cluster.untilWhole();
    killedAt = undefined;
    say(
      `kill ${kill} of ${KILLS}, ${node}: ${Object.entries(back.at(-1))
        .map(([kind, ms]) => `${kind} ${seconds(ms)}`)
        .join(', ')}; reads without a response for ${seconds(gaps.at(-1))} at most`,
    );
    await everybody('while all is well');
  }
  ending = true;
  await over;

  await compare(written, fed, codes, chains);
  const doctor = await pua(settings, 'doctor').catch((error) => error.message);
  if (/^fail/m.test(doctor)) faults.push(doctor);
  print();
}

/** Waits until {@link BETWEEN} more of every kind were acknowledged. */
async function everybody(when) {
  const before = { ...acknowledged };
  for (const latest = performance.now() + PATIENCE_MS; ; await pause(20)) {
    const missing = Object.keys(before).filter((kind) => acknowledged[kind] < before[kind] + BETWEEN);
    if (missing.length === 0) return;
    if (ending) throw new Error(`the load ended ${when}`);
    if (performance.now() > latest) throw new Error(`no ${missing.join(', ')} ${when}`);
  }
}

/** Writes a counter: each number follows the last one, whichever server is used. */
async function writing(writer) {
  let etag;
  let unknown = false;
  for (let turn = 0; !ending; turn++) {
    const url = `${servers[turn % servers.length].url}/api/public/profile`;
    const headers = { 'X-API-Key': writer.key, 'Content-Type': 'application/json' };
    if (etag === undefined) {
      const { status, body, headers: got } = await ask('write', url, { headers });
      if (status === 503) continue;
      if (status !== 200) throw new Error(`a member who writes is answered ${status}`);
      const bio = Number(body.bio ?? 0);
      if (bio !== writer.n && !(unknown && bio === writer.n + 1))
        faults.push(`a member who was told of ${writer.n} writes has ${bio}`);
      if (bio === writer.n + 1) {
        writer.n++;
        doneAfterAll.write++;
      }
      unknown = false;
      etag = got.get('etag');
      continue;
    }
    const askedAt = performance.now();
    const body = JSON.stringify({ bio: String(writer.n + 1) });
    const answer = await ask('write', url, {
      method: 'PUT',
      headers: { ...headers, 'If-Match': etag },
      body,
    });
    if (answer.status === 200) {
      writer.n++;
      unknown = false;
      etag = answer.headers.get('etag') ?? undefined;
      acknowledge('write', askedAt);
    } else if (answer.status === 503) {
      unknown = true;
    } else if (answer.status === 412 && unknown) {
      etag = undefined; // the profile was written meanwhile, most likely by this writer
    } else {
      throw new Error(`a write is answered ${answer.status}`);
    }
    await pause(answer.status === 200 ? THINKING_MS : AGAIN_MS);
  }
}

/** Feeds events one by one; a refused one is sent again under its key. */
async function feeding(key, organizer_id, fed) {
  for (let id = 1, turn = 0; !ending; turn++) {
    const record = { id, title: `Event ${id}`, status: 'scheduled', visibility: 'public', starts_at: '2031-05-01 18:00:00', timezone: 'UTC', organizer_id }; // prettier-ignore
    const askedAt = performance.now();
    const { status, body } = await ask('feed', `${servers[turn % servers.length].url}/api/platform/records`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/x-ndjson', 'Idempotency-Key': `event-${id}` },
      body: `${JSON.stringify({ type: 'events', record })}\n`,
    });
    if (status === 200) {
      if (body.created !== 1) faults.push(`a line was written twice: ${JSON.stringify(body)}`);
      fed.push(id++);
      acknowledge('feed', askedAt);
    } else if (status !== 503) {
      throw new Error(`a feed is answered ${status}`);
    }
    await pause(status === 200 ? THINKING_MS : AGAIN_MS);
  }
}

async function signingIn(member, codes) {
  const browser = new Browser(anyServer);
  while (!ending) {
    const askedAt = performance.now();
    const code = await tried('sign-in', () => browser.authorize(member));
    if (code === undefined) continue;
    const { unknown, tokens } = await used('sign-in', () => exchange(anyServer, code));
    if (tokens) {
      codes.push({ code, tokens });
      acknowledge('sign-in', askedAt);
    } else if (unknown) {
      doneAfterAll['sign-in']++;
    }
    await pause(THINKING_MS);
  }
}

async function refreshing(chain) {
  const browser = new Browser(anyServer);
  while (!ending) {
    if (chain.token === undefined) {
      const code = await tried('sign-in', () => browser.authorize(chain.member));
      if (code === undefined) continue;
      const { tokens } = await used('sign-in', () => exchange(anyServer, code));
      chain.used = [];
      chain.token = tokens?.refresh_token;
      continue;
    }
    const askedAt = performance.now();
    const { unknown, tokens } = await used('refresh', () => refresh(anyServer, chain.token));
    if (tokens) {
      chain.used.push(chain.token);
      chain.token = tokens.refresh_token;
      acknowledge('refresh', askedAt);
    } else if (unknown) {
      chain.token = undefined; // it was used, but the response was lost: too late to repeat
      doneAfterAll.refresh++;
    }
    await pause(THINKING_MS);
  }
}

/** Reads from one server, so that gaps are measured for each. */
async function reading(server, key) {
  for (let answeredAt = performance.now(); !ending; await pause(THINKING_MS)) {
    const askedAt = performance.now();
    const { status } = await ask('read', `${server.url}/api/public/profile`, {
      headers: { 'X-API-Key': key },
    });
    if (status === 200) {
      acknowledge('read', askedAt);
      if (killedAt !== undefined)
        gaps[gaps.length - 1] = Math.max(gaps.at(-1), performance.now() - Math.max(answeredAt, killedAt));
      answeredAt = performance.now();
    } else if (status !== 503) {
      throw new Error(`a read is answered ${status}`);
    }
  }
}

/** Sends a request to the API. The servers are never killed, so they respond. */
async function ask(kind, url, options) {
  const response = await fetch(url, { ...options, signal: AbortSignal.timeout(30_000) });
  const text = await response.text();
  count(kind, response.status);
  if (response.status === 503 && response.headers.get('retry-after') === null)
    faults.push('a 503 without Retry-After');
  return {
    status: response.status,
    headers: response.headers,
    body: text.startsWith('{') ? JSON.parse(text) : {},
  };
}

/** @returns the result of `work`; undefined if it was refused for now */
async function tried(kind, work) {
  try {
    const result = await work();
    count(kind, 200);
    return result;
  } catch (error) {
    count(kind, error.status);
    if (error.status !== 503) throw error;
    await pause(AGAIN_MS);
    return undefined;
  }
}

/** Uses what can be used once, retrying until the outcome is known. */
async function used(kind, work) {
  for (let unknown = false; ; unknown = true) {
    try {
      const tokens = await tried(kind, work);
      if (tokens) return { unknown, tokens };
    } catch (error) {
      if (unknown && error.status === 400) return { unknown };
      throw error;
    }
  }
}

/** Compares the final state of the database and the servers with what was acknowledged. */
async function compare(written, fed, codes, chains) {
  for (const { id, first, n } of written) {
    const [{ bio, version }] = await query('SELECT bio, version FROM users WHERE id = $1', [id]);
    const done = Number(bio) - n;
    if (done !== 0 && done !== 1) faults.push(`of ${n} writes that were acknowledged the member has ${bio}`);
    if (Number(version) - first !== Number(bio))
      faults.push(`${bio} writes made ${version - first} versions`);
  }
  const [{ missing }] = await query(
    'SELECT count(*)::int AS missing FROM unnest($1::bigint[]) AS fed (id) LEFT JOIN events USING (id) WHERE events.id IS NULL',
    [fed],
  );
  if (missing > 0) faults.push(`${missing} of ${fed.length} lines that were acknowledged are lost`);
  const twice = await query(
    `SELECT grant_id FROM oauth_tokens WHERE model = 'RefreshToken' AND consumed_at IS NULL GROUP BY grant_id HAVING count(*) > 1`,
  );
  if (twice.length > 0) faults.push(`${twice.length} sign-ins have two refresh tokens that may be used`);
  for (const { tokens } of codes) {
    const headers = { Authorization: `Bearer ${tokens.access_token}` };
    const { status } = await settled(() => ask('token', `${anyServer.url}/api/public/me`, { headers }));
    if (status !== 200) faults.push(`a token that was issued is answered ${status}`);
  }
  for (const { token, used: before } of chains) {
    if (token !== undefined && (await outcome(() => refresh(anyServer, token))) !== 200)
      faults.push('a refresh token that was issued is refused');
    // Too old for its lost response to be repeated.
    if (before.length > 100 && (await outcome(() => refresh(anyServer, before[0]))) !== 400)
      faults.push('a refresh token is taken twice');
  }
  for (const { code } of codes.slice(-20))
    if ((await outcome(() => exchange(anyServer, code))) !== 400) faults.push('a code is taken twice');
}

async function outcome(work) {
  const { status } = await settled(() =>
    work().then(
      () => ({ status: 200 }),
      (error) => error,
    ),
  );
  return status;
}

async function settled(work) {
  for (const latest = performance.now() + PATIENCE_MS; ; await pause(AGAIN_MS)) {
    const answer = await work();
    if (answer.status !== 503 || performance.now() > latest) return answer;
  }
}

function print() {
  const middle = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
  console.log(
    '\n| | Acknowledged | Refused with 503 | Done, and not told | Lost | Done twice | Back after, median | at most |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const kind of Object.keys(acknowledged)) {
    const times = back.map((each) => each[kind]);
    const refused = statuses.get(kind).get(503) ?? 0;
    const cells = [acknowledged[kind], refused, doneAfterAll[kind] ?? '', kind === 'read' ? '' : 0, kind === 'read' ? '' : 0, seconds(middle(times)), seconds(Math.max(...times))]; // prettier-ignore
    console.log(`| ${kind} | ${cells.join(' | ')} |`);
  }
  console.log(
    `\nReads were without a response for ${seconds(middle(gaps))} (median) and ${seconds(Math.max(...gaps))} at most.`,
  );
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

function say(text) {
  console.log(`${seconds(performance.now() - began)}: ${text}`);
}

async function query(sql, values = []) {
  const client = new pg.Client({ connectionString: cluster.url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

async function pua(settings, ...parameters) {
  const child = spawn(process.execPath, [join(root, 'bin/pua.mjs'), ...parameters], {
    env: settings,
    cwd: folder,
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => (stdout += text));
  child.stderr.on('data', (text) => (stderr += text));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`pua ${parameters[0]} ${parameters[1]}: ${stdout}${stderr}`);
  return stdout.trim();
}

async function startServer(settings, port) {
  const publicUrl = `http://127.0.0.1:${servers[0]?.port ?? port}`;
  const child = spawn(process.execPath, [join(root, 'dist/src/main.js')], {
    env: { ...settings, PORT: String(port), PUBLIC_URL: publicUrl },
    cwd: folder,
    stdio: ['ignore', openSync(join(folder, `server-${port}.log`), 'a'), 'inherit'],
  });
  const server = { url: `http://127.0.0.1:${port}`, port, child };
  for (const latest = performance.now() + PATIENCE_MS; ; await pause(50)) {
    if (child.exitCode !== null || performance.now() > latest) throw new Error('a server did not start');
    const answers = await fetch(`${server.url}/readyz`).catch(() => undefined);
    if (answers?.status === 200) return server;
  }
}
