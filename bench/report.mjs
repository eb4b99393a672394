// The results of a run as Markdown.
import { overloadTable } from './overload.mjs';
import { judge } from './targets.mjs';

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
const WITHOUT_RATIOS = ALL.filter((name) => !name.startsWith('ratio'));
/** Shown only if there are failures. */
const FAILED = { failed: ({ failed }) => failed.toLocaleString('en') };

/**
 * @param {import('./run.mjs').Results} results
 * @param {{judged: boolean}} options whether the run was long enough to judge the targets
 */
export function markdownOf(results, { judged }) {
  const { compared = {}, oauth = {}, signIn, others, overload, starts } = results;
  const several = (tables) => Object.entries(tables).map(([name, rows]) => section(name, rows, ALL));
  return [
    introduction(results),
    judged && targets(judge(results)),
    ...several(compared),
    ...several(oauth),
    signIn && section('Sign-in: from the app to its tokens, by password (argon2id)', signIn, WITHOUT_RATIOS),
    others && section('The other calls', others, WITHOUT_RATIOS),
    overload && `## Below and above the peak\n\n${overloadTable(byQuestion(overload))}`,
    starts && figures('Starts (seconds, MB)', starts),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

function introduction({ date, machine, plan, counts }) {
  const rows = Object.entries(counts).map(([table, n]) => `${n.toLocaleString('en')} ${table}`);
  return `# Benchmark

${date}, ${machine}. Load generator, servers and PostgreSQL share the machine. ${plan.rounds} × ${plan.seconds} s a
server, ${plan.connections} connections, 1,000 members. Medians; ratios are of requests/s within a round, "by CPU" of requests for
the same CPU time of server and database, which a busy machine changes least. CPU is per request; memory is of all processes of
the server under load; "others" is the share of the machine's CPU that went to what is not of the benchmark: with more than a
few percent only ratios mean something.

Data: ${rows.join(', ')}.`;
}

function targets(judgements) {
  const rows = judgements.map((one) => [
    one.target,
    one.wanted,
    one.measured,
    one.met ? 'met' : '**NOT met**',
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

/** Named figures, one per row; bench/starts.mjs explains them. */
function figures(title, results) {
  const said = (value) => value.toLocaleString('en', { maximumSignificantDigits: 3 });
  return `## ${title}\n\n${table(
    ['', ''],
    Object.entries(results).map(([name, value]) => [name, said(value)]),
  )}`;
}

function section(title, results, names) {
  const failures = Object.values(results).some(({ failed }) => failed > 0);
  const columns = {
    ...Object.fromEntries(names.map((name) => [name, COLUMNS[name]])),
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
