// An hour of mixed load at a fixed rate, with a fault each minute: finds what grows that should not, and responses that no document
// declares. Two instances on a throw-away PostgreSQL and Redis; only the second instance is ever killed, so that the first shows a
// process's use of resources after an hour.
//   node bin/with-postgres.mjs node bench/soak.mjs --minutes 60 [--rate 60] [--every <seconds between faults>] [--out <folder>]
// writes soak.json and soak.svg to the folder, prints the verdict, and exits with 1 if it is bad. Loopback only.
import './own-node.mjs';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { freePort } from '../bin/postgres.mjs';
import { freshDatabase, Instance, openServices, PASSWORD, Proxy, Redis } from './instances.mjs';
import { Browser, CLIENT_ID, exchangeForm, refreshForm } from './oauth-client.mjs';
import { timeSeries } from './plot.mjs';
import { memoryMegabytes } from './usage.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '60' },
    out: { type: 'string', default: '.' },
    every: { type: 'string', default: '60' },
  },
});
const MINUTES = Number(options.minutes);
const RATE = Number(options.rate);
const MEMBERS = 300;
const EVENTS = 2 * MEMBERS;
const SAMPLE_MS = 10_000;
/** When a fault begins in its interval, how long it lasts, and how long effects may last afterwards; the server promises 2 s. */
const FAULT_AT_MS = Math.min(20, Number(options.every)) * 1000;
const FAULT_MS = 5_000;
const AFTERMATH_MS = 4_000;
/** How long the response to a refresh is repeated. */
const REPEATED_MS = 10_000;
/** Share of each kind of work. The requests of a sign-in (pages, code exchange) come on top. */
const MIX = {
  readByKey: 44,
  readByToken: 22,
  write: 10,
  feed: 6,
  sync: 8,
  refresh: 5,
  signIn: 0.5,
  signInAgain: 1.5,
  revoke: 3,
  health: 2,
};
const READS = [
  '/profile',
  '/me',
  '/events',
  '/events?limit=5&sort=starts_at',
  '/connections',
  '/achievements',
];

const folder = mkdtempSync(join(tmpdir(), 'pua-soak-'));

// -------------------------------------------------------------------------------------------------------------- the processes

class Watched extends Instance {
  async sample() {
    const { pid } = this;
    const metrics = await fetch(`http://127.0.0.1:${this.environment.METRICS_PORT}/metrics`)
      .then((answer) => answer.text())
      .catch(() => '');
    const metric = (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN);
    const descriptors = existsSync(`/proc/${pid}/fd`) ? readdirSync(`/proc/${pid}/fd`).length : Number.NaN;
    return {
      pid,
      rss: memoryMegabytes(pid),
      heap: metric('nodejs_heap_size_used_bytes') / 2 ** 20,
      descriptors,
      lag: metric('nodejs_eventloop_lag_p99_seconds') * 1000,
    };
  }
}

const database = await freshDatabase();
const { name } = database;
/** Sees everything, and is exempt from faults. */
const watcher = new pg.Client({ connectionString: database.superuserUrl, application_name: 'soak' });
await watcher.connect();
const redis = await new Redis(folder).start();
const proxy = await new Proxy().start(database.url);
const settings = async () => ({
  METRICS_PORT: String(await freePort()),
  LOG_LEVEL: 'error',
  LOG_FORMAT: 'json',
  REDIS_URL: `redis://127.0.0.1:${redis.port}`,
  // Counted as usual, with a ceiling out of reach: all callers share one address.
  RATE_LIMIT_READ: '1000000',
  RATE_LIMIT_WRITE: '1000000',
  RATE_LIMIT_PLATFORM: '1000000',
  RATE_LIMIT_AUTH: '1000000',
  SWEEP_INTERVAL: '20',
});
const environment = await database.environment({ ...(await settings()), DATABASE_URL: proxy.url });
const services = await openServices({ ...environment, DATABASE_URL: database.url });
await services.addMembers(MEMBERS);
await services.addClient();
const keys = [];
for (let id = 1; id <= MEMBERS; id++) keys.push(await services.makeKey(id));
const platformKey = await services.makeKey(null);
const receiver = { messages: 0 };
const listening = createServer(async (request, response) => {
  for await (const _ of request);
  receiver.messages++;
  response.writeHead(204).end();
}).listen(0, '127.0.0.1');
await once(listening, 'listening');
const types = ['profile.updated', 'events.updated', 'events.removed'];
await services.addWebhook(`http://127.0.0.1:${listening.address().port}/`, types);
await services.dataSource.destroy();
const log = createWriteStream(join(options.out, 'soak.log'));
const first = await new Watched('first', environment, log).start();
const second = await new Watched(
  'second',
  await database.environment({ ...(await settings()), PUBLIC_URL: environment.PUBLIC_URL }),
  log,
).start();
const instances = [first, second];

// -------------------------------------------------------------------------------------------------------------- the requests

/** Less than the server's Keep-Alive (timeout=65): a request on an idle connection that is just being closed is cut off. */
const IDLE_CONNECTION_MS = 60_000;
const agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });
const startedAt = performance.now();
/** @type {{name: string, from: number, to: number}[]} in ms since the start; the last may still last (`to` is Infinity) */
const faults = [];
const inFault = (from, to = from) =>
  faults.some((fault) => from <= fault.to + AFTERMATH_MS && to >= fault.from);
const counts = { requests: 0, statuses: {}, refusedOutsideFaults: 0, cutOutsideFaults: 0 };
/** @type {{what: string, status: number | string, at: number, text: string}[]} */
const undeclared = [];
let window = newWindow();
let underWay = 0;

function newWindow() {
  return { calm: [], faulty: [], statuses: {} };
}

/**
 * Sends one request, and records its response if it is neither expected nor declared for a fault.
 *
 * @param {string} what
 * @param {string} url
 * @param {{method?: string, headers?: object, body?: string, form?: object, due?: number, expected?: (status: number | 'cut') => boolean}} request
 * @returns {Promise<{status: number | 'cut', headers: object, body: string}>} `cut` if the connection ended before the response
 */
async function send(
  what,
  url,
  { method = 'GET', headers = {}, body, form, due, expected = (status) => status === 200 } = {},
) {
  const from = due ?? performance.now() - startedAt;
  const payload = form ? new URLSearchParams(form).toString() : body;
  const type = form ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {};
  const length = payload === undefined ? {} : { 'Content-Length': Buffer.byteLength(payload) };
  const answer = await new Promise((resolve) => {
    const options = { agent, method, headers: { ...type, ...length, ...headers } };
    const request = httpRequest(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: text }),
      );
      response.on('error', () => resolve({ status: 'cut', headers: {}, body: '' }));
    });
    request.on('error', () => resolve({ status: 'cut', headers: {}, body: '' }));
    request.end(payload);
  });
  const to = performance.now() - startedAt;
  const { status } = answer;
  counts.requests++;
  counts.statuses[status] = (counts.statuses[status] ?? 0) + 1;
  window.statuses[status] = (window.statuses[status] ?? 0) + 1;
  const isFaulty = inFault(from, to);
  (isFaulty ? window.faulty : window.calm).push(to - from);
  if (expected(status)) return answer;
  if (status === 503 && !isFaulty) counts.refusedOutsideFaults++;
  if (status === 'cut' && !isFaulty) counts.cutOutsideFaults++;
  if (status !== 503 && !(status === 'cut' && isFaulty))
    undeclared.push({ what, status, at: Math.round(from / 1000), text: answer.body.slice(0, 300) });
  return answer;
}

const pick = (list) => list[Math.floor(Math.random() * list.length)];
let turn = 0;
const nextInstance = () => instances[turn++ % 2];
const isAnswered = ({ status }) => status !== 503 && status !== 'cut';

/** Tries one instance after the other until one responds. */
async function insist(ask) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await ask(nextInstance());
    if (isAnswered(answer)) return answer;
    await pause(200);
  }
  return undefined;
}

/** Live sign-ins of an app. */
const sessions = [];
const browsers = [];
const lost = { signIns: [], writes: [], revocations: [] };
let late = 0;
const acknowledged = new Map();
const written = new Map();
const busyMembers = new Set();
let feedVersion = 1;
const cursors = new Map();
const json = { 'Content-Type': 'application/json' };
/** Signs in, unless the browser is signed in already, consents, and exchanges the code. Starts again after a failure. */
async function authorize(browser, member) {
  const reasons = {};
  const because = (reason) => void (reasons[reason] = (reasons[reason] ?? 0) + 1);
  for (let attempt = 0; attempt < 30; attempt++) {
    browser.server = nextInstance();
    const code = await browser
      .authorize({ username: `member_${member}`, password: PASSWORD })
      .catch((error) => because(error.message.slice(0, 160)));
    if (code !== undefined) {
      const answer = await send('exchange', `${nextInstance().url}/oauth/token`, {
        method: 'POST',
        form: exchangeForm(code),
      });
      if (answer.status === 200) {
        const { access_token, refresh_token } = JSON.parse(answer.body);
        sessions.push({ member, access: access_token, refresh: refresh_token, isBusy: false });
        return;
      }
      because(`exchange: ${answer.status} ${answer.body.slice(0, 200)}`);
    }
    await pause(500);
  }
  lost.signIns.push(`the sign-in of member ${member} never ended: ${JSON.stringify(reasons)}`);
}

function newBrowser() {
  return new Browser(first, (url, { method, headers, form }) =>
    send('page', url, { method, headers, form, expected: (status) => [200, 302, 303].includes(status) }),
  );
}

/** Reserves a sign-in for `work`. */
async function withSession(work) {
  const free = sessions.filter(({ isBusy }) => !isBusy);
  if (free.length === 0) return;
  const session = pick(free);
  session.isBusy = true;
  await work(session);
  session.isBusy = false;
}

const WORK = {
  async readByKey(due) {
    const member = 1 + Math.floor(Math.random() * MEMBERS);
    const headers = { 'X-API-Key': keys[member - 1] };
    await send('read by key', `${nextInstance().url}/api/public${pick(READS)}`, { headers, due });
  },

  readByToken: (due) =>
    withSession(async (session) => {
      const headers = { Authorization: `Bearer ${session.access}` };
      await send('read by token', `${nextInstance().url}/api/public${pick(READS)}`, { headers, due });
    }),

  async write(due) {
    const member = 1 + Math.floor(Math.random() * MEMBERS);
    if (busyMembers.has(member)) return;
    busyMembers.add(member);
    const value = (written.get(member) ?? 0) + 1;
    written.set(member, value);
    const answer = await insist((instance) =>
      send('write', `${instance.url}/api/public/profile`, {
        method: 'PUT',
        headers: { ...json, 'X-API-Key': keys[member - 1] },
        body: JSON.stringify({ bio: String(value) }),
        due,
      }),
    );
    if (answer?.status === 200) acknowledged.set(member, { value, at: Date.now() });
    busyMembers.delete(member);
  },

  async feed(due) {
    const id = 1 + Math.floor(Math.random() * EVENTS);
    const version = ++feedVersion;
    const record = {
      id,
      title: `Event ${id}, version ${version}`,
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2031-05-01 18:00:00',
      timezone: 'Europe/Vienna',
      organizer_id: 1 + (id % MEMBERS),
    };
    await send('feed', `${nextInstance().url}/api/platform/records`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-ndjson', 'X-API-Key': platformKey },
      body: JSON.stringify({ type: 'events', op: 'put', record, version }),
      due,
    });
  },

  async sync(due) {
    const member = 1 + Math.floor(Math.random() * 20);
    const cursor = cursors.get(member);
    const headers = { 'X-API-Key': keys[member - 1] };
    const query = cursor ? `?limit=1000&cursor=${cursor}` : '';
    const answer = await send('sync', `${nextInstance().url}/api/public/sync${query}`, { headers, due });
    if (answer.status === 200) cursors.set(member, JSON.parse(answer.body).next);
  },

  refresh: () =>
    withSession(async (session) => {
      const form = refreshForm(session.refresh);
      const from = performance.now();
      // A lost response is repeated for ten seconds; a session that was refused for longer signs in again.
      const isLate = () => performance.now() - from > REPEATED_MS;
      const answer = await insist(({ url }) =>
        send('refresh', `${url}/oauth/token`, {
          method: 'POST',
          form,
          expected: (status) => status === 200 || (status === 400 && isLate()),
        }),
      );
      if (answer?.status === 200) {
        const { access_token, refresh_token } = JSON.parse(answer.body);
        Object.assign(session, { access: access_token, refresh: refresh_token });
      } else {
        if (isLate()) late++;
        else lost.signIns.push(`a refresh of member ${session.member}: ${answer?.status} ${answer?.body}`);
        sessions.splice(sessions.indexOf(session), 1);
      }
    }),

  async signIn() {
    const browser = newBrowser();
    const member = 1 + Math.floor(Math.random() * MEMBERS);
    await authorize(browser, member);
    browsers.push({ browser, member });
    if (browsers.length > 40) browsers.shift();
  },

  async signInAgain() {
    if (browsers.length === 0) return;
    const one = browsers.shift();
    await authorize(one.browser, one.member);
    browsers.push(one);
  },

  /** Revokes as many as sign in, so that their number is constant; checks that both instances refuse them within a second. */
  async revoke() {
    if (sessions.length < 60) return;
    await withSession(async (session) => {
      sessions.splice(sessions.indexOf(session), 1);
      const form = { client_id: CLIENT_ID, token: session.refresh };
      const answer = await insist(({ url }) =>
        send('revoke', `${url}/oauth/revoke`, { method: 'POST', form }),
      );
      if (answer?.status !== 200) return void lost.revocations.push(`not revoked: ${answer?.status}`);
      await pause(1_000);
      const headers = { Authorization: `Bearer ${session.access}` };
      for (const { url } of instances) {
        const refused = await send('revoked', `${url}/api/public/me`, {
          headers,
          expected: (status) => status === 401,
        });
        if (refused.status === 200) lost.revocations.push(`a token of member ${session.member} lives on`);
      }
    });
  },

  async health(due) {
    await send('health', `${nextInstance().url}/readyz`, { due });
  },
};

// ----------------------------------------------------------------------------------------------------------------- the faults

const FAULTS = {
  async 'all connections dropped'() {
    await watcher.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`,
      [name],
    );
  },
  async 'a table locked'() {
    const client = new pg.Client({ connectionString: database.superuserUrl });
    await client.connect();
    await client.query('BEGIN; LOCK TABLE participants IN ACCESS EXCLUSIVE MODE');
    await pause(FAULT_MS);
    await client.query('ROLLBACK');
    await client.end();
  },
  async 'an instance killed'() {
    await second.kill();
    await pause(FAULT_MS);
    await second.start();
  },
  async 'the database cut off one instance'() {
    proxy.cut();
    await pause(FAULT_MS);
    proxy.mend();
  },
  async 'Redis killed'() {
    await redis.kill();
    await pause(FAULT_MS);
    await redis.start();
  },
};

async function fail(minute) {
  const names = Object.keys(FAULTS);
  const fault = { name: names[minute % names.length], from: performance.now() - startedAt, to: Infinity };
  faults.push(fault);
  await FAULTS[fault.name]();
  fault.to = performance.now() - startedAt;
  console.error(
    `minute ${minute}: ${fault.name}; ${JSON.stringify(counts)}; ${undeclared.length} undeclared`,
  );
}

// ---------------------------------------------------------------------------------------------------------------- the samples

const samples = [];
const percentile = (list, share) => {
  const sorted = list.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
};

async function sample() {
  const { calm, faulty, statuses } = window;
  window = newWindow();
  const { rows: tables } = await watcher.query(
    `SELECT relname AS name, n_live_tup::int AS live, n_dead_tup::int AS dead, pg_total_relation_size(relid)::float8 / 1048576 AS size
     FROM pg_stat_user_tables ORDER BY relname`,
  );
  const { rows } = await watcher.query(
    `SELECT count(*)::int AS connections FROM pg_stat_activity WHERE datname = $1 AND application_name <> 'soak'`,
    [name],
  );
  samples.push({
    at: (performance.now() - startedAt) / 60_000,
    first: await first.sample(),
    second: await second.sample(),
    connections: rows[0].connections,
    dead: tables.reduce((sum, { dead }) => sum + dead, 0),
    tables: Object.fromEntries(
      tables.map(({ name: table, live, dead, size }) => [table, { live, dead, size }]),
    ),
    p99: percentile(calm, 0.99),
    p99InFaults: percentile(faulty, 0.99),
    statuses,
    signIns: sessions.length,
  });
}

// ---------------------------------------------------------------------------------------------------------------------- the run

const begin = (kind, due) => {
  underWay++;
  WORK[kind](due).then(
    () => underWay--,
    (error) => {
      underWay--;
      undeclared.push({
        what: kind,
        status: 'the soak itself',
        at: Math.round(due / 1000),
        text: String(error.stack),
      });
    },
  );
};
for (let i = 0; i < 30; i++) await authorize(newBrowser(), 1 + i); // sessions to refresh
const total = Object.values(MIX).reduce((sum, share) => sum + share, 0);
const due = Object.fromEntries(Object.keys(MIX).map((kind) => [kind, performance.now() - startedAt]));
const loadFrom = performance.now() - startedAt;
let loadTo = loadFrom + MINUTES * 60_000;
// Ends early, with a verdict on the run so far.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (loadTo = 0));
let nextSample = loadFrom + SAMPLE_MS;
let nextFault = loadFrom + FAULT_AT_MS;
let minute = 0;
const running = [];
for (let now = loadFrom; now < loadTo; now = performance.now() - startedAt) {
  for (const kind of Object.keys(MIX)) {
    for (; due[kind] <= now; due[kind] += (1000 * total) / (RATE * MIX[kind])) begin(kind, due[kind]);
  }
  if (now >= nextSample) {
    nextSample += SAMPLE_MS;
    await sample();
  }
  if (now >= nextFault) {
    nextFault += 1000 * Number(options.every);
    running.push(fail(minute++));
  }
  await pause(5);
}
await Promise.all(running);
if (first.child.exitCode !== null || first.child.signalCode !== null)
  undeclared.push({ what: 'the first instance', status: 'ended by itself', at: 0, text: '' });
const minutes = Math.round((performance.now() - startedAt - loadFrom) / 6_000) / 10;
while (underWay > 0) await pause(50);

// -------------------------------------------------------------------------------------------------------------------- the verdict

/** Messages wait five seconds after a failure, and twenty for the lease of a killed instance. */
const pendingSince = performance.now();
let pending;
do {
  await pause(500);
  ({
    rows: [{ pending }],
  } = await watcher.query(
    `SELECT count(*)::int AS pending FROM webhook_deliveries WHERE status = 'pending'`,
  ));
} while (pending > 0 && performance.now() - pendingSince < 400_000);
const { rows: bios } = await watcher.query('SELECT id::int, bio FROM users');
for (const { id, bio } of bios) {
  const last = acknowledged.get(id);
  if (last && Number(bio) < last.value)
    lost.writes.push(`member ${id} has ${bio}, and was told ${last.value}`);
}
const { rows: untold } = await watcher.query(
  `SELECT status, count(*)::int FROM webhook_deliveries WHERE status <> 'delivered' GROUP BY status`,
);

/** Compares the last quarter with the second; the first is the warm-up. */
function growth(of, summary = (list) => percentile(list, 0.5)) {
  const values = samples.map(of);
  const quarter = (from) =>
    summary(
      values
        .slice(Math.floor(values.length * from), Math.ceil(values.length * (from + 0.25)))
        .filter(Number.isFinite),
    );
  return { before: quarter(0.25), after: quarter(0.75) };
}
const lowest = (list) => Math.min(...list);
/** Allowed growth from the second quarter to the last: noise of the collector, a page, a connection being opened. */
const FLAT = {
  'resident memory of the first instance, MB': [growth((s) => s.first.rss), (before) => before * 1.1 + 10],
  'heap of the first instance after collection, MB': [
    growth((s) => s.first.heap, lowest),
    (before) => before * 1.1 + 5,
  ],
  'descriptors of the first instance': [growth((s) => s.first.descriptors), (before) => before + 10],
  'connections in PostgreSQL': [growth((s) => s.connections), (before) => before + 4],
  'dead rows': [growth((s) => s.dead), (before) => before * 1.5 + 1_000],
  'p99 outside of faults, ms': [growth((s) => s.p99), (before) => before * 2 + 50],
};
/** Tables without history: as many rows at the end as at the beginning. */
const CONSTANT = [
  'users',
  'events',
  'participants',
  'api_keys',
  'user_totals',
  'event_totals',
  'record_versions',
];
for (const table of CONSTANT) {
  FLAT[`size of ${table}, MB`] = [growth((s) => s.tables[table]?.size), (before) => before * 1.1 + 1];
}
const faultsOfVerdict = [];
for (const [what, [{ before, after }, most]] of Object.entries(FLAT)) {
  const isFlat = after <= most(before);
  console.log(`${isFlat ? 'flat ' : 'GROWS'}  ${what}: ${before.toFixed(1)} → ${after.toFixed(1)}`);
  if (!isFlat) faultsOfVerdict.push(what);
}
const last = samples.at(-1);
for (const [table, { live, dead, size }] of Object.entries(last.tables)) {
  const { before, after } = growth((s) => s.tables[table]?.size);
  console.log(
    `table  ${table}: ${live} rows, ${dead} dead, ${size.toFixed(1)} MB (quarters ${before.toFixed(1)} → ${after.toFixed(1)})`,
  );
}
const checks = {
  'undeclared responses': undeclared,
  'sign-ins lost': lost.signIns,
  'acknowledged writes lost': lost.writes,
  'revoked, and alive after a second': lost.revocations,
  'webhook messages not delivered': untold,
};
for (const [what, list] of Object.entries(checks)) {
  console.log(`${list.length === 0 ? 'none ' : 'SOME '}  ${what}: ${list.length}`);
  for (const one of list.slice(0, 10)) console.log(`         ${JSON.stringify(one)}`);
  if (list.length > 0) faultsOfVerdict.push(what);
}
console.log(
  `${counts.requests} requests in ${minutes} min: ${JSON.stringify(counts.statuses)}; ${counts.refusedOutsideFaults} × 503 and ${counts.cutOutsideFaults} × cut off outside of faults; ${faults.length} faults, ${receiver.messages} webhook messages, ${late} refreshes that were refused for more than ten seconds`,
);
writeFileSync(
  join(options.out, 'soak.json'),
  JSON.stringify({
    minutes,
    rate: RATE,
    counts,
    faults,
    samples,
    lost,
    late,
    undeclared,
    verdict: faultsOfVerdict,
  }),
);
writeFileSync(
  join(options.out, 'soak.svg'),
  timeSeries(
    `${minutes} minutes of mixed load, ${RATE} requests/s, a fault each minute`,
    [
      {
        name: 'Resident memory, MB',
        lines: { 'first instance': (s) => s.first.rss, 'second (killed and started)': (s) => s.second.rss },
      },
      {
        name: 'Heap in use, MB',
        lines: { 'first instance': (s) => s.first.heap, 'second (killed and started)': (s) => s.second.heap },
      },
      {
        name: 'File descriptors',
        lines: {
          'first instance': (s) => s.first.descriptors,
          'second (killed and started)': (s) => s.second.descriptors,
        },
      },
      { name: 'Connections in PostgreSQL', lines: { 'of both': (s) => s.connections } },
      { name: 'Dead rows of all tables', lines: { 'all tables': (s) => s.dead } },
      {
        name: 'Size of all tables, MB',
        lines: {
          'without history': (s) => sum(CONSTANT.map((table) => s.tables[table]?.size ?? 0)),
          all: (s) => sum(Object.values(s.tables).map(({ size }) => size)),
        },
      },
      {
        name: 'p99 of 10 s, ms',
        lines: { 'outside of faults': (s) => s.p99, 'in faults': (s) => s.p99InFaults },
      },
    ].map(({ name: title, lines }) => ({
      name: title,
      lines: Object.entries(lines).map(([line, of]) => ({
        name: line,
        points: samples.map((s) => [s.at, of(s)]),
      })),
    })),
    'minutes',
  ),
);
function sum(list) {
  return list.reduce((a, b) => a + b, 0);
}
console.log(faultsOfVerdict.length === 0 ? 'good' : `BAD: ${faultsOfVerdict.join(', ')}`);

for (const instance of instances) await instance.kill('SIGTERM');
await redis.kill();
listening.closeAllConnections();
listening.close();
proxy.stop();
await watcher.end();
await database.end();
rmSync(folder, { recursive: true });
agent.destroy();
process.exitCode = faultsOfVerdict.length === 0 ? 0 : 1;
