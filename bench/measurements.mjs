// All measurements, each as medians over the rounds. In a round all candidates take turns, so that other load on the machine
// affects them alike; ratios are computed within a round.
import { spawn } from 'node:child_process';
import { measure } from './load.mjs';
import { request, runAgainstCanned, runGenerator } from './generator.mjs';
import { Flow, signIn } from './oauth.mjs';
import { refreshForm } from './oauth-client.mjs';
import { watchPauses } from './pauses.mjs';
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

/** Of the generator alone, at each rate. */
const NOISE_SECONDS = 5;

/** Whose tail is looked at: each with its peak in requests/s, and requests for so many. */
function tailKinds(server, dataset, members, plan) {
  const keys = dataset.keys.map(apiKey);
  const ofApi = (question) => ({
    name: question.name,
    peak: async () => (await measure(server, question, requestsOf(question, keys), plan)).rate,
    requests: () => keys.map(({ header, value }) => request(question.path, `${header}: ${value}`, question)),
  });
  const token = {
    name: 'Refresh',
    async peak() {
      this.browsers = (await signIn(server, members.slice(0, 32))).browsers;
      return (await (await this.flow(CODES_AT_ONCE)).refresh()).rate;
    },
    // Each token can be used once.
    async requests(count) {
      const tokens = [];
      while (tokens.length < count)
        tokens.push(...(await this.flow(CODES_AT_ONCE)).refreshTokens.filter(Boolean));
      return tokens.map((one) =>
        request('/oauth/token', '', { method: 'POST', ...formOf(refreshForm(one)) }),
      );
    },
    async flow(count) {
      const flow = new Flow(server, this.browsers, count);
      await flow.authorize();
      await flow.exchange();
      return flow;
    },
  };
  return [...COMPARED.slice(0, 2), OTHERS.find(({ method }) => method === 'PUT')].map(ofApi).concat(token);
}

/** How many codes are made before they are redeemed: they are valid for a minute. */
const CODES_AT_ONCE = 2_000;

const formOf = (fields) => ({
  body: new URLSearchParams(fields).toString(),
  type: 'application/x-www-form-urlencoded',
});

/**
 * Latency at fixed request rates, whether or not the server keeps up (an open loop), up to the slowest of a thousand; beside it what
 * the generator measures by itself at that rate, and how long the server, the database and the machine did nothing meanwhile.
 *
 * @param {import('./servers.mjs').Server} server that traces its collections (`--trace-gc`)
 * @returns {Promise<Record<string, Record<string, Offered>>>} kind of request → share of the peak
 *
 * @typedef {object} Offered latencies in ms from when each request was due
 * @property {number} share of the peak
 * @property {number} rate answers/s
 * @property {number} p50
 * @property {number} p99
 * @property {number} p999
 * @property {{p50: number, p99: number, p999: number}} noise of the generator alone
 * @property {import('./pauses.mjs').Pauses} pauses
 * @property {{scavenge: number, full: number}} collections of the server's heap: the longest of each kind in ms
 * @property {number} refused requests
 * @property {number} failed requests
 */
export async function measureOffered(server, dataset, members, plan) {
  const measured = {};
  for (const kind of tailKinds(server, dataset, members, plan)) {
    const peak = await kind.peak();
    const rows = (measured[kind.name] = {});
    for (const share of OFFERED) {
      const [rate, seconds] = [Math.round(share * peak), plan.rounds * plan.seconds];
      const requests = await kind.requests(rate * seconds);
      const load = { requests, rate, seconds, connections: OPEN_CONNECTIONS };
      server.collections.length = 0;
      const [{ outcome }, pauses] = await Promise.all([
        runGenerator({ ...load, port: Number(new URL(server.url).port) }),
        watchPauses(server, dataset.url, seconds),
      ]);
      const collections = [...server.collections];
      const { outcome: alone } = await runAgainstCanned(
        { ...load, seconds: NOISE_SECONDS },
        Math.round(outcome.bytes),
      );
      const longest = (kind) =>
        Math.max(0, ...collections.filter((one) => one.kind === kind).map(({ ms }) => ms));
      rows[`${100 * share} % of ${Math.round(peak).toLocaleString('en')}/s`] = {
        share,
        rate: outcome.answered.count / outcome.seconds,
        ...latenciesOf(outcome),
        noise: latenciesOf(alone),
        pauses,
        collections: { scavenge: longest('Scavenge'), full: longest('Mark-Compact') },
        refused: outcome.refused.count,
        failed: outcome.failed + outcome.unanswered,
      };
    }
  }
  return measured;
}

const latenciesOf = ({ answered: { p50, p99, p999 } }) => ({ p50, p99, p999 });

/** Filters and sorts whose costs are compared with the plain list: of members like most, and of those with very many. */
const FILTERS = {
  '/api/public/events': ['time_filter=past', 'q=meeting&sort=title', 'updated_since=2024-06-01T00:00:00Z'],
  '/api/public/connections': ['q=ad', 'q=ad&sort=display_name', 'status=accepted,pending_sent'],
};
/** Calls of a member with very many, of which the slowest counts, after one that compiles and caches. */
const TRIES = 10;

/** @returns {Promise<{usual: Record<string, Results>, big: Record<string, number>}>} list → filter → result; call → the slowest in ms */
export async function measureFilters(server, dataset, plan) {
  const [usual, big] = [{}, {}];
  const bigKeys = {
    '/api/public/events': dataset.manyEvents,
    '/api/public/connections': dataset.manyConnections,
  };
  for (const [path, filters] of Object.entries(FILTERS)) {
    const list = `GET ${path.replace('/api/public', '')}`;
    const candidates = ['', ...filters].map((filter) => {
      const question = { name: filter, path: filter ? `${path}?${filter}` : path };
      return asking(
        filter || 'plain',
        server,
        question,
        requestsOf(question, dataset.keys.map(apiKey)),
        plan,
      );
    });
    [usual[list]] = await inTurns(candidates, plan);
    for (const filter of filters) {
      const times = [];
      for (let n = 0; n <= TRIES; n++) {
        const asked = performance.now();
        await ask(server, apiKey(bigKeys[path]), `${path}?${filter}`);
        times.push(performance.now() - asked);
      }
      big[`${list}?${filter}`] = Math.max(...times.slice(1));
    }
  }
  return { usual, big };
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
 * instructions take longer (frequency, shared caches), which is the machine's cost of a second process and not the server's. Then that one
 * with as many of the clients as each of two, four and eight processes would have.
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
    ...[2, 4, 8].map((share) => ({
      name: `the same, ${load.connections / share} clients`,
      workers: 1,
      isBesideLoop: true,
      share,
    })),
  ].map(({ name, workers, isBesideLoop, share = 1 }) => ({
    name,
    async turn(seconds) {
      const server = await start(workers);
      const loop = isBesideLoop && spawn(process.execPath, ['-e', 'for (;;);']);
      try {
        await measure(server, question, requests, { ...load, seconds: workers * WARM_UP_SECONDS });
        const connections = load.connections / share;
        return [await measure(server, question, requests, { connections, seconds })];
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
