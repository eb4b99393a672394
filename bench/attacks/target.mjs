// The server that is attacked, and what honest callers ask of it meanwhile.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import {
  AUTHORIZE,
  Browser,
  CLIENT_ID,
  exchange,
  formsOf,
  REDIRECT_URI,
  refresh,
  send,
} from '../oauth-client.mjs';
import { memoryMegabytes } from '../usage.mjs';

/**
 * @typedef {{url: string, pid: number, pua: (...words: string[]) => string, database: import("pg").Client, addresses: number}} Target `addresses`: from which
 *   attackers come
 * @typedef {object} Attack
 * @property {string} name
 * @property {(target: Target) => any} [prepare] what it needs, made before anything is measured
 * @property {(target: Target, prepared: any, until: AbortSignal) => Promise<any>} attack goes on until the signal
 */

export const PASSWORD = 'correct horse battery staple';
const HONEST_ADDRESS = '127.0.9.9';
/** How often a request of each kind is sent, and how often somebody signs in, in ms. */
const HONEST_MS = 100;
const SIGN_IN_MS = 500;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** @returns {(target: Target) => import('node:net').Socket} connects from one of the attackers' addresses in turn */
let opened = 0;
export function open({ url, addresses }) {
  const localAddress = `127.0.1.${1 + (opened++ % addresses)}`;
  return connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress }).on(
    'error',
    () => undefined,
  );
}

/** @returns {Promise<number>} the status; 0 if there was no whole response */
export function ask({ url }, { path, method = 'GET', headers = {}, body, localAddress = '127.0.1.1' }) {
  return new Promise((resolve) => {
    const options = { agent, method, headers, localAddress, timeout: 5_000 };
    const sent = request(url + path, options, (response) =>
      response.resume().on('close', () => resolve(response.complete ? response.statusCode : 0)),
    );
    sent.on('timeout', () => sent.destroy()).on('error', () => resolve(0));
    sent.end(body);
  });
}

/** Opens the page for signing in from an address, and sends the form. @returns its status: 303 once signed in */
export async function signIn({ url }, { username, password, localAddress }) {
  const browser = new Browser({ name: 'ours', url }, (page, options) =>
    send(page, { ...options, localAddress }),
  );
  const { body } = await browser.open('/account/apps');
  const { path, form } = formsOf(body, { username, password }).find((one) => one.path.endsWith('/sign-in'));
  return (await browser.open(path, form)).status;
}

/** Gives members a password. */
export async function setPasswords({ database }, usernames) {
  const { hashPassword } = await import('../../dist/src/accounts/passwords/passwords.js');
  await database.query('UPDATE users SET password_hash = $1 WHERE username = ANY ($2)', [
    await hashPassword(PASSWORD),
    usernames,
  ]);
}

/** Makes an honest member with a key and an app. @returns kind of request → what sends it and tells whether it went as usual */
export async function honestKinds(target) {
  const { pua, database, url } = target;
  const username = 'honest';
  pua('users', 'create', '--username', username);
  await setPasswords(target, [username]);
  const scopes = 'profile:read,profile:write,events:read';
  const key = pua('keys', 'create', '--user', username, '--name', 'honest', '--scopes', scopes);
  const id = pua('clients', 'create', '--name', 'bench', '--type', 'web', '--redirect-uri', REDIRECT_URI);
  await database.query('UPDATE oauth_clients SET id = $2 WHERE id = $1', [id, CLIENT_ID]);
  const server = { name: 'ours', url };
  let { refresh_token: token } = await exchange(
    server,
    await new Browser(server).authorize({ username, password: PASSWORD }),
  );
  const headers = { 'X-API-Key': key };
  const html = { Accept: 'text/html' };
  const honest = (what, usual) => async () =>
    (await ask(target, { ...what, localAddress: HONEST_ADDRESS })) === usual;
  return {
    read: honest({ path: '/api/public/events', headers }, 200),
    write: honest(
      {
        path: '/api/public/profile',
        method: 'PUT',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: '{"bio": "honest"}',
      },
      200,
    ),
    refresh: async () => {
      const answer = await refresh(server, token).catch(() => undefined);
      token = answer?.refresh_token ?? token;
      return answer !== undefined;
    },
    authorize: honest({ path: AUTHORIZE, headers: html }, 303),
    account: honest({ path: '/account/apps', headers: html }, 200),
    '/readyz': honest({ path: '/readyz' }, 200),
    'sign-in': async () =>
      (await signIn(target, { username, password: PASSWORD, localAddress: HONEST_ADDRESS }).catch(
        () => 0,
      )) === 303,
  };
}

/** Sends every kind of request until the signal. @returns the share that went as usual, their p99 in ms, and the others by kind */
async function beHonest(kinds, until) {
  const outcomes = [];
  await Promise.all(
    Object.entries(kinds).map(async ([kind, isUsual]) => {
      const under = [];
      while (!until.aborted) {
        const start = performance.now();
        const asked = isUsual().then((isGood) =>
          outcomes.push({ kind, isGood, ms: performance.now() - start }),
        );
        if (kind === 'refresh') await asked; // each needs the token of the one before
        under.push(asked);
        await pause(kind === 'sign-in' ? SIGN_IN_MS : HONEST_MS);
      }
      await Promise.all(under);
    }),
  );
  const good = outcomes.filter(({ isGood }) => isGood);
  const times = good.map(({ ms }) => ms).sort((a, b) => a - b);
  const bad = Map.groupBy(
    outcomes.filter(({ isGood }) => !isGood),
    ({ kind }) => kind,
  );
  return {
    good: good.length / outcomes.length,
    p99: times[Math.floor(0.99 * times.length)] ?? Infinity,
    bad: [...bad].map(([kind, { length }]) => `${length} × ${kind}`).join(', '),
  };
}

/** Measures what honest callers notice of an attack. @returns also the most memory during it, as a multiple of that before */
export async function measure(target, kinds, { prepare, attack }, seconds) {
  const prepared = await prepare?.(target);
  await beHonest(kinds, AbortSignal.timeout(1_000));
  const usual = memoryMegabytes(target.pid);
  let most = usual;
  const looking = setInterval(() => (most = Math.max(most, memoryMegabytes(target.pid))), 100);
  const until = AbortSignal.timeout(1_000 * seconds);
  const [beside] = await Promise.all([beHonest(kinds, until), attack(target, prepared, until)]);
  clearInterval(looking);
  await pause(2_000);
  const { good: later } = await beHonest(kinds, AbortSignal.timeout(1_500));
  return { ...beside, memory: most / usual, later };
}
