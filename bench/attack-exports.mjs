#!/usr/bin/env node
// What others notice of downloads and calendars that are read without end: `node bin/with-postgres.mjs node bench/attack-exports.mjs`
// (with [seconds], 10). Beside each attack, and before and after it, requests of every kind are sent at a fixed rate.
import './own-node.mjs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { startFresh } from './fresh-server.mjs';
import { AUTHORIZE, Browser, CLIENT_ID, exchange, formsOf, REDIRECT_URI, refresh } from './oauth-client.mjs';
import { memoryMegabytes } from './usage.mjs';

const PASSWORD = 'correct horse battery staple';
const MEMBERS = 12;
const EVENTS = 1_000;
/** Downloads that nobody reads. */
const UNREAD = 140;
/** Before a download that was refused or cut is asked for again. */
const AGAIN_MS = 1_000;
const LINKS = 10;
const LINK_READS_PER_SECOND = 40;

/**
 * @typedef {Awaited<ReturnType<typeof startFresh>>} Target
 * @typedef {object} Attack
 * @property {string} name
 * @property {(target: Target) => Promise<any>} prepare what it needs, made before anything is measured
 * @property {(target: Target, prepared: any, until: AbortSignal) => Promise<void>} attack goes on until the signal
 */

/** @type {Attack[]} */
export const attacks = [
  { name: 'downloads that nobody reads', prepare: prepareDownloads, attack: holdDownloads },
  { name: 'downloads at full speed', prepare: prepareDownloads, attack: takeDownloads },
  { name: 'ten calendar links, 40/s', prepare: prepareCalendar, attack: readCalendars },
  { name: 'one calendar link, ten at a time', prepare: prepareCalendar, attack: readOneCalendar },
];

/** Members with a thousand events of 14 KB each, signed in: what posts the form of each. */
async function prepareDownloads(target) {
  const members = await membersWithEvents(target, MEMBERS, 14_000);
  return Promise.all(
    members.map(async ({ username }) => {
      const browser = await signedIn(target, username, '/account/data');
      const { body } = await browser.open('/account/data');
      const { path, form } = formsOf(body).find((one) => one.path.endsWith('/download'));
      const sent = new URLSearchParams(form).toString();
      return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: ${browser.cookiesAt(path)}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${sent.length}\r\n\r\n${sent}`;
    }),
  );
}

function holdDownloads(target, forms, until) {
  return inParallel(UNREAD, async (n) => {
    while (!until.aborted) {
      const socket = connect(portOf(target), '127.0.0.1').on('error', () => {});
      socket.write(forms[n % forms.length]);
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended(until)]);
      socket.destroy();
      await pause(AGAIN_MS);
    }
  });
}

function takeDownloads(target, forms, until) {
  return inParallel(forms.length, async (n) => {
    while (!until.aborted) {
      const socket = connect(portOf(target), '127.0.0.1').on('error', () => {});
      socket.write(forms[n]);
      socket.resume();
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), ended(until)]);
      socket.destroy();
      await pause(AGAIN_MS);
    }
  });
}

/** Ten links of one member with a thousand events. */
async function prepareCalendar(target) {
  const [{ username }] = await membersWithEvents(target, 1, 2_000);
  const browser = await signedIn(target, username, '/account/calendar');
  const links = [];
  while (links.length < LINKS) {
    const { path, form } = formsOf((await browser.open('/account/calendar')).body, {
      name: `Link ${links.length}`,
    }).find((one) => one.path.endsWith('/create'));
    const { headers } = await browser.open(path, form);
    const { body } = await browser.open(headers.location);
    links.push(/\/calendar\/[\w-]{43}\.ics/.exec(body)[0]);
  }
  return links;
}

async function readCalendars(target, links, until) {
  const reads = [];
  for (let n = 0; !until.aborted; n++) {
    reads.push(ask(target, { path: links[n % links.length] }));
    await pause(1_000 / LINK_READS_PER_SECOND);
  }
  await Promise.all(reads);
}

function readOneCalendar(target, [link], until) {
  return inParallel(10, async () => {
    while (!until.aborted) await ask(target, { path: link });
  });
}

/** How often members were made. */
let made = 0;

async function membersWithEvents({ pua, database }, count, bytes) {
  const members = Array.from({ length: count }, (_, n) => ({ username: `attacker-${made++}-${n}` }));
  for (const member of members) {
    pua('users', 'create', '--username', member.username);
    const { rows } = await database.query('SELECT id FROM users WHERE username = $1', [member.username]);
    member.id = rows[0].id;
  }
  const { hashPassword } = await import('../dist/src/accounts/passwords.js');
  const hash = await hashPassword(PASSWORD);
  const ids = members.map(({ id }) => id);
  await database.query('UPDATE users SET password_hash = $1 WHERE id = ANY ($2)', [hash, ids]);
  await database.query(
    `WITH made AS (
  INSERT INTO events (title, description, status, visibility, timezone, organizer_id, starts_at)
  SELECT 'Event ' || n, repeat(md5(n::text), $3 / 32), 'scheduled', 'public', 'Europe/Berlin', $1, now() + n * interval '1 hour'
  FROM generate_series(1, $4::int) n RETURNING id
) INSERT INTO participants (event_id, user_id, role) SELECT made.id, u.id, 'co_organizer' FROM made, unnest($2::bigint[]) u (id)
WHERE u.id <> $1`,
    [ids[0], ids, bytes, EVENTS],
  );
  await database.query('VACUUM ANALYZE events, participants');
  return members;
}

async function signedIn(target, username, path) {
  const browser = new Browser({ name: 'ours', url: target.url });
  const { body } = await browser.open(path);
  const signIn = formsOf(body, { username, password: PASSWORD })[0];
  const { status } = await browser.open(signIn.path, signIn.form);
  if (status !== 303) throw new Error(`${username} was not signed in: ${status}`);
  return browser;
}

function inParallel(count, work) {
  return Promise.all(Array.from({ length: count }, (_, n) => work(n)));
}

function ended(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve, { once: true });
  });
}

const portOf = ({ url }) => Number(new URL(url).port);
const agent = new Agent({ keepAlive: true });

/** @returns {Promise<number>} the status; 0 if there was none */
function ask({ url }, { path, method = 'GET', headers = {}, body }) {
  return new Promise((resolve) => {
    const sent = request(url + path, { agent, method, headers, timeout: 5_000 }, (response) =>
      response.resume().on('close', () => resolve(response.complete ? response.statusCode : 0)),
    );
    sent.on('timeout', () => sent.destroy()).on('error', () => resolve(0));
    sent.end(body);
  });
}

/** Requests of every kind by somebody else, each sent ten times a second. */
async function honestKinds(target) {
  const username = 'honest';
  target.pua('users', 'create', '--username', username);
  const { hashPassword } = await import('../dist/src/accounts/passwords.js');
  await target.database.query('UPDATE users SET password_hash = $1 WHERE username = $2', [
    await hashPassword(PASSWORD),
    username,
  ]);
  const scopes = 'profile:read,profile:write,events:read';
  const key = target.pua('keys', 'create', '--user', username, '--name', 'honest', '--scopes', scopes);
  const headers = { 'X-API-Key': key };
  const id = target.pua(
    'clients',
    'create',
    '--name',
    'bench',
    '--type',
    'web',
    '--redirect-uri',
    REDIRECT_URI,
  );
  await target.database.query('UPDATE oauth_clients SET id = $2 WHERE id = $1', [id, CLIENT_ID]);
  const browser = await signedIn(target, username, '/account/apps');
  const server = { name: 'ours', url: target.url };
  const code = await new Browser(server).authorize({ username, password: PASSWORD });
  let { refresh_token: token } = await exchange(server, code);
  const put = { method: 'PUT', headers: { ...headers, 'Content-Type': 'application/json' } };
  return {
    api: () => ask(target, { path: '/api/public/events', headers }),
    write: () => ask(target, { path: '/api/public/profile', ...put, body: '{"bio":"honest"}' }),
    token: async () => {
      const answer = await refresh(server, token).catch(() => undefined);
      token = answer?.refresh_token ?? token;
      return answer ? 200 : 503;
    },
    'sign-in page': () => ask(target, { path: AUTHORIZE }),
    'account page': () =>
      ask(target, { path: '/account/sessions', headers: { Cookie: browser.cookiesAt('/account') } }),
    '/readyz': () => ask(target, { path: '/readyz' }),
  };
}

/** @returns share of good answers and p99 in ms of each kind, until the signal */
async function watch(kinds, until) {
  return Promise.all(
    Object.entries(kinds).map(async ([kind, send]) => {
      const under = [];
      while (!until.aborted) {
        const started = performance.now();
        under.push(send().then((status) => ({ status, ms: performance.now() - started })));
        await pause(100);
      }
      const answers = await Promise.all(under);
      const good = answers.filter(({ status }) => status >= 200 && status < 400);
      const times = good.map(({ ms }) => ms).toSorted((a, b) => a - b);
      return {
        kind,
        good: good.length / answers.length,
        p99: times[Math.floor(times.length * 0.99)] ?? Infinity,
      };
    }),
  );
}

async function measure(target, kinds, { name, prepare, attack }, seconds) {
  const prepared = await prepare(target);
  await watch(kinds, AbortSignal.timeout(3_000));
  const usual = memoryMegabytes(target.pid);
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, memoryMegabytes(target.pid))), 200);
  const until = AbortSignal.timeout(1_000 * seconds);
  const [beside] = await Promise.all([watch(kinds, until), attack(target, prepared, until)]);
  clearInterval(looking);
  await pause(2_000);
  const after = await watch(kinds, AbortSignal.timeout(2_000));
  const lines = beside.map(
    ({ kind, good, p99 }, i) =>
      `  ${kind.padEnd(14)} ${(100 * good).toFixed(1).padStart(5)} % good, p99 ${p99.toFixed(0).padStart(5)} ms; ` +
      `after it ${(100 * after[i].good).toFixed(0)} %, ${after[i].p99.toFixed(0)} ms`,
  );
  console.log(
    `${name}: memory ${usual.toFixed(0)} → ${most.toFixed(0)} MB (${(most / usual).toFixed(2)} x)\n${lines.join('\n')}`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.env.RATE_LIMIT_AUTH = '0'; // everything comes from one address
  const target = await startFresh(3_997);
  try {
    const kinds = await honestKinds(target);
    for (const attack of attacks) await measure(target, kinds, attack, Number(process.argv[2] ?? 10));
  } finally {
    await target.end();
  }
  process.exit();
}
