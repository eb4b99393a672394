// Measures the promises of docs/trust/reliability.md on two instances and a throw-away PostgreSQL, in a minute or two:
//   node bin/with-postgres.mjs node bench/promises.mjs [revocation singleUse databaseAway nastiestInput ending]
// Prints a line for each. Times depend on how busy the machine is; counts are exact. Loopback only.
import './own-node.mjs';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'node:http';
import pg from 'pg';
import { freePort } from '../bin/postgres.mjs';
import { freshDatabase, Instance, openServices, PASSWORD, Proxy } from './instances.mjs';
import { AUTHORIZE, Browser, CLIENT_ID, exchangeForm, REDIRECT_URI, refreshForm } from './oauth-client.mjs';

Agent.prototype.maxSockets = Infinity;
const ROUNDS = 20;
const AT_ONCE = 50;
const database = await freshDatabase();
const [main, channel] = [await new Proxy().start(database.url), await new Proxy().start(database.url)];
const limits = Object.fromEntries(
  ['READ', 'WRITE', 'PLATFORM', 'AUTH'].map((name) => [`RATE_LIMIT_${name}`, '0']),
);
const environment = await database.environment({ ...limits, METRICS_PORT: String(await freePort()) });
const services = await openServices(environment);
await services.addMembers(200);
await services.addClient();
const first = await new Instance('first', environment).start();
const second = await new Instance(
  'second',
  await database.environment({
    ...limits,
    PUBLIC_URL: environment.PUBLIC_URL,
    DATABASE_URL: main.url,
    DATABASE_DIRECT_URL: channel.url,
  }),
).start();
const instances = [first, second];
const sql = new pg.Client({ connectionString: database.url });
await sql.connect();

const say = (what, figure) => console.log(`${what}: ${figure}`);
const ms = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const spread = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  return `median ${ms(sorted[sorted.length >> 1])}, longest ${ms(sorted.at(-1))} of ${values.length}`;
};
const statusOf = async (instance, path, init) => {
  const response = await fetch(instance.url + path, init);
  await response.arrayBuffer();
  return response.status;
};
const me = (instance, headers) => statusOf(instance, '/api/public/me', { headers });
const post = (instance, path, form) =>
  fetch(instance.url + path, { method: 'POST', body: new URLSearchParams(form) });
/** @returns {Promise<number>} ms until it is so */
async function after(isSo) {
  const from = performance.now();
  while (!(await isSo())) await pause(2);
  return performance.now() - from;
}
const key = await services.makeKey(1);
const browser = new Browser(first);
const signIn = async (member = 1) => {
  const code = await browser.authorize({ username: `member_${member}`, password: PASSWORD });
  return (await post(first, '/oauth/token', exchangeForm(code))).json();
};

async function revocation() {
  await signIn();
  const ENDS = {
    'an access token, at /oauth/revoke': async () => {
      const { access_token: token } = await signIn();
      const end = async () => void (await post(first, '/oauth/revoke', { client_id: CLIENT_ID, token }));
      return { headers: { Authorization: `Bearer ${token}` }, end };
    },
    'a key': async (member) => {
      const key = await services.makeKey(member);
      const end = () =>
        sql.query(`UPDATE api_keys SET revoked_at = now(), revocation_reason = 'bench' WHERE id = $1`, [
          key.split('_')[2],
        ]);
      return { headers: { 'X-API-Key': key }, end };
    },
    'a member': async (member) => {
      const key = await services.makeKey(member);
      const end = () => sql.query('UPDATE users SET disabled_at = now() WHERE id = $1', [member]);
      return { headers: { 'X-API-Key': key }, end };
    },
  };
  let member = 1;
  /** @type {[how: string, harm: () => void][]} */
  const harms = [
    ['', () => undefined],
    [' while the channel of the other is cut', () => channel.cut()],
  ];
  for (const [how, harm] of harms) {
    for (const [what, make] of Object.entries(ENDS)) {
      const times = [];
      for (let round = 0; round < ROUNDS; round++) {
        const { headers, end } = await make(++member);
        for (const instance of instances)
          for (let i = 0; i < 2; i++) if ((await me(instance, headers)) !== 200) throw new Error(what);
        harm();
        await end();
        const ended = await Promise.all(
          instances.map((instance) => after(async () => (await me(instance, headers)) === 401)),
        );
        channel.mend();
        times.push(Math.max(...ended));
        if (how !== '') await pause(1_500); // until it is trusted again, or each read would look up the credential
      }
      say(`revoked, until both instances refuse ${what}${how}`, spread(times));
    }
  }
}

async function singleUse() {
  const times = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(instances[i % 2])));
  /** Repeats a request while told to try again, within the ten seconds for which a response is repeated. */
  const insist = async (ask) => {
    for (;;) {
      const answer = await ask();
      const body = await answer.text();
      if (answer.status !== 503)
        return { status: answer.status, location: answer.headers.get('location'), body };
      await pause(20);
    }
  };
  const seen = { code: new Set(), refresh: new Set(), par: new Set() };
  for (let round = 0; round < ROUNDS; round++) {
    const code = await browser.authorize();
    const exchanged = await times(AT_ONCE, (at) =>
      insist(() => post(at, '/oauth/token', exchangeForm(code))),
    );
    seen.code.add(exchanged.filter(({ status }) => status === 200).length);
    const { refresh_token: token } = await signIn();
    const refreshed = await times(AT_ONCE, (at) =>
      insist(() => post(at, '/oauth/token', refreshForm(token))),
    );
    const successors = new Set(refreshed.map(({ body }) => JSON.parse(body).refresh_token));
    seen.refresh.add(successors.size);
    const pushed = await (
      await post(first, '/oauth/par', new URLSearchParams(AUTHORIZE.split('?')[1]))
    ).json();
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: pushed.request_uri });
    const path = `/oauth/authorize?${query}`;
    const headers = { Cookie: browser.cookiesAt('/oauth/authorize') };
    const authorized = await times(AT_ONCE, (at) =>
      insist(() => fetch(at.url + path, { headers, redirect: 'manual' })),
    );
    seen.par.add(
      authorized.filter(({ location }) => location?.startsWith(REDIRECT_URI) && location.includes('code='))
        .length,
    );
  }
  const counted = (set) => `${[...set].join(' or ')} in each of ${ROUNDS} rounds`;
  say(`of ${AT_ONCE} parallel uses of a code, accepted`, counted(seen.code));
  say(`of ${AT_ONCE} parallel uses of a refresh token, successors`, counted(seen.refresh));
  say(`of ${AT_ONCE} parallel uses of a pushed request, codes`, counted(seen.par));
}

async function databaseAway() {
  const asked = [
    ['GET', '/api/public/profile', { headers: { 'X-API-Key': key } }],
    [
      'PUT',
      '/api/public/profile',
      {
        method: 'PUT',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: '{"bio":"away"}',
      },
    ],
    ['token', '/oauth/token', { method: 'POST', body: new URLSearchParams(refreshForm('x'.repeat(43))) }],
    ['authorize', AUTHORIZE, { redirect: 'manual' }],
  ];
  const away = { times: [], statuses: new Set(), api: [], ready: [] };
  for (let round = 0; round < 5; round++) {
    for (const [, path, init] of asked) await statusOf(second, path, init);
    main.cut();
    channel.cut();
    for (const [, path, init] of asked) {
      const from = performance.now();
      away.statuses.add(await statusOf(second, path, init));
      away.times.push(performance.now() - from);
    }
    away.statuses.add(`livez ${await statusOf(second, '/livez')}`);
    await after(async () => (await statusOf(second, '/readyz')) === 503);
    main.mend();
    channel.mend();
    away.api.push(await after(async () => (await statusOf(second, asked[0][1], asked[0][2])) === 200));
    away.ready.push(await after(async () => (await statusOf(second, '/readyz')) === 200));
  }
  say('database away, responses', `${[...away.statuses].join(', ')}; ${spread(away.times)}`);
  say('database back, until the API answers', spread(away.api));
  say('database back, until /readyz is 200 (after that)', spread(away.ready));
}

async function nastiestInput() {
  const platformKey = await services.makeKey(null);
  const put = (body) => [
    '/api/public/profile',
    { method: 'PUT', headers: { 'X-API-Key': key, 'Content-Type': 'application/json' }, body },
  ];
  const feedOf = (lines) => [
    '/api/platform/records',
    {
      method: 'POST',
      headers: { 'X-API-Key': platformKey, 'Content-Type': 'application/x-ndjson' },
      body: lines.join('\n'),
    },
  ];
  const record = (i, bio) =>
    JSON.stringify({ type: 'users', op: 'put', record: { id: 5_000 + i, username: `fed${i}`, bio } });
  const list = (count, make) => Array.from({ length: count }, (_, i) => make(i));
  const INPUTS = {
    'nothing but a look at the metric': ['/livez', {}],
    'arrays 8,000 deep': put('['.repeat(8_000) + ']'.repeat(8_000)),
    '1,600 unknown fields': put(`{${list(1_600, (i) => `"k${i}":1`).join(',')}}`),
    'a bio of 16 KB of emoji': put(JSON.stringify({ bio: '💙'.repeat(4_000) })),
    '16 KB of escapes': put(`{"bio":"${'\\u0041'.repeat(2_700)}"}`),
    'a query of 8,000 commas': [
      `/api/public/events?role=${','.repeat(8_000)}`,
      { headers: { 'X-API-Key': key } },
    ],
    'a request of 400 parameters to the authorization server': [
      `/oauth/authorize?${list(400, (i) => `claims${i}=%7B%7D`).join('&')}`,
      { redirect: 'manual' },
    ],
    'claims 300 deep': [
      `${AUTHORIZE}&claims=${encodeURIComponent('{"a":'.repeat(300) + '1' + '}'.repeat(300))}`,
      { redirect: 'manual' },
    ],
    'a feed of 5,000 bad lines, 8 MB': feedOf(
      list(5_000, () => `{"type":"users","x":"${'y'.repeat(1_500)}"}`),
    ),
    'a feed of 5,000 good lines, 8 MB': feedOf(list(5_000, (i) => record(i, 'ü'.repeat(400)))),
  };
  const lag = async () => {
    const text = await (await fetch(`http://127.0.0.1:${environment.METRICS_PORT}/metrics`)).text();
    return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)[1]);
  };
  for (const [what, [path, init]] of Object.entries(INPUTS)) {
    const lags = [];
    let status;
    for (let round = 0; round < 5; round++) {
      await lag(); // resets the maximum
      status = await statusOf(first, path, init);
      await pause(30);
      lags.push(await lag());
    }
    // The metric's own timer fires every 10 ms; on a busy machine others take the processor, so the minimum says most.
    say(
      `event loop late at most, by ${what} (${status})`,
      `${ms(Math.min(...lags))} to ${ms(Math.max(...lags))}`,
    );
  }
}

async function ending() {
  const exits = [];
  let [answered, dropped] = [0, 0];
  for (let round = 0; round < 5; round++) {
    let isEnding = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!isEnding) {
        // All these requests began before the signal, and so must be answered.
        await me(second, { 'X-API-Key': key }).then(
          () => answered++,
          () => dropped++,
        );
      }
    });
    await pause(300);
    const from = performance.now();
    isEnding = true;
    const code = await second.kill('SIGTERM');
    exits.push(performance.now() - from);
    if (code !== 0) throw new Error(`ended with ${code}`);
    await Promise.all(load);
    await second.start();
  }
  say(
    'SIGTERM under load, until the process has ended with 0',
    `${spread(exits)}; ${answered} answered, ${dropped} dropped`,
  );
}

const SECTIONS = { revocation, singleUse, databaseAway, nastiestInput, ending };
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(SECTIONS);
for (const name of wanted) await SECTIONS[name]();

for (const instance of instances) await instance.kill('SIGTERM');
await sql.end();
await services.dataSource.destroy();
main.stop();
channel.stop();
await database.end();
process.exit(0);
