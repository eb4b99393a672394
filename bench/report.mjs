// The results of a run as Markdown and as a plot.
import { barChart } from './plot.mjs';
import { overloadTable } from './overload.mjs';
import { cost, judge } from './targets.mjs';

const COLUMNS = {
  'requests/s': ({ rate }) => Math.round(rate).toLocaleString('en'),
  ratio: ({ ratio }) => ratio.toFixed(2),
  'ratio by CPU': ({ cpuRatio }) => cpuRatio.toFixed(2),
  'p50 ms': ({ p50 }) => p50.toFixed(1),
  'p99 ms': ({ p99 }) => p99.toFixed(1),
  'server CPU µs': ({ serverCpu }) => serverCpu.toFixed(0),
  'database CPU µs': ({ databaseCpu }) => databaseCpu.toFixed(0),
  'memory MB': ({ memory }) => memory.toFixed(0),
  refused: ({ refused }) => refused.toLocaleString('en'),
  'others %': ({ others }) => (100 * others).toFixed(0),
};
const ALL = Object.keys(COLUMNS).filter((name) => name !== 'refused');
const each = (digits, ...numbers) => numbers.map((number) => number.toFixed(digits)).join(', ');
/** Of a load that is offered whether or not the server keeps up. */
const OFFERED = {
  'requests/s': COLUMNS['requests/s'],
  'p50, p99, p99.9 ms': ({ p50, p99, p999 }) => each(1, p50, p99, p999),
  'generator alone': ({ noise: { p50, p99, p999 } }) => each(1, p50, p99, p999),
  'longest pause ms: server, database, timer': ({ pauses: { server, database, machine } }) =>
    each(0, server.longest, database.longest, machine.longest),
  'longest collection ms: young, full': ({ collections: { scavenge, full } }) => each(1, scavenge, full),
  'checkpoints, autovacuums': ({ pauses: { work } }) => `${work.checkpoints}, ${work.autovacuums}`,
  refused: COLUMNS.refused,
};
const WITHOUT_RATIOS = ALL.filter((name) => !name.startsWith('ratio'));
/** Shown only if there are failures. */
const FAILED = { failed: ({ failed }) => failed.toLocaleString('en') };

/**
 * @param {import('./run.mjs').Results} results
 * @param {{judged: boolean}} options whether the run was long enough to judge the targets
 */
export function markdownOf(results, { judged }) {
  const {
    compared = {},
    oauth = {},
    signIn,
    others,
    offered,
    overload,
    size,
    filters,
    workers,
    flat,
    starts,
    writing,
  } = results;
  const several = (tables, columns, suffix = '') =>
    Object.entries(tables ?? {}).map(([name, rows]) => section(name + suffix, rows, columns));
  return [
    introduction(results),
    judged && targets(judge(results)),
    ...several(compared, ALL),
    ...several(oauth, ALL),
    signIn && section('Sign-in: from the app to its tokens, by password (argon2id)', signIn, WITHOUT_RATIOS),
    others && section('The other calls', others, WITHOUT_RATIOS),
    ...Object.entries(offered ?? {}).map(([name, rows]) =>
      section(`${name}, so much offered in an open loop`, rows, Object.keys(OFFERED), OFFERED),
    ),
    overload && `## Below and above the peak\n\n${overloadTable(byQuestion(overload))}`,
    ...several(size, ['requests/s', 'p50 ms', 'server CPU µs', 'database CPU µs'], ', one member'),
    ...several(filters?.usual, ['requests/s', 'p50 ms', 'server CPU µs', 'database CPU µs'], ', filtered'),
    workers && `${section('Several processes (GET /profile)', workers, ALL)}\n\n${modelOf(workers)}`,
    ...several(flat?.compared, ALL, `, two databases (${flat?.date})`),
    starts && figures('Starts and installation (seconds, MB)', starts),
    writing && figures('Writing', writing),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

function introduction({ date, machine, plan, counts, again = {} }) {
  const parts = Object.entries(again).map(([part, at]) => `${part} (${at.slice(0, 16)} UTC)`);
  const later = parts.length > 0 ? ` Measured again since, alone: ${parts.join(', ')}.` : '';
  const rows = Object.entries(counts).map(([table, n]) => `${n.toLocaleString('en')} ${table}`);
  return `# Benchmark

${date}, ${machine}. Load generator, servers and PostgreSQL share the machine. ${plan.rounds} × ${plan.seconds} s a
server, ${plan.connections} connections, 1,000 members. Medians; ratios are of requests/s within a round, "by CPU" of requests for
the same CPU time of server and database, which a busy machine changes least. CPU is per request; memory is of all processes of
the server under load; "others" is the share of the machine's CPU that went to what is not of the benchmark: with more than a
few percent only ratios mean something.${later}

Data: ${rows.join(', ')}.`;
}

/** What a request costs one of so many processes, computed from what it costs one that has as many clients; two were measured, too. */
function modelOf(workers) {
  const [, two, ...alone] = Object.values(workers);
  const [computed2, computed4, computed8] = alone
    .slice(1)
    .map((part) => (cost(part) / cost(alone[0])).toFixed(2));
  return `Computed, since each of N processes has an Nth of the clients: two cost ${computed2} × one (measured: ${(cost(two) / cost(alone[0])).toFixed(2)} ×), four ${computed4} ×, eight ${computed8} ×.`;
}

function targets(judgements) {
  const rows = judgements.map(({ target, wanted, measured, met, remark }) => [
    target,
    wanted,
    measured,
    `${met ? 'met' : '**NOT met**'}${remark ? `: ${remark}` : ''}`,
  ]);
  return `## Targets\n\n${table(['', 'wanted', 'measured', ''], rows)}`;
}

/** Question, server → load. */
function byQuestion(overload) {
  const [questions] = Object.values(overload).map(Object.keys);
  const rows = questions.flatMap((question) =>
    Object.entries(overload).map(([server, of]) => [`${question}, ${server}`, of[question]]),
  );
  return Object.fromEntries(rows);
}

/** Named figures, one a row; what they are stands where they are measured (bench/starts.mjs, bench/writing.mjs). */
function figures(title, results) {
  const said = (value) => value.toLocaleString('en', { maximumSignificantDigits: 3 });
  return `## ${title}\n\n${table(
    ['', ''],
    Object.entries(results).map(([name, value]) => [name, said(value)]),
  )}`;
}

function section(title, results, names, all = COLUMNS) {
  const failures = Object.values(results).some(({ failed }) => failed > 0);
  const columns = {
    ...Object.fromEntries(names.map((name) => [name, all[name]])),
    ...(failures ? FAILED : {}),
  };
  const rows = Object.entries(results).map(([name, result]) => [
    name,
    ...Object.values(columns).map((of) => of(result)),
  ]);
  return `## ${title}\n\n${table(['', ...Object.keys(columns)], rows)}`;
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows].map(line).join('\n');
}

/** @param {import('./run.mjs').Results} results */
export function latencyPlotOf({ offered }) {
  const groups = Object.entries(offered).map(([question, loads]) => ({
    name: question,
    bars: Object.values(loads).flatMap(({ share, rate, p50, p99 }) =>
      [
        ['p50', p50],
        ['p99', p99],
      ].map(([name, value]) => ({
        name,
        value,
        label: `${value.toFixed(1)} ms at ${Math.round(rate).toLocaleString('en')}/s (${100 * share} % of the peak)`,
      })),
    ),
  }));
  return barChart('Latency in ms, where so much is offered', groups);
}

/** @param {import('./run.mjs').Results} results */
export function plotOf({ compared }) {
  const groups = Object.entries(compared).map(([question, results]) => ({
    name: question,
    bars: Object.entries(results).map(([name, { rate, ratio }]) => ({
      name,
      value: rate,
      label: `${Math.round(rate).toLocaleString('en')} (${ratio.toFixed(2)} ×)`,
    })),
  }));
  return barChart('Requests/s, one process of each', groups);
}
