#!/usr/bin/env node
// Attacks by waiting, and honest callers beside them: `node bench/attacks.mjs [--seconds 10] [--only TEXT]`. Every attack runs at its
// full rate, from one address and from twenty. Meanwhile honest callers at another address send one request of each kind a time; of
// these, 99 % must be answered as usual, with p99 ≤ 250 ms, while the server uses at most 1.5 times its usual memory; and two
// seconds after the attack everything must be as before. Ends with 1 where it is not.
import './own-node.mjs';
import { Agent, request as send } from 'node:http';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { AUTHORIZE, Browser, exchangeForm, formsOf, send as sendAs } from './oauth-client.mjs';
import { prepareMembers } from './oauth.mjs';
import { startOurs } from './servers.mjs';
import { memoryMegabytes } from './usage.mjs';

const { values: flags } = parseArgs({
  options: { seconds: { type: 'string', default: '10' }, only: { type: 'string', default: '' } },
});
const seconds = Number(flags.seconds);
const GOALS = { good: 0.99, p99: 250, memory: 1.5 };
/** How often each kind of honest request is sent, in ms. */
const HONEST_MS = 50;
const HONEST_ADDRESS = '127.0.9.9';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * @typedef {object} Target
 * @property {number} port
 * @property {string[]} keys of the attacker's members, never of honest ones
 * @property {() => import('node:net').Socket} open connects from one of the attacker's addresses
 * @property {() => boolean} isOver
 */

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const unfinished = (head, length) => `${head} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n`;
const PUT = (key) =>
  `${unfinished('PUT /api/public/profile', 100)}X-API-Key: ${key}\r\nContent-Type: application/json\r\n\r\n{`;

/** Keeps so many connections open, each of which sent its text, and opens another one for each that is closed. */
const hold = (count, textOf) => async (/** @type {Target} */ target) => {
  const sockets = new Set();
  for (let n = 0; !target.isOver(); n++) {
    while (sockets.size >= count && !target.isOver()) await pause(5);
    const socket = target.open();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).resume();
    socket.write(textOf(n, target));
    if (n % 50 === 0) await pause(5);
  }
  for (const socket of sockets) socket.destroy();
};

/** Sends the text again and again on so many connections, whether or not anything is answered; reads it if `isRead`. */
const flood =
  (count, text, { isRead, everyMs }) =>
  async (/** @type {Target} */ target) => {
    const sockets = [];
    while (!target.isOver()) {
      while (sockets.filter(({ destroyed }) => !destroyed).length < count) {
        const socket = target.open();
        if (isRead) socket.resume();
        else socket.pause();
        sockets.push(socket);
      }
      for (const socket of sockets) if (socket.writableLength < 1e6) socket.write(text);
      await pause(everyMs);
    }
    for (const socket of sockets) socket.destroy();
  };

const get = (path, header = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`;

/** @type {{name: string, attack: (target: Target) => Promise<void>}[]} */
const ATTACKS = [
  { name: 'nothing', attack: () => pause(seconds * 1000) },
  {
    name: '320 forms of 16,384 bytes, unfinished',
    attack: hold(320, () => `${unfinished('POST /oauth/token', 16_384)}${FORM}\r\n${'x'.repeat(16_000)}`),
  },
  {
    name: '4,200 bodies, unfinished',
    attack: hold(4_200, (n) =>
      n % 2
        ? `${unfinished('POST /oauth/par', 100)}${FORM}\r\nx`
        : `${unfinished('POST /account/sign-out', 100)}${FORM}\r\nx`,
    ),
  },
  { name: 'slow PUTs of six keys', attack: hold(400, (n, { keys }) => PUT(keys[n % 6])) },
  { name: '1,000 connections that send nothing', attack: hold(1_000, () => '') },
  {
    name: '12 connections of pipelined openapi.json, never read',
    attack: flood(12, get('/api/public/openapi.json').repeat(1_250), { isRead: false, everyMs: 250 }),
  },
  {
    name: 'one write of 62 KB pipelined every 250 ms',
    attack: flood(1, get('/api/public/profile').repeat(1_300), { isRead: true, everyMs: 250 }),
  },
  {
    name: '1,500 times /readyz every 250 ms',
    attack: flood(1, get('/readyz').repeat(1_500), { isRead: true, everyMs: 250 }),
  },
  {
    name: '300 connections, as fast as they are answered, with made-up keys',
    attack: async (target) => {
      let n = 0;
      const sockets = Array.from({ length: 300 }, () => {
        const socket = target.open();
        const next = () => socket.write(get('/api/public/events', `X-API-Key: made-up-${n++}\r\n`));
        socket.on('connect', next).on('data', (bytes) => /\r\n\r\n/.test(bytes.toString('latin1')) && next());
        return socket;
      });
      while (!target.isOver()) await pause(50);
      for (const socket of sockets) socket.destroy();
    },
  },
  {
    name: '50 wrong passwords a second, from 200 addresses',
    attack: async ({ isOver }) => {
      for (let n = 0; !isOver(); n++) {
        const localAddress = `127.0.2.${1 + (n % 200)}`;
        signIn({ username: `nobody-${n}`, password: 'guess', localAddress }).catch(() => undefined);
        await pause(20);
      }
    },
  },
  {
    name: '`?a&a&a…` of 14 KB to metadata and keys',
    attack: flood(4, get(`/oauth/jwks?${'a&'.repeat(7_000)}`), { isRead: true, everyMs: 20 }),
  },
];

/** Opens the page for signing in from an address, and sends the form. @returns its status: 303 once signed in */
async function signIn({ username, password, localAddress }) {
  const browser = new Browser({ name: 'ours', url: `http://127.0.0.1:${port}` }, (url, options) =>
    sendAs(url, { ...options, localAddress }),
  );
  const { body } = await browser.open('/account/apps');
  const { path, form } = formsOf(body, { username, password }).find((one) => one.path.endsWith('/sign-in'));
  return (await browser.open(path, form)).status;
}

/** What honest callers send: kind → path, options, and the status that tells that it went as usual. */
const honestRequests = (key) => ({
  read: { path: '/api/public/events', headers: { 'X-API-Key': key }, status: 200 },
  write: {
    path: '/api/public/profile',
    method: 'PUT',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: '{"bio": "honest"}',
    status: 200,
  },
  token: {
    path: '/oauth/token',
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(exchangeForm('x'.repeat(43))).toString(),
    status: 400, // there is no such code
  },
  'sign-in': { path: AUTHORIZE, headers: { Accept: 'text/html' }, status: 303 },
  account: { path: '/account/apps', headers: { Accept: 'text/html' }, status: 200 },
  '/readyz': { path: '/readyz', headers: {}, status: 200 },
});

await build();
const dataset = await openDataset(2_000);
const members = await prepareMembers(dataset);
const server = await startOurs(dataset);
const port = Number(new URL(server.url).port);
const keys = dataset.keys.slice(0, 50);
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Sends requests of every kind until `isOver`. @returns kind → outcomes */
async function beHonest(isOver) {
  const outcomes = [];
  const under = new Set();
  for (let n = 0; !isOver(); n++) {
    for (const [kind, what] of Object.entries(honestRequests(dataset.keys.at(-1 - (n % 100))))) {
      const asked = ask(what).then((outcome) => {
        under.delete(asked);
        outcomes.push({ kind, ...outcome });
      });
      under.add(asked);
    }
    if (n % 10 === 0) {
      const start = performance.now();
      const asked = signIn({ ...members.at(-1 - (n % 100)), localAddress: HONEST_ADDRESS })
        .catch(() => 0)
        .then((found) => {
          under.delete(asked);
          outcomes.push({ kind: 'password', isGood: found === 303, found, ms: performance.now() - start });
        });
      under.add(asked);
    }
    await pause(HONEST_MS);
  }
  await Promise.all(under);
  return outcomes;
}

function ask({ path, method = 'GET', headers, body, status }) {
  const start = performance.now();
  return new Promise((resolve) => {
    const done = (found) => resolve({ isGood: found === status, found, ms: performance.now() - start });
    const request = send(
      { port, host: '127.0.0.1', localAddress: HONEST_ADDRESS, path, method, headers, agent, timeout: 5_000 },
      (response) => response.resume().on('end', () => done(response.statusCode)),
    );
    request.on('timeout', () => request.destroy()).on('error', () => done(0));
    request.end(body);
  });
}

function summary(outcomes) {
  const good = outcomes.filter(({ isGood }) => isGood);
  const times = good.map(({ ms }) => ms).sort((a, b) => a - b);
  const bad = Map.groupBy(
    outcomes.filter(({ isGood }) => !isGood),
    ({ kind, found }) => `${kind} ${found}`,
  );
  return {
    good: good.length / outcomes.length,
    p99: times[Math.floor(0.99 * times.length)] ?? Infinity,
    bad: [...bad].map(([what, { length }]) => `${length} × ${what}`).join(', '),
  };
}

const faults = [];
try {
  let until = performance.now() + 3_000;
  const isOver = () => performance.now() > until;
  await beHonest(isOver); // warm
  let usual = memoryMegabytes(server.pid);
  console.log('| Attack | addresses | good | p99 ms | memory | 2 s later | bad |');
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | --- |');
  for (const { name, attack } of ATTACKS.filter((one) => one.name.includes(flags.only)))
    for (const addresses of name === 'nothing' ? [1] : [1, 20]) {
      until = performance.now() + seconds * 1000;
      let opened = 0;
      const open = () => {
        const localAddress = `127.0.1.${1 + (opened++ % addresses)}`;
        return connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
      };
      let memory = 0;
      const watching = setInterval(() => (memory = Math.max(memory, memoryMegabytes(server.pid))), 100);
      const [outcomes] = await Promise.all([beHonest(isOver), attack({ port, keys, open, isOver })]);
      clearInterval(watching);
      await pause(2_000);
      until = performance.now() + 1_500;
      const later = summary(await beHonest(isOver));
      const { good, p99, bad } = summary(outcomes);
      if (name === 'nothing') usual = memory;
      const percent = (share) => `${(100 * share).toFixed(1)} %`;
      console.log(
        `| ${name} | ${addresses} | ${percent(good)} | ${Math.round(p99)} | ${Math.round(memory)} MB | ${percent(later.good)} | ${bad} |`,
      );
      if (good < GOALS.good || p99 > GOALS.p99 || memory > GOALS.memory * usual || later.good < 1)
        faults.push(`${name}, ${addresses}: not as it should be`);
    }
} finally {
  agent.destroy();
  await server.stop();
  await dataset.stop();
}
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
