// All measurements, each as medians over the rounds. In a round all candidates take turns, so that other load on the machine
// affects them alike; ratios are computed within a round.
import { spawn } from 'node:child_process';
import { measure } from './load.mjs';
import { request, runGenerator } from './generator.mjs';
import { apiKey, ask, COMPARED, OTHERS, requestsOf } from './questions.mjs';
import { HANDWRITTEN, OURS_WITH_TOKEN } from './servers.mjs';
import { cost } from './targets.mjs';

/**
 * @typedef {import('./load.mjs').Turn & {ratio: number, cpuRatio: number}} Result
 * medians; `ratio` of requests/s to the yardstick's, `cpuRatio` of requests per CPU time, of server and database
 * @typedef {Record<string, Result>} Results by the candidate's name
 * @typedef {{name: string, turn: (seconds: number) => Promise<import('./load.mjs').Turn>}} Candidate
 */

/** Measured first, since access tokens live ten minutes. */
const WITH_TOKENS = COMPARED.slice(0, 2);

/** This server beside its peers; two kinds of request also with access tokens, which the peers do not know. */
export async function compareServers(servers, dataset, tokens, plan) {
  const compared = {};
  for (const question of plan.questions) {
    const keys = requestsOf(question, dataset.keys.map(apiKey));
    const candidates = servers.map((server) => asking(server.name, server, question, keys, plan));
    if (WITH_TOKENS.includes(question)) {
      const requests = requestsOf(question, tokens.filter(Boolean));
      candidates.splice(1, 0, asking(OURS_WITH_TOKEN, servers[0], question, requests, plan));
    }
    [compared[question.name]] = await inTurns(candidates, plan, HANDWRITTEN);
  }
  return compared;
}

/** Measures every other call of the API, on this server. */
export async function measureOthers(server, dataset, plan) {
  const keys = dataset.keys.map(apiKey);
  const firstEvents = [];
  for (const key of keys) firstEvents.push((await ask(server, key, '/api/public/events')).data[0].id);
  const candidates = OTHERS.map((question) =>
    asking(question.name, server, question, requestsOf(question, keys, firstEvents), plan),
  );
  const [results] = await inTurns(candidates, { ...plan, rounds: 1 });
  return results;
}

/** Shares of the rate at full load. */
export const OFFERED = [0.25, 0.5, 0.75];
/** Enough for all requests under way at once, whatever the latency. */
const OPEN_CONNECTIONS = 256;

/**
 * Latency at fixed request rates, whether or not the server keeps up (an open loop): kind of request → share of the peak.
 *
 * @returns {Promise<Record<string, Record<string, {rate: number, p50: number, p99: number, refused: number, failed: number}>>>} `rate` is the
 * answered rate; latencies are in ms from when each request was due
 */
export async function measureOffered(server, dataset, plan) {
  const measured = {};
  for (const question of COMPARED.slice(0, 2)) {
    const keys = dataset.keys.map(apiKey);
    const { rate: peak } = await measure(server, question, requestsOf(question, keys), plan);
    const requests = keys.map(({ header, value }) => request(question.path, `${header}: ${value}`));
    const rows = (measured[question.name] = {});
    for (const share of OFFERED) {
      const { outcome } = await runGenerator({
        port: Number(new URL(server.url).port),
        requests,
        rate: Math.round(share * peak),
        seconds: plan.rounds * plan.seconds,
        connections: OPEN_CONNECTIONS,
      });
      const { answered, refused, failed, unanswered, seconds } = outcome;
      rows[`${100 * share} % of ${Math.round(peak).toLocaleString('en')}/s`] = {
        share,
        rate: answered.count / seconds,
        p50: answered.p50,
        p99: answered.p99,
        refused: refused.count,
        failed: failed + unanswered,
      };
    }
  }
  return measured;
}

/** Measures whether a page costs the same at any position and size of a list: list → case → result. */
export async function measureSize(server, dataset, plan) {
  const measured = {};
  for (const { path, heavy } of [
    { path: '/api/public/events', heavy: apiKey(dataset.manyEvents) },
    { path: '/api/public/connections', heavy: apiKey(dataset.manyConnections) },
  ]) {
    const { total } = (await ask(server, heavy, path)).pagination;
    const cursor = await cursorAt(server, heavy, path, 1000);
    const one = (name, credential, url) =>
      asking(name, server, { name, path: url }, [{ credential, path: url }], plan);
    [measured[`GET ${path.replace('/api/public', '')} (20)`]] = await inTurns(
      [
        one('usual', apiKey(dataset.keys[500]), path),
        one(`member with ${total.toLocaleString('en')}`, heavy, path),
        one('the same, 1,000 rows in', heavy, `${path}?cursor=${cursor}`),
      ],
      plan,
    );
  }
  return measured;
}

async function cursorAt(server, credential, path, rows) {
  let cursor = '';
  for (let at = 0; at < rows; at += 100) {
    const url = `${path}?limit=100${cursor && `&cursor=${cursor}`}`;
    cursor = (await ask(server, credential, url)).pagination.next_cursor ?? cursor;
  }
  return cursor;
}

/** For each process, since each compiles the code for itself: in its first seconds a request costs twice as much as later. */
const WARM_UP_SECONDS = 6;

/**
 * Measures one process and two, each under 64 clients, and one beside a busy loop: where two processes keep two processors busy, the same
 * instructions take longer (frequency, shared caches), which is the machine's cost of a second process and not the server's.
 *
 * @param start starts the server with so many processes
 */
export async function measureWorkers(start, dataset, plan) {
  const question = COMPARED[0];
  const requests = requestsOf(question, dataset.keys.map(apiKey));
  const load = { ...plan, connections: 2 * plan.connections };
  const candidates = [
    { name: 'WORKERS=1', workers: 1 },
    { name: 'WORKERS=2', workers: 2 },
    { name: 'WORKERS=1, beside a busy loop', workers: 1, isBesideLoop: true },
  ].map(({ name, workers, isBesideLoop }) => ({
    name,
    async turn(seconds) {
      const server = await start(workers);
      const loop = isBesideLoop && spawn(process.execPath, ['-e', 'for (;;);']);
      try {
        await measure(server, question, requests, { ...load, seconds: workers * WARM_UP_SECONDS });
        return [await measure(server, question, requests, { ...load, seconds })];
      } finally {
        if (loop) loop.kill('SIGKILL');
        await server.stop();
      }
    },
  }));
  const [results] = await inTurns(candidates, plan);
  return results;
}

/** Measures whether a request costs the same on two databases of different sizes, in turns. */
export async function compareSizes(servers, datasets, plan) {
  const compared = {};
  for (const question of COMPARED) {
    const candidates = servers.map((server, i) => {
      const { keys, counts } = datasets[i];
      const name = `${counts.users.toLocaleString('en')} users`;
      return asking(name, server, question, requestsOf(question, keys.map(apiKey)), plan);
    });
    [compared[question.name]] = await inTurns(candidates, plan);
  }
  return compared;
}

/** @returns {Candidate} */
function asking(name, server, question, requests, { connections }) {
  return {
    name,
    turn: async (seconds) => [await measure(server, question, requests, { seconds, connections })],
  };
}

/**
 * Gives every candidate its turn in every round.
 *
 * @param {Candidate[]} candidates
 * @returns {Promise<Results[]>} for each figure
 */
export async function inTurns(candidates, { rounds, seconds }, yardstick = candidates[0].name) {
  for (const { turn } of candidates) await turn(1); // compiled, planned, cached
  const figures = [];
  for (let round = 0; round < rounds; round++) {
    const measured = new Map();
    for (let i = 0; i < candidates.length; i++) {
      const { name, turn } = candidates[(i + round) % candidates.length]; // none is always first
      measured.set(name, await turn(seconds));
    }
    for (const { name } of candidates) {
      for (const [figure, one] of measured.get(name).entries()) {
        const reference = measured.get(yardstick)[figure];
        const ratios = { ratio: one.rate / reference.rate, cpuRatio: cost(reference) / cost(one) };
        const turns = ((figures[figure] ??= {})[name] ??= []);
        turns.push({ ...one, ...ratios });
      }
    }
  }
  return figures.map((turns) =>
    Object.fromEntries(Object.entries(turns).map(([name, list]) => [name, medians(list)])),
  );
}

function medians(turns) {
  const all = (name) => turns.map((turn) => turn[name]);
  const result = Object.fromEntries(Object.keys(turns[0]).map((name) => [name, median(all(name))]));
  return { ...result, failed: all('failed').reduce((a, b) => a + b, 0) };
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
