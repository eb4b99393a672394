// What the figures of a run must be, and whether they are.
import { HANDWRITTEN, EXPRESS, NAIVE_PROVIDER, OURS, OURS_WITH_TOKEN } from './servers.mjs';

/** @typedef {{target: string, wanted: string, measured: string, met: boolean, remark?: string}} Judgement */

const LISTS = ['GET /connections (20)', 'GET /achievements (20)', 'GET /achievements?action=stats'];
/** Of what must cost the same wherever it is: measured again, the same thing differs by this much too. */
const ALIKE = 1.5;

/** Why a target is missed, where it is: by the beginning of its name. What was tried stands in docs/performance.md. */
const REASONS = {
  'GET /events':
    'PostgreSQL takes half of the time, to make 12 KB of text; a third of the other half is garbage collection',
  'Code exchange':
    'hashed ids, a lock on the grant, single use and an audit line cost more than one table without them',
  Refresh: 'the same, and the answer is kept sealed for who asks again within 10 s',
  'GET /profile at half load':
    'a collection of the heap takes 2 to 15 ms, while load generator and PostgreSQL use the same two processors',
  'GET /events (20) at half load': 'the same',
  'Memory under load':
    '44 MB are Node before anything is loaded, 50 MB are alive; less is paid for in collections',
  'GET /connections (20), the same': 'whether there is a page before this one is a look-up of its own',
};

/**
 * Judges what was measured; what was not measured is left out.
 *
 * @param {import('./run.mjs').Results} results
 * @returns {Judgement[]}
 */
export function judge({ compared = {}, oauth = {}, halfLoad, size, workers, flat }) {
  const judgements = [];
  const ratio = (results, name, of, wanted, label) => {
    if (!results?.[name] || !results[of]) return;
    const measured = results[name].ratio / results[of].ratio;
    judgements.push(atLeast(wanted, measured, label, of));
  };
  for (const [question, wanted] of [
    ['GET /profile', 1],
    ['GET /events (20)', 1.5],
  ]) {
    for (const [candidate, credential] of [
      [OURS, 'key'],
      [OURS_WITH_TOKEN, 'access token'],
    ]) {
      ratio(compared[question], candidate, HANDWRITTEN, wanted, `${question}, ${credential}`);
      ratio(compared[question], candidate, EXPRESS, 2, `${question}, ${credential}`);
    }
  }
  for (const question of LISTS) ratio(compared[question], OURS, HANDWRITTEN, 1, `${question}, key`);
  for (const name of ['Code exchange', 'Refresh']) ratio(oauth[name], OURS, NAIVE_PROVIDER, 1, name);
  for (const [question, { p50, p99 }] of Object.entries(halfLoad ?? {}))
    judgements.push(atMost(3, p99 / p50, `${question} at half load: p99`, 'p50'));

  const memory = Math.max(...Object.values(compared).map((results) => results[OURS]?.memory ?? 0));
  if (memory > 0)
    judgements.push({
      target: 'Memory under load',
      wanted: '≤ 200 MB',
      measured: `${memory.toFixed(0)} MB`,
      met: memory <= 200,
    });
  if (workers) {
    const [one, two] = Object.values(workers);
    const judgement = atLeast(1.5, two.ratio, 'Two processes, WORKERS=2', 'one');
    const used = one.busy - one.others;
    const room = 1 / used;
    const remark = `one process, PostgreSQL and the load generator took ${Math.round(100 * used)} % of the machine: more than ${room.toFixed(2)} × is not to be had here`;
    judgements.push({ ...judgement, ...(room < 1.5 ? { remark } : {}) });
  }
  for (const [question, results] of Object.entries(flat?.compared ?? {})) {
    const [small, large] = Object.values(results);
    const [from, to] = flat.sizes.map((users) => users.toLocaleString('en'));
    judgements.push(atMost(1.5, cost(large) / cost(small), `${question}, ${to} users: CPU`, `${from} users`));
  }
  for (const [list, { usual, ...others }] of Object.entries(size ?? {})) {
    for (const [name, result] of Object.entries(others))
      judgements.push(atMost(ALIKE, cost(result) / cost(usual), `${list}, ${name}: CPU`, 'usual member'));
  }
  return judgements.map((judgement) => ({ remark: reasonOf(judgement), ...judgement }));
}

/** The longest beginning that fits counts. */
function reasonOf({ target, met }) {
  if (met) return undefined;
  const [reason] = Object.entries(REASONS)
    .filter(([beginning]) => target.startsWith(beginning))
    .sort(([a], [b]) => b.length - a.length);
  return reason?.[1];
}

/** µs of CPU a request, of server and database. */
export const cost = ({ serverCpu, databaseCpu }) => serverCpu + databaseCpu;

function atLeast(wanted, measured, target, of) {
  return {
    target,
    wanted: `≥ ${wanted.toFixed(1)} × ${of}`,
    measured: `${measured.toFixed(2)} ×`,
    met: measured >= wanted,
  };
}

function atMost(wanted, measured, target, of) {
  return {
    target,
    wanted: `≤ ${wanted.toFixed(1)} × ${of}`,
    measured: `${measured.toFixed(2)} ×`,
    met: measured <= wanted,
  };
}
