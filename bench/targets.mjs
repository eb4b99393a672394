// The targets that each release's figures must meet, and whether a run meets the targets.
import { HANDWRITTEN, GO, NAIVE_PROVIDER, OURS, OURS_WITH_TOKEN, RUST } from './servers.mjs';

/** @typedef {{target: string, wanted: string, measured: string, met: boolean}} Judgement */

/** By CPU time, which a busy host affects least. */
const LISTS = {
  'GET /connections (20)': 1.8,
  'GET /achievements (20)': 1.3,
  'GET /achievements?action=stats': 1.5,
};
/**
 * Judges the measured figures; omits figures that were not measured.
 *
 * @param {import('./run.mjs').Results} results
 * @returns {Judgement[]}
 */
export function judge(results) {
  return [...kept(results), ...entryPoint(results), ...ofOneCall(results), ...atRest(results)];
}

/** Speed compared with the peers. */
function kept({ compared = {}, oauth = {} }) {
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
    }
  }
  for (const [question, wanted] of Object.entries(LISTS))
    ratio(compared[question], OURS, HANDWRITTEN, wanted, `${question}, key`, 'cpuRatio');
  ratio(compared['GET /profile'], OURS, GO, 1, 'GET /profile, key', 'cpuRatio');
  for (const question of ['GET /events (20)', ...Object.keys(LISTS)])
    ratio(compared[question], OURS, RUST, 1, `${question}, key`, 'cpuRatio');
  for (const [name, byCpu] of Object.entries({
    'Authorization, signed in': 1.05,
    'Code exchange': 1.1,
    Refresh: 1.1,
  })) {
    ratio(oauth[name], OURS, NAIVE_PROVIDER, 1, name);
    ratio(oauth[name], OURS, NAIVE_PROVIDER, byCpu, name, 'cpuRatio');
  }
  return judgements;
}

/** Above and below the peak (overload.mjs), for cheap and expensive requests. */
function entryPoint({ overload = {} }) {
  const judgements = [];
  for (const [question, rows] of Object.entries(overload[OURS] ?? {})) {
    for (const [load, { refused, failed }] of Object.entries(rows).filter(([, { isHonest }]) => isHonest))
      judgements.push(
        most(
          `${question}, ${load.endsWith('%') ? `${load} of the peak` : load}: refused or failed`,
          0,
          refused + failed,
          '',
        ),
      );
    for (const [load, { ratio }] of Object.entries(rows).filter(([load]) => load.endsWith('×')))
      judgements.push(least(`${question}, ${load} the peak: answered, of the peak`, 0.85, ratio, '', 2));
    judgements.push(most(`${question}, 50 % of the peak: p99`, 25, rows['50 %'].p99, ' ms'));
    const [flood] = Object.entries(rows).filter(([, { isFlood }]) => isFlood);
    judgements.push(
      most(`${question} beside ${flood[0]}: p99 of another address`, 100, flood[1].honestP99, ' ms'),
    );
  }
  return judgements;
}

/** CPU time in µs, by server and database; sign-ins use a database whose token tables have no statistics yet. */
function ofOneCall({ compared, signIn, readWhole, others }) {
  const judgements = [];
  const profile = compared?.['GET /profile']?.[OURS];
  if (profile) judgements.push(most("GET /profile: server's CPU", 55, profile.serverCpu, ' µs'));
  for (const [which, { rate, serverCpu, databaseCpu }] of Object.entries(signIn ?? {}))
    judgements.push(
      least(`Sign-ins by password, ${which}`, 80, rate, '/s'),
      most(`Sign-ins by password, ${which}: server's CPU`, 18, serverCpu / 1000, ' ms', 1),
      most(`Sign-ins by password, ${which}: database's CPU`, 4, databaseCpu / 1000, ' ms', 1),
    );
  if (readWhole !== undefined)
    judgements.push(
      most(
        'Sign-ins by password: rows of tables read whole, before anybody analysed them',
        10,
        readWhole,
        ' rows',
        1,
      ),
    );
  const put = others?.['PUT /profile'];
  if (put)
    judgements.push(
      most("PUT /profile: server's CPU", 250, put.serverCpu, ' µs'),
      most("PUT /profile: database's CPU", 450, put.databaseCpu, ' µs'),
    );
  return judgements;
}

/** Memory, starts. */
function atRest({ compared = {}, starts }) {
  const judgements = [];
  const memory = Math.max(...Object.values(compared).map((results) => results[OURS]?.memory ?? 0));
  if (memory > 0) judgements.push(most('Memory under load', 170, memory, ' MB'));
  if (!starts) return judgements;
  judgements.push(
    most('Memory idle', 110, starts.idle, ' MB'),
    most('First start, embedded database', 2.5, starts.first, ' s', 2),
    most('Second start, embedded database', 1, starts.second, ' s', 2),
    most('Start over PostgreSQL', 0.7, starts.postgres, ' s', 2),
    most('`pua --help`', 0.15, starts.help, ' s', 2),
    most('`pua keys list`', 0.35, starts.keys, ' s', 2),
  );
  return judgements;
}

/** CPU time per request in µs, of server and database. */
export const cost = ({ serverCpu, databaseCpu }) => serverCpu + databaseCpu;

const hundredths = (wanted) => (Number.isInteger(10 * wanted) ? wanted.toFixed(1) : wanted.toFixed(2));

const judged = (target, wanted, measured, met) => ({ target, wanted, measured, met });

function atLeast(wanted, measured, target, of) {
  return judged(target, `≥ ${hundredths(wanted)} × ${of}`, `${measured.toFixed(2)} ×`, measured >= wanted);
}

/** @param {string} unit with the space before it */
function most(target, wanted, measured, unit, digits = 0) {
  return judged(target, `≤ ${wanted}${unit}`, `${said(measured, digits)}${unit}`, measured <= wanted);
}

function least(target, wanted, measured, unit, digits = 0) {
  return judged(target, `≥ ${wanted}${unit}`, `${said(measured, digits)}${unit}`, measured >= wanted);
}

const said = (measured, digits) =>
  measured.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
