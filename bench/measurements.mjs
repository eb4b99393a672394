// All measurements, each as medians over the rounds. In a round all candidates alternate, so that other load on the host
// affects them alike; ratios are computed within a round.
import { measure } from './load.mjs';
import { apiKey, ask, COMPARED, OTHERS, requestsOf } from './questions.mjs';
import { HANDWRITTEN, OURS_WITH_TOKEN } from './servers.mjs';
import { cost } from './targets.mjs';

/**
 * @typedef {import('./load.mjs').Turn & {ratio: number, cpuRatio: number}} Result
 * medians; `ratio`: requests/s divided by the yardstick's; `cpuRatio`: the same for requests per CPU time of server and database
 * @typedef {Record<string, Result>} Results by the candidate's name
 * @typedef {{name: string, turn: (seconds: number) => Promise<import('./load.mjs').Turn>}} Candidate
 */

/** Measured first, since access tokens are valid for ten minutes. */
const WITH_TOKENS = COMPARED.slice(0, 2);

/** Compares this server with its peers, and measures two kinds of request also with access tokens, which the peers do not support. */
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

/** Measures all other requests of the API, on this server. */
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

/** @returns {Candidate} */
function asking(name, server, question, requests, { connections }) {
  return {
    name,
    turn: async (seconds) => [await measure(server, question, requests, { seconds, connections })],
  };
}

/**
 * Measures every candidate in every round.
 *
 * @param {Candidate[]} candidates
 * @returns {Promise<Results[]>} for each figure
 */
export async function inTurns(candidates, { rounds, seconds }, yardstick = candidates[0].name) {
  for (const { turn } of candidates) await turn(1); // warm-up: compiles, plans and caches
  const figures = [];
  for (let round = 0; round < rounds; round++) {
    const measured = new Map();
    for (let i = 0; i < candidates.length; i++) {
      const { name, turn } = candidates[(i + round) % candidates.length]; // the order rotates
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

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
