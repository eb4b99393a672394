// What is measured, each as medians over the rounds. In a round all candidates have their turn one after the other, so
// that whatever else the machine does meets them alike; ratios are made within a round.
import { measure } from './load.mjs';
import { ask, COMPARED, OTHERS, requestsOf } from './questions.mjs';
import { YARDSTICK } from './servers.mjs';

/** @typedef {import('./load.mjs').Turn & {ratio: number, cpuRatio: number}} Result
 * medians; `ratio` of requests/s to the yardstick's, `cpuRatio` of requests for the same CPU time, server and database */

export const WITH_TOKENS = 'this server, access tokens';
/** Tokens live ten minutes: what is asked with them is asked first. */
const ASKED_WITH_TOKENS = 2;

/**
 * This server and the peers, the first questions with access tokens too.
 *
 * @returns {Promise<{question: string, results: Map<string, Result>}[]>}
 */
export async function compareServers(servers, dataset, tokens, plan) {
  const compared = [];
  for (const [i, question] of COMPARED.entries()) {
    if (!question.name.includes(plan.only)) continue;
    const requests = requestsOf(question, dataset.keys);
    const candidates = servers.map((server) => ({ name: server.name, server, question, requests }));
    if (i < ASKED_WITH_TOKENS) {
      const [server] = servers;
      candidates.splice(1, 0, {
        name: WITH_TOKENS,
        server,
        question,
        requests: requestsOf(question, tokens),
      });
    }
    compared.push({
      question: question.name,
      results: await askInTurns(candidates, dataset, plan, YARDSTICK),
    });
  }
  return compared;
}

/** Every other call of the API, on our server. */
export async function measureOthers(server, dataset, plan, firstEvents) {
  const candidates = OTHERS.map((question) => ({
    name: question.name,
    server,
    question,
    requests: requestsOf(question, dataset.keys, firstEvents),
  }));
  return askInTurns(candidates, dataset, { ...plan, rounds: 1 });
}

/** Latency at half of what was reached at full load: each connection pauses between its requests. */
export async function measureHalfLoad(server, dataset, plan) {
  const measured = new Map();
  for (const question of COMPARED.slice(0, 2)) {
    const requests = requestsOf(question, dataset.keys);
    const load = { ...plan, postgresPid: dataset.postgresPid };
    const { rate } = await measure(server, question, requests, load);
    const connections = 2 * plan.connections;
    const pauseMs = (1000 * connections) / (rate / 2);
    measured.set(question.name, await measure(server, question, requests, { ...load, connections, pauseMs }));
  }
  return measured;
}

/** Whether a page costs the same wherever it is, and however much its member has. */
export async function measureSize(server, dataset, plan) {
  const candidates = [];
  for (const [path, heavy] of [
    ['/api/public/events', dataset.manyEvents],
    ['/api/public/connections', dataset.manyConnections],
  ]) {
    const name = path.split('/').pop();
    const { total } = (await ask(server, heavy, path)).pagination;
    const cursor = await cursorAt(server, heavy, path, 1000);
    const one = (label, key, url) =>
      candidates.push({
        name: `${name}: ${label}`,
        server,
        question: { name: label },
        requests: [{ key, path: url }],
      });
    one('a usual member', dataset.keys[500], path);
    one(`a member with ${total.toLocaleString('en')}`, heavy, path);
    one('the same, 1,000 rows in', heavy, `${path}?cursor=${cursor}`);
  }
  return askInTurns(candidates, dataset, plan);
}

async function cursorAt(server, key, path, rows) {
  let cursor = '';
  for (let at = 0; at < rows; at += 100) {
    const url = `${path}?limit=100${cursor && `&cursor=${cursor}`}`;
    cursor = (await ask(server, key, url)).pagination.next_cursor ?? cursor;
  }
  return cursor;
}

/** One process beside two. */
export async function measureWorkers(start, dataset, plan) {
  const question = COMPARED[0];
  const servers = [await start(1), await start(2)];
  try {
    const requests = requestsOf(question, dataset.keys);
    const candidates = servers.map((server, i) => ({ name: `WORKERS=${i + 1}`, server, question, requests }));
    return await askInTurns(candidates, dataset, plan);
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** Asks each candidate its question. @returns {Promise<Map<string, Result>>} by the candidate's name */
async function askInTurns(candidates, dataset, plan, yardstick) {
  const turn = ({ server, question, requests }, seconds) =>
    measure(server, question, requests, {
      seconds,
      connections: plan.connections,
      postgresPid: dataset.postgresPid,
    });
  for (const candidate of candidates) await turn(candidate, 1); // compiled, planned, cached
  const [results] = await inTurns(candidates, { rounds: plan.rounds, yardstick }, async (candidate) => [
    await turn(candidate, plan.seconds),
  ]);
  return results;
}

/**
 * Gives every candidate its turn in every round.
 *
 * @template Candidate
 * @param {(Candidate & {name: string})[]} candidates
 * @param {{rounds: number, yardstick?: string}} plan
 * @param {(candidate: Candidate) => Promise<import('./load.mjs').Turn[]>} turn one figure, or several
 * @returns {Promise<Map<string, Result>[]>} for each of the figures the results by the candidate's name
 */
export async function inTurns(candidates, { rounds, yardstick = candidates[0].name }, turn) {
  const figures = [];
  for (let round = 0; round < rounds; round++) {
    const measured = new Map();
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[(i + round) % candidates.length]; // nobody is always first
      measured.set(candidate.name, await turn(candidate));
    }
    for (const { name } of candidates) {
      for (const [figure, one] of measured.get(name).entries()) {
        const reference = measured.get(yardstick)[figure];
        const compared = {
          ...one,
          ratio: one.rate / reference.rate,
          cpuRatio: cpuOf(reference) / cpuOf(one),
        };
        const turns = (figures[figure] ??= new Map());
        turns.set(name, [...(turns.get(name) ?? []), compared]);
      }
    }
  }
  return figures.map((turns) => new Map([...turns].map(([name, list]) => [name, medians(list)])));
}

/** Of server and database together. */
const cpuOf = ({ serverCpu, databaseCpu }) => serverCpu + databaseCpu;

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
