// The targets for a run's figures, and whether they are met.
import { cpus } from 'node:os';
import { HANDWRITTEN, EXPRESS, NAIVE_PROVIDER, OURS, OURS_WITH_TOKEN } from './servers.mjs';

/** @typedef {{target: string, wanted: string, measured: string, met: boolean, remark?: string}} Judgement */

/** By CPU time, which a busy machine affects least. */
const LISTS = {
  'GET /connections (20)': 1.8,
  'GET /achievements (20)': 1.3,
  'GET /achievements?action=stats': 1.5,
};
/** As multiples of p50. */
const P99_AT_HALF_LOAD = { 'GET /profile': 4, 'GET /events (20)': 6 };
/** Tolerance for equal costs: repeated measurements of the same thing differ as much. */
const ALIKE = 1.5;

/** Why targets are missed, by the beginning of their names. docs/performance.md tells what was tried. */
const REASONS = {
  'GET /events':
    'PostgreSQL takes half of the time, to make 12 KB of text; a third of the other half is garbage collection',
  'GET /profile, access token':
    'the same statement and the same work as for a key, which is remembered too: rounds differ by more than the two do',
  'GET /achievements (20)':
    'PostgreSQL makes the JSON of each item, where the peer’s makes rows of columns, which its server then has to make JSON of',
  'GET /achievements?action=stats':
    'both read the whole catalogue with what the member has earned of it, which is most of the work',
  'GET /profile, key':
    'half of it is Node’s and the system’s, for the peer too; runs differ by more than a tenth',
  'Authorization, signed in':
    'most of it is the same code as the peer’s (oidc-provider, Koa, node:http); hashed ids, a sealed session and an audit line are the rest',
  'Two processes, WORKERS=2': 'each has half as many requests at a time to send to PostgreSQL in one write',
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
export function judge({ compared = {}, oauth = {}, offered, signIn, size, workers, flat }) {
  const judgements = [];
  const ratio = (results, name, of, wanted, label, by = 'ratio') => {
    if (!results?.[name] || !results[of]) return;
    const measured = results[name][by] / results[of][by];
    judgements.push(atLeast(wanted, measured, by === 'ratio' ? label : `${label}, by CPU`, of));
  };
  for (const [question, wanted, byCpu] of [
    ['GET /profile', 1.6, 1.9],
    ['GET /events (20)', 1.7, 2],
  ]) {
    for (const [candidate, credential] of [
      [OURS, 'key'],
      [OURS_WITH_TOKEN, 'access token'],
    ]) {
      ratio(compared[question], candidate, HANDWRITTEN, wanted, `${question}, ${credential}`);
      ratio(compared[question], candidate, HANDWRITTEN, byCpu, `${question}, ${credential}`, 'cpuRatio');
      ratio(compared[question], candidate, EXPRESS, 2, `${question}, ${credential}`);
    }
  }
  for (const [question, wanted] of Object.entries(LISTS))
    ratio(compared[question], OURS, HANDWRITTEN, wanted, `${question}, key`, 'cpuRatio');
  for (const name of ['Authorization, signed in', 'Code exchange', 'Refresh'])
    ratio(oauth[name], OURS, NAIVE_PROVIDER, 1, name);
  if (signIn) {
    const { rate } = signIn[OURS];
    judgements.push({
      target: 'Sign-ins by password',
      wanted: '≥ 80/s',
      measured: `${rate.toFixed(0)}/s`,
      met: rate >= 80,
      remark: `one takes ${Math.round(signIn[OURS].serverCpu / 1000)} ms of the server's CPU and ${Math.round(signIn[OURS].databaseCpu / 1000)} ms of the database's`,
    });
  }
  for (const [question, wanted] of Object.entries(P99_AT_HALF_LOAD)) {
    const half = Object.values(offered?.[question] ?? {}).find(({ share }) => share === 0.5);
    if (half) judgements.push(atMost(wanted, half.p99 / half.p50, `${question} at half load: p99`, 'p50'));
  }
  for (const [question, rows] of Object.entries(offered ?? {}))
    for (const { share, refused, failed } of Object.values(rows).filter((row) => row.share <= 0.75))
      judgements.push({
        target: `${question} at ${100 * share} % of the peak: refused or failed`,
        wanted: '0',
        measured: String(refused + failed),
        met: refused + failed === 0,
      });

  const memory = Math.max(...Object.values(compared).map((results) => results[OURS]?.memory ?? 0));
  if (memory > 0)
    judgements.push({
      target: 'Memory under load',
      wanted: '≤ 180 MB',
      measured: `${memory.toFixed(0)} MB`,
      met: memory <= 180,
    });
  if (workers) {
    const [, two, oneBesideLoop] = Object.values(workers);
    const target = 'Two processes, WORKERS=2';
    // Two processes, PostgreSQL and the load need more than two processors.
    judgements.push(
      cpus().length < 4
        ? atMost(1.15, cost(two) / cost(oneBesideLoop), `${target}: CPU`, 'one beside a busy loop')
        : atLeast(1.5, two.ratio, target, 'one'),
    );
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

/** Finds the reason; the longest matching beginning counts. */
function reasonOf({ target, met }) {
  if (met) return undefined;
  const [reason] = Object.entries(REASONS)
    .filter(([beginning]) => target.startsWith(beginning))
    .sort(([a], [b]) => b.length - a.length);
  return reason?.[1];
}

/** CPU time per request in µs, of server and database. */
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
