// Samples of what the soak uses, and whether it grows.
import { setTimeout as pause } from 'node:timers/promises';
import { timeSeries } from '../plot.mjs';

/** Tables without history: as many rows at the end as at the beginning. */
const CONSTANT = [
  'users',
  'events',
  'participants',
  'api_keys',
  'user_totals',
  'event_totals',
  'record_versions',
];
/** Messages wait five seconds after a failure, and twenty for the lease of a killed instance. */
const LONGEST_DELIVERY_MS = 400_000;
/** Growth of a mean over the second half that is noise: the collector's, a page, a connection that is being opened. */
const NOISE = {
  'resident memory of the first instance, MB': [(s) => s.first.rss, (mean) => mean * 0.05 + 5],
  'its heap, MB': [(s) => s.first.heap, (mean) => mean * 0.05 + 5],
  'its descriptors': [(s) => s.first.descriptors, () => 5],
  'its handles': [(s) => s.first.handles, () => 5],
  'connections in PostgreSQL': [(s) => s.connections, () => 4],
  'resident memory of Redis, MB': [(s) => s.redis, (mean) => mean * 0.05 + 5],
  'dead rows': [(s) => s.dead, (mean) => mean * 0.5 + 1_000],
};

const percentile = (list, share) => {
  const sorted = list.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
};
const sum = (list) => list.reduce((a, b) => a + b, 0);
const mean = (list) => sum(list) / list.length;

/** @returns a sample; undefined while the database is away */
export async function sample({ machines, traffic, now, memoryOf }) {
  const { first, second, redis, query, databaseName } = machines;
  try {
    // Counted in the rows themselves: a promoted standby has none of the statistics of its primary.
    const tables = await query(
      `SELECT relname AS name, dead_tuple_count::int AS dead, approx_tuple_count::int AS live,
         pg_total_relation_size(oid)::float8 / 1048576 AS size
       FROM pg_class, soak.pgstattuple_approx(oid) WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname`,
    );
    const [{ connections }] = await query(
      `SELECT count(*)::int AS connections FROM pg_stat_activity WHERE datname = $1 AND application_name <> 'soak'`,
      [databaseName],
    );
    const { calm, faulty } = traffic.takeWindow();
    return {
      at: now() / 60_000,
      first: await first.sample(),
      second: await second.sample(),
      redis: memoryOf(redis.child.pid) || Number.NaN,
      connections,
      dead: sum(tables.map(({ dead }) => dead)),
      tables: Object.fromEntries(tables.map(({ name, ...rest }) => [name, rest])),
      p99: percentile(calm, 0.99),
      p99InFaults: percentile(faulty, 0.99),
      signIns: traffic.sessions.length,
    };
  } catch {
    return undefined;
  }
}

/** Waits until everything is delivered. @returns what is not */
export async function undelivered({ query }) {
  const since = performance.now();
  for (;;) {
    const left = await query(`SELECT 'a webhook message' AS what, status, count(*)::int FROM webhook_deliveries WHERE status <> 'delivered' GROUP BY status
      UNION ALL SELECT 'a logout token', 'pending', count(*)::int FROM oauth_logouts HAVING count(*) > 0`); // prettier-ignore
    const isPending = left.some(({ status }) => status === 'pending');
    if (!isPending || performance.now() - since > LONGEST_DELIVERY_MS) return left;
    await pause(500);
  }
}

/** Ordinary least squares of a measure over the samples, in its unit per hour, with the standard error of that. */
export function slope(samples, of) {
  const points = samples.map((s) => [s.at / 60, of(s)]).filter(([, y]) => Number.isFinite(y));
  const x = mean(points.map(([at]) => at));
  const y = mean(points.map(([, value]) => value));
  const spread = sum(points.map(([at]) => (at - x) ** 2));
  const perHour = sum(points.map(([at, value]) => (at - x) * (value - y))) / spread;
  const rest = sum(points.map(([at, value]) => (value - y - perHour * (at - x)) ** 2));
  return { mean: y, perHour, error: Math.sqrt(rest / Math.max(1, points.length - 2) / spread) };
}

/**
 * Judges a run, and prints it.
 *
 * @param {object[]} samples of its second half
 * @param {Record<string, unknown[]>} lists of what must not be
 * @returns {string[]} what is bad
 */
export function judge(samples, lists) {
  const bad = [];
  const hours = (samples.at(-1).at - samples[0].at) / 60;
  const measures = { ...NOISE };
  for (const table of CONSTANT)
    measures[`size of ${table}, MB`] = [(s) => s.tables[table].size, (size) => size * 0.1 + 1];
  for (const [what, [of, noise]] of Object.entries(measures)) {
    const { mean: middle, perHour, error } = slope(samples, of);
    // Only what grows by more than its own scatter explains.
    const isFlat = (perHour - 2 * error) * hours <= noise(middle);
    console.log(`${isFlat ? 'flat ' : 'GROWS'}  ${what}: ${middle.toFixed(1)}, ${perHour >= 0 ? '+' : ''}${perHour.toFixed(1)} ± ${error.toFixed(1)} an hour`); // prettier-ignore
    if (!isFlat) bad.push(what);
  }
  for (const [table, { live, dead, size }] of Object.entries(samples.at(-1).tables))
    console.log(`table  ${table}: ${live} rows, ${dead} dead, ${size.toFixed(1)} MB, most dead ${Math.max(...samples.map((s) => s.tables[table]?.dead ?? 0))}`); // prettier-ignore
  for (const [what, list] of Object.entries(lists)) {
    console.log(`${list.length === 0 ? 'none ' : 'SOME '}  ${what}: ${list.length}`);
    for (const one of list.slice(0, 10)) console.log(`         ${JSON.stringify(one)}`);
    if (list.length > 0) bad.push(what);
  }
  return bad;
}

/** Draws the samples. @returns {string} SVG */
export function draw(title, samples) {
  const both = (of) => ({
    'first instance': (s) => of(s.first),
    'second (killed and started)': (s) => of(s.second),
  });
  const panels = {
    'Resident memory, MB': both(({ rss }) => rss),
    'Heap in use, MB': both(({ heap }) => heap),
    'File descriptors': both(({ descriptors }) => descriptors),
    'Connections in PostgreSQL': { 'of both': (s) => s.connections },
    'Dead rows of all tables': { 'all tables': (s) => s.dead },
    'Size of all tables, MB': {
      'without history': (s) => sum(CONSTANT.map((table) => s.tables[table].size)),
      all: (s) => sum(Object.values(s.tables).map(({ size }) => size)),
    },
    'p99 of 10 s, ms': { 'outside of faults': (s) => s.p99, 'in faults': (s) => s.p99InFaults },
  };
  const drawn = Object.entries(panels).map(([name, lines]) => ({
    name,
    lines: Object.entries(lines).map(([line, of]) => ({
      name: line,
      points: samples.map((s) => [s.at, of(s)]),
    })),
  }));
  return timeSeries(title, drawn, 'minutes');
}
