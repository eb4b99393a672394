#!/usr/bin/env node
// Lets parts of a PostgreSQL cluster fail under load: `node bench/failover.mjs [--case kill,freeze-node] [--times 10]`. Installation and
// figures: docs/operators/failover.md. The cluster has three nodes under Patroni (deploy/patroni unchanged); two servers, members and a
// platform use it; with --replicas, DATABASE_READ_URL names the three nodes. Fails if an acknowledged write is lost or done twice, or if
// a response other than 503 is sent while there is no primary; times are only reported.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { build } from '../bin/build.mjs';
import { freePort } from '../bin/postgres.mjs';
import { Load } from './failover-load.mjs';
import { Instance } from './instances.mjs';
import { prepareMembers } from './oauth.mjs';
import { PatroniCluster } from './patroni-cluster.mjs';

/** Longer than Patroni waits for etcd before it releases the lease (ttl of patroni.yml, twice). */
const ETCD_FROZEN_MS = 12_000;
const WRITERS = 3;
const SIGNING_IN = 2;
const REFRESHING = 3;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const root = join(import.meta.dirname, '..');

/** Functions that cause a failure under load and end the failure; each resolves to a description of the failure. */
const CASES = {
  async kill(load) {
    const node = await cluster.leader();
    cluster.kill(node);
    await load.everybody(`after ${node} was killed`);
    cluster.startNode(node);
    return `${node}, the leader, was killed`;
  },
  async 'freeze-patroni'(load) {
    const node = await cluster.freezePatroni();
    await cluster.untilAnotherLeads(node);
    await load.everybody(`while Patroni is frozen on ${node}`);
    cluster.thaw(node);
    return `Patroni of ${node}, the leader, was frozen`;
  },
  async 'freeze-node'(load) {
    const node = await cluster.leader();
    cluster.freeze(node);
    await cluster.untilAnotherLeads(node);
    await load.everybody(`while ${node} is frozen`);
    cluster.thaw(node);
    return `${node}, the leader, was frozen`;
  },
  async 'freeze-etcd'() {
    cluster.freezeEtcd();
    await pause(ETCD_FROZEN_MS);
    cluster.thawEtcd();
    return `etcd was frozen for ${seconds(ETCD_FROZEN_MS)}`;
  },
  async switchover() {
    const [from, to] = await cluster.switchOver();
    await cluster.untilAnotherLeads(from);
    return `${from} handed over to ${to}`;
  },
  async 'standby-lost'(load) {
    const node = await cluster.synchronousStandby();
    cluster.kill(node);
    await load.everybody(`after ${node} was killed`);
    cluster.startNode(node);
    return `${node}, the synchronous standby, was killed`;
  },
};

const { values: flags } = parseArgs({
  options: {
    case: { type: 'string', default: Object.keys(CASES).join() },
    times: { type: 'string', default: '3' },
    replicas: { type: 'boolean', default: false },
  },
});
const cases = flags.case.split(',');
const unknown = cases.filter((name) => !(name in CASES));
if (unknown.length > 0) {
  console.error(`There is no case ${unknown.join(', ')}: ${Object.keys(CASES).join(', ')}.`);
  process.exit(2);
}

const servers = [];
/** Descriptions of observed faults. */
const faults = [];

await build();
const folder = mkdtempSync(join(tmpdir(), 'pua-failover-'));
chmodSync(folder, 0o755); // PostgreSQL runs as another user
const cluster = new PatroniCluster(folder);
process.on('SIGTERM', () => process.exit(1)); // because of a time limit: child processes end with this process
const began = performance.now();
try {
  await cluster.start();
  say('the cluster is ready');
  await drill();
} catch (error) {
  faults.push(error.stack);
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.log')))
    console.error(`\n== ${name}\n${readFileSync(join(folder, name), 'utf8').slice(-2_000)}`);
} finally {
  await Promise.all(servers.map((server) => server.kill()));
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (faults.length > 0) {
  console.error(`\nFailed:\n${[...new Set(faults)].slice(0, 20).join('\n')}`);
  process.exit(1);
}
say('no acknowledged write was lost or executed twice');
process.exit(0);

async function drill() {
  const settings = {
    PATH: process.env.PATH,
    NODE_ENV: 'production', // with its deadlines
    SECRET_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: cluster.url,
    ...(flags.replicas ? { DATABASE_READ_URL: cluster.nodeUrls.join(' ') } : {}),
    LOG_LEVEL: 'error',
    HOST: '127.0.0.1',
    RATE_LIMIT_READ: '0',
    RATE_LIMIT_WRITE: '0',
    RATE_LIMIT_AUTH: '0',
    RATE_LIMIT_PLATFORM: '0',
  };
  await pua(settings, 'db', 'migrate');
  const callers = await makeCallers(settings);
  const first = String(await freePort());
  for (const port of [first, String(await freePort())]) {
    const environment = { ...settings, PORT: port, PUBLIC_URL: `http://127.0.0.1:${first}` };
    const log = createWriteStream(join(folder, `server-${port}.log`));
    servers.push(await new Instance('a server', environment, log).start());
  }
  say('two servers are ready');

  const rows = [];
  for (const name of cases) {
    const load = new Load(servers, callers, query);
    try {
      for (let time = 1; time <= Number(flags.times); time++) {
        await load.everybody('while all is well');
        load.beginIncident();
        const what = await CASES[name](load);
        await cluster.untilWhole();
        await load.everybody(`after ${what}`);
        load.endIncident();
        const gaps = Object.entries(load.gaps.at(-1)).map(([kind, ms]) => `${kind} ${seconds(ms)}`);
        say(`${name} ${time} of ${flags.times}: ${what}; longest interruptions: ${gaps.join(', ')}`);
      }
      await load.end();
    } finally {
      faults.push(...load.faults.map((fault) => `${name}: ${fault}`));
    }
    rows.push(rowOf(name, load));
  }
  const doctor = await pua(settings, 'doctor').catch((error) => error.message);
  if (/^fail/m.test(doctor)) faults.push(doctor);
  console.log(`
| Case | Acknowledged writes | Lost | Done twice | Without a write, median | at most | Without a read, median | at most |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
${rows.join('\n')}
`);
}

async function makeCallers(settings) {
  const scopes = (names) => ['--name', 'drill', '--scopes', names];
  const keys = [];
  for (let i = 0; i < WRITERS; i++) {
    await pua(settings, 'users', 'create', '--username', `writer-${i}`);
    keys.push(
      await pua(settings, 'keys', 'create', '--user', `writer-${i}`, ...scopes('profile:read,profile:write')),
    );
  }
  const feedKey = await pua(settings, 'keys', 'create', '--platform', ...scopes('platform:write'));
  const writers = await query(
    "SELECT id, version::int FROM users WHERE username LIKE 'writer-%' ORDER BY username",
  );
  const signing = await query(
    `INSERT INTO users (username) SELECT 'member_' || n FROM generate_series(1, ${SIGNING_IN + REFRESHING}) n RETURNING id, username`,
  );
  await prepareMembers({ url: cluster.url, members: signing.map(({ id }) => id) });
  const members = signing.map(({ username }) => ({ username, password: 'correct horse battery staple' }));
  return {
    writers: writers.map((writer, i) => ({ ...writer, key: keys[i], n: 0 })),
    feed: { key: feedKey, organizer: Number(writers[0].id), ids: [] },
    signingIn: members.slice(0, SIGNING_IN),
    refreshing: members.slice(SIGNING_IN),
  };
}

function rowOf(name, { acknowledged, lost, twice, gaps }) {
  const writes = Object.keys(acknowledged).filter((kind) => kind !== 'read');
  const sum = writes.reduce((all, kind) => all + acknowledged[kind], 0);
  const times = [writes, ['read']].flatMap((kinds) => {
    const longest = gaps.map((gap) => Math.max(...kinds.map((kind) => gap[kind])));
    const sorted = longest.sort((one, other) => one - other);
    return [seconds(sorted[Math.floor(sorted.length / 2)]), seconds(sorted.at(-1))];
  });
  return `| ${[name, sum.toLocaleString('en'), lost, twice, ...times].join(' | ')} |`;
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
