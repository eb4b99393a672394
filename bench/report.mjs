import { cpus } from 'node:os';
import { barChart } from './plot.mjs';

const COLUMNS = {
  'requests/s': ({ rate }) => Math.round(rate).toLocaleString('en'),
  ratio: ({ ratio }) => ratio.toFixed(2),
  'ratio by CPU': ({ cpuRatio }) => cpuRatio.toFixed(2),
  'p50 ms': ({ p50 }) => p50.toFixed(1),
  'p99 ms': ({ p99 }) => p99.toFixed(1),
  'server CPU µs': ({ serverCpu }) => serverCpu.toFixed(0),
  'database CPU µs': ({ databaseCpu }) => databaseCpu.toFixed(0),
  'memory MB': ({ memory }) => memory.toFixed(0),
  'others %': ({ others }) => (100 * others).toFixed(0),
};
const OAUTH = {
  authorization: 'Authorization of a member who is signed in and has allowed the app before',
  'code exchange': 'Code exchange (PKCE, id token, access and refresh token)',
  refresh: 'Refresh (rotated)',
};
/** Shown where there are any. */
const FAILED = { failed: ({ failed }) => failed.toLocaleString('en') };

/** The results as Markdown and as a plot. */
export class Report {
  #sections = [];
  #chart = '';

  constructor(counts, { rounds, seconds, connections }) {
    const rows = Object.entries(counts).map(([table, n]) => `${n.toLocaleString('en')} ${table}`);
    this.#sections.push(`# Benchmark

${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim()}. Load generator, servers and
PostgreSQL share the machine. ${rounds} rounds of ${seconds} s a server, ${connections} connections, 1,000 keys. Medians; ratios are of requests/s within a
round, "by CPU" of requests for the same CPU time of server and database, which a busy machine changes least. CPU is per
request; memory is of all processes of the server under load; "others" is the share of the machine's CPU that went to what is
not of the benchmark: with more than a few percent only ratios mean something.

Data: ${rows.join(', ')}.`);
  }

  get markdown() {
    return `${this.#sections.join('\n\n')}\n`;
  }

  get plot() {
    return this.#chart;
  }

  comparison(compared) {
    for (const { question, results } of compared) this.#table(question, results, Object.keys(COLUMNS));
    this.#chart = barChart(
      'Requests/s, one process of each',
      compared.map(({ question, results }) => ({
        name: question,
        bars: [...results].map(([name, { rate, ratio }]) => ({
          name,
          value: rate,
          label: `${Math.round(rate).toLocaleString('en')} (${ratio.toFixed(2)} ×)`,
        })),
      })),
    );
  }

  /** @param signIns the turn in which members signed in on our server */
  oauth(compared, signIns) {
    const columns = Object.keys(COLUMNS);
    for (const { question, results } of compared) this.#table(OAUTH[question], results, columns);
    const withoutRatios = columns.filter((name) => !name.startsWith('ratio'));
    this.#table(
      'Sign-in: the whole way from the app to a code, by password (argon2id) and consent',
      new Map([['this server', signIns]]),
      withoutRatios,
    );
  }

  others(results) {
    this.#table(
      'The other calls',
      results,
      Object.keys(COLUMNS).filter((name) => !name.startsWith('ratio')),
    );
  }

  halfLoad(results) {
    this.#table('At half load', results, ['requests/s', 'p50 ms', 'p99 ms']);
  }

  size(results) {
    const columns = ['requests/s', 'p50 ms', 'server CPU µs', 'database CPU µs'];
    this.#table('What size costs (one member each)', results, columns);
  }

  workers(results) {
    this.#table('Several processes (GET /profile)', results, Object.keys(COLUMNS));
  }

  #table(title, results, names) {
    const line = (cells) => `| ${cells.join(' | ')} |`;
    const failures = [...results.values()].some(({ failed }) => failed > 0);
    const columns = {
      ...Object.fromEntries(names.map((name) => [name, COLUMNS[name]])),
      ...(failures ? FAILED : {}),
    };
    const rows = [...results].map(([name, result]) =>
      line([name, ...Object.values(columns).map((of) => of(result))]),
    );
    const head = [
      line(['', ...Object.keys(columns)]),
      line(['---', ...Object.keys(columns).map(() => '---:')]),
    ];
    this.#sections.push(`## ${title}\n\n${[...head, ...rows].join('\n')}`);
  }
}
