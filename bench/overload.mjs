// Loads below and above the server's capacity: how many requests get a response, how fast, and whether any is rejected or fails.
import { request as send } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { request, runGenerator } from './generator.mjs';
import { AUTHORIZE } from './oauth-client.mjs';
import { OURS } from './servers.mjs';
import { cpuMicroseconds, memoryMegabytes } from './usage.mjs';

/** Closed loop, to find the server's capacity. */
const PEAK_CONNECTIONS = 32;
const PROBE_MS = 50;
/** Pause between two loads, so that the disconnection of a thousand clients is not measured with the next load. */
const SETTLE_MS = 1_000;
const HONEST_ADDRESS = '127.0.0.2';

/** Loads below capacity, without a rejection; above the peak, with 85 % of the peak served; and a flood that must not affect other callers. */
const LOADS = [
  { name: '200 clients', connections: 200, isHonest: true, short: true },
  { name: '25 %', times: 0.25, connections: 256, isHonest: true },
  { name: '50 %', times: 0.5, connections: 256, isHonest: true },
  { name: '75 %', times: 0.75, connections: 256, isHonest: true },
  { name: '2 ×', times: 2, connections: 1_000 },
  { name: '5 ×', times: 5, connections: 1_000, short: true },
  { name: 'one caller, 1,000 clients', connections: 1_000, isFlood: true, short: true },
];
const GOALS = { ratio: 0.85, halfLoadP99: 25, honestP99: 100 };
/** Minimum on any host, even if busy: a collapse (8 of 4,000 served) is below this minimum. */
const MIN_RATIO = 0.3;
/** Minimum share of responses to another caller during a flood, on any host: of about 60 probes, a busy host may reject a few. */
const MIN_HONEST = 0.9;

/**
 * @typedef {object} Overload
 * @property {number} offered requests/s; 0: closed loop
 * @property {number} rate responses/s
 * @property {number} ratio of responses to the peak
 * @property {number} cpuRatio the same for responses per CPU time of the server
 * @property {number} refused requests, with 503 or 429
 * @property {number} failed requests: with any other status, or cut off
 * @property {number} p50 ms, from when the requests were due
 * @property {number} p99 ms
 * @property {number} p999 ms
 * @property {boolean} isHonest whether none of its requests may be rejected
 * @property {boolean} isFlood
 * @property {number} honestP99 ms, of a legitimate caller with few requests, at another address
 * @property {number} honest share of that caller's requests that got a response
 * @property {number} notReady probes of /readyz without a 200 response; a peer has no /readyz
 * @property {number} memory MB, the highest seen
 */

/** The requests, of each kind that is admitted separately. */
export function overloadQuestions(dataset) {
  const ofApi = (path) => dataset.keys.slice(0, -1).map((key) => request(path, `X-API-Key: ${key}`));
  const page = (path) => [request(path, 'Accept: text/html')];
  return [
    {
      name: 'GET /profile',
      path: '/api/public/profile',
      requests: ofApi('/api/public/profile'),
      short: true,
    },
    {
      name: 'GET /events (20)',
      path: '/api/public/events',
      requests: ofApi('/api/public/events'),
      short: true,
    },
    { name: 'GET /oauth/authorize', path: AUTHORIZE, requests: page(AUTHORIZE), short: true },
    { name: 'GET /account/apps (signed out)', path: '/account/apps', requests: page('/account/apps') },
  ];
}

/**
 * @param {import('./servers.mjs').Server} server
 * @param {{path: string, requests: string[]}} question
 * @param {boolean} isShort only the loads marked as short
 * @returns {Promise<Record<string, Overload>>} the peak, and each load by its name
 */
export async function measureOverload(server, { path, requests }, dataset, isShort) {
  const seconds = isShort ? 3 : 10; // of each load
  const run = async (load) => {
    const watch = startWatching(server, path, dataset.keys.at(-1));
    const before = cpuMicroseconds(server.pid);
    const outcome = await runGenerator({
      port: Number(new URL(server.url).port),
      requests: load.isFlood ? requests.slice(0, 1) : requests,
      rate: load.rate ?? 0,
      seconds: load.seconds ?? seconds,
      connections: load.connections,
    });
    const cpu = cpuMicroseconds(server.pid) - before;
    const { answered, refused, failed, total } = outcome;
    return {
      offered: load.rate ?? 0,
      rate: answered.count / outcome.seconds,
      perCpu: total / cpu,
      refused: refused.count,
      failed,
      p50: answered.p50,
      p99: answered.p99,
      p999: answered.p999,
      isHonest: load.isHonest ?? false,
      isFlood: load.isFlood ?? false,
      ...(await watch.end()),
    };
  };
  await run({ connections: PEAK_CONNECTIONS, seconds: 2 }); // warms up code and caches
  const peak = await run({ connections: PEAK_CONNECTIONS });
  const rows = { peak };
  for (const load of LOADS.filter(({ short }) => short || !isShort)) {
    await sleep(SETTLE_MS);
    rows[load.name] = await run({ ...load, rate: load.times && Math.round(load.times * peak.rate) });
  }
  for (const row of Object.values(rows)) {
    row.ratio = row.rate / peak.rate;
    row.cpuRatio = row.perCpu / peak.perCpu;
  }
  return rows;
}

/** Probes like a load balancer, and sends requests like a member at another address. */
function startWatching(server, path, key) {
  const { port } = new URL(server.url);
  let ended = false;
  let notReady = 0;
  let memory = 0;
  const asked = [];
  const statusOf = (target, headers) =>
    new Promise((resolve) => {
      const options = { port, host: '127.0.0.1', localAddress: HONEST_ADDRESS, path: target, headers };
      send({ ...options, timeout: 5_000 }, (response) =>
        response.resume().on('end', () => resolve(response.statusCode)),
      )
        .on('timeout', function () {
          this.destroy();
        })
        .on('error', () => resolve(0))
        .end();
    });
  const watching = (async () => {
    while (!ended) {
      const start = performance.now();
      const [ready, status] = await Promise.all([
        server.name === OURS ? statusOf('/readyz') : 200,
        statusOf(path, { 'X-API-Key': key, Accept: '*/*' }),
      ]);
      if (ready !== 200) notReady++;
      asked.push({ isAnswered: status > 0 && status < 400, ms: performance.now() - start });
      memory = Math.max(memory, memoryMegabytes(server.pid));
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
    }
  })();
  return {
    end: async () => {
      ended = true;
      await watching;
      const answered = asked.filter(({ isAnswered }) => isAnswered);
      const times = answered.map(({ ms }) => ms).sort((a, b) => a - b);
      const honestP99 = times[Math.floor(0.99 * times.length)] ?? Infinity;
      return { notReady, memory, honest: answered.length / asked.length, honestP99 };
    },
  };
}

/** @returns violated targets; omits rejections below the peak, which a busy host may cause and only the table contains */
export function faultsOf(question, rows) {
  const faults = [];
  for (const { name, isHonest, isFlood } of LOADS.filter(({ name }) => name in rows)) {
    const row = rows[name];
    const say = (isWrong, what) => isWrong && faults.push(`${question}, ${name}: ${what}`);
    say(row.failed > 0, `${row.failed} failed`);
    const ratio = Math.max(row.ratio, row.cpuRatio);
    say(!isHonest && ratio < MIN_RATIO, `the response rate is ${percent(ratio)} of the peak`);
    say(isFlood && row.honest < MIN_HONEST, `another address got ${percent(row.honest)} of its responses`);
    say(row.notReady > 0, `/readyz was not 200 ${row.notReady} times`);
  }
  return faults;
}

/** Formats a table. @param rows by question (and server), then by load */
export function overloadTable(rows) {
  // prettier-ignore
  const head = [
    '', 'load', 'offered/s', 'answered/s', `of the peak (goal ${GOALS.ratio} above it)`, 'by CPU', 'refused',
    'failed', 'p50 ms', `p99 ms (goal ${GOALS.halfLoadP99} at 50 %)`, 'p99.9 ms',
    `honest p99 ms (goal ${GOALS.honestP99})`, 'honest', '/readyz red', 'memory MB',
  ];
  const lines = Object.entries(rows).flatMap(([question, loads]) =>
    Object.entries(loads).map(([load, row], i) => [
      i === 0 ? question : '',
      load,
      ...[row.offered, row.rate].map(Math.round),
      row.ratio.toFixed(2),
      row.cpuRatio.toFixed(2),
      ...[row.refused, row.failed, row.p50, row.p99, row.p999, row.honestP99].map(Math.round),
      percent(row.honest),
      ...[row.notReady, row.memory].map(Math.round),
    ]),
  );
  return [head, head.map((_, i) => (i < 2 ? '---' : '---:')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function percent(share) {
  return `${Math.round(100 * share)} %`;
}
