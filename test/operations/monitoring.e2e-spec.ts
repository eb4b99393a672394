import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { METRICS } from '../../src/runtime/metrics.js';
import { createTestDatabase, postgres, type TestDatabase } from '../support/database.js';
import { query } from '../support/drills.js';
import { freePort } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { until } from '../support/timing.js';

const FOLDER = join(process.cwd(), 'deploy/monitoring');
const FILES = ['alerts.yml', 'service-levels.yml', 'exporters.yml'];
const RULES = FILES.map((file) => readFileSync(join(FOLDER, file), 'utf8')).join('');
interface Alert {
  readonly name: string;
  readonly expr: string;
  readonly runbook: string | undefined;
}
const ALERTS: readonly Alert[] = RULES.split(/^ {6}- (?=\w+:)/m)
  .filter((rule) => rule.startsWith('alert:'))
  .map((rule) => ({
    name: /^alert: (\w+)/.exec(rule)![1]!,
    expr: /^ {8}expr: (?:\|\n)?([^]*?)\n {8}for:/m.exec(rule)![1]!,
    runbook: /^ {10}runbook_url: '(.+)'$/m.exec(rule)?.[1],
  }));
const NAMES = ALERTS.map(({ name }) => name);
const DASHBOARD = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};
const QUERIES = DASHBOARD.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

/** Keywords of PromQL, functions and labels after `by`, `on`. */
const WORDS =
  /^(absent|and|by|deriv|e\d+|group|histogram_quantile|increase|instance|kind|le|limit|max|min|min_over_time|node|on|or|outcome|place|rate|reason|replica|result|route|rows|scope|slot_name|state|status|sum|table|time|topk|count|unless|version|work|code|error)$/;
/** The metrics that a query reads; names of histograms without the suffix of their series. */
const metricsOf = (query: string): string[] => {
  const plain = query.replaceAll(/\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)/g, '');
  const names = [...plain.matchAll(/[a-zA-Z_:][\w:]*/g)].map(([name]) => name);
  return [...new Set(names.filter((name) => !WORDS.test(name)).map(withoutSuffix))];
};
const withoutSuffix = (name: string) => (name.includes(':') ? name : name.replace(/_(count|bucket)$/, ''));
/** Metrics of programs that do not run here: Patroni, blackbox_exporter, and base-backup.sh (backup.e2e-spec.ts). */
const OF_OTHERS = [
  'patroni_sync_standby',
  'probe_ssl_earliest_cert_expiry',
  'backup_last_success_timestamp_seconds',
  'doctor_finding',
  'doctor_last_run_timestamp_seconds',
];

/** Metrics without a value yet: no sign-in, rejection, feed, message, expired row or replica has occurred. */
const NOTHING_YET = [
  'Rejected',
  'Sign-ins',
  'Password hashing',
  'OAuth errors',
  'Sweeper',
  'Deleted by the sweeper',
  'Webhook messages',
  'Feeds',
  'Member reads',
  'Replica lag',
  'Failed requests',
  'Error budget',
  'Replication',
  'Backups and certificates',
  'Doctor',
];

/** A series in promtool's format, with one value per minute. */
interface Series {
  readonly series: string;
  readonly values: string;
}
const LABELS = 'job="public-user-api", instance="a"';
const series = (name: string, labels: string, values: string): Series => ({
  series: `${name}{${LABELS}${labels === '' ? '' : `, ${labels}`}}`,
  values,
});
/** In minutes: some alerts wait for an hour. */
const TIMES = 72;
const always = (value: number) => `${value}x${TIMES}`;
/** A counter that grows by this much per second. */
const growing = (perSecond: number) => `0+${perSecond * 60}x${TIMES}`;
const requests = (labels: string, perSecond: number) =>
  series('http_request_duration_seconds_count', labels, growing(perSecond));
/** A hundred reads per second, some of them slow. */
const durations = (slowPerSecond: number, route = '/api/public/me') => [
  requests(`route="${route}", status="200", method="GET"`, 100),
  series(
    'http_request_duration_seconds_bucket',
    `route="${route}", status="200", method="GET", le="0.25"`,
    growing(100 - slowPerSecond),
  ),
];
/** Metrics of healthy exporters, without which a test would report them missing. */
const EXPORTED: readonly Series[] = [
  series('up', '', always(1)),
  { series: 'pg_up{instance="db"}', values: always(1) },
  { series: 'patroni_sync_standby{scope="pua", name="1"}', values: always(0) },
  { series: 'patroni_sync_standby{scope="pua", name="2"}', values: always(1) },
  { series: 'backup_last_success_timestamp_seconds', values: always(0) },
  { series: 'doctor_last_run_timestamp_seconds', values: growing(1) },
  { series: 'probe_ssl_earliest_cert_expiry', values: always(100 * 86_400) },
];
const metricOf = ({ series: text }: Series) => /^\w+/.exec(text)![0];
/** Adds the exporters' metrics, except those that the history contains. */
const whole = (input: readonly Series[]): readonly Series[] => {
  const own = new Set(input.map(metricOf));
  return [...input, ...EXPORTED.filter((one) => !own.has(metricOf(one)))];
};
const archived = (seconds: number, writes: number): readonly Series[] => [
  { series: 'pg_stat_archiver_last_archive_age{instance="db"}', values: always(seconds) },
  ...['inserted', 'updated'].map((how) => ({
    series: `pg_stat_database_tup_${how}{instance="db", datname="pua"}`,
    values: growing(writes),
  })),
];
const connections = (number: number): readonly Series[] => [
  { series: 'pg_stat_activity_count{instance="db", state="idle"}', values: always(number) },
  { series: 'pg_settings_max_connections{instance="db"}', values: always(103) },
  { series: 'pg_settings_superuser_reserved_connections{instance="db"}', values: always(3) },
];
const slot = (bytes: number): Series => ({
  series: 'pg_replication_slots_pg_wal_lsn_diff{instance="db", slot_name="standby"}',
  values: always(bytes),
});
const delays = (latePerSecond: number) =>
  ['1', '10', '30', '+Inf'].map((le) =>
    series(
      'webhook_delay_seconds_bucket',
      `le="${le}"`,
      growing(Number(le) <= 10 ? 100 - latePerSecond : 100),
    ),
  );
const attempts = (outcome: string, perSecond: number) =>
  series('webhook_attempts_total', `outcome="${outcome}"`, growing(perSecond));
const feeds = (status: number, perSecond: number) =>
  requests(`route="/api/platform/records", status="${status}"`, perSecond);

type Health = readonly [well: readonly Series[], unwell: readonly Series[]];
/** Values or rates of one metric on a healthy and on an unhealthy instance. */
const by = (
  name: string,
  labels: string,
  of: (value: number) => string,
  well: number,
  unwell: number,
): Health => [[series(name, labels, of(well))], [series(name, labels, of(unwell))]];
/** For each alert: metrics of a healthy instance, and of an instance that must cause the alert. */
const HEALTH: Readonly<Record<string, Health>> = {
  ServerDown: by('up', '', always, 1, 0),
  ServersUnwatched: [[], [{ series: 'up{job="other"}', values: always(1) }]],
  NotReady: by('server_ready', '', always, 1, 0),
  Overloaded: by('overload_refusals_total', 'reason="api"', growing, 0.5, 20),
  DatabasePoolExhausted: [
    [series('database_pool_connections', 'state="waiting"', '0 0 0 5 '.repeat(TIMES / 4))],
    [series('database_pool_connections', 'state="waiting"', always(3))],
  ],
  RevocationChannelCut: by('revocation_channel_up', '', always, 1, 0),
  RateLimitsNotShared: by('rate_limits_shared', '', always, 1, 0),
  SignInsFail: [
    [
      series('sign_ins_total', 'result="signed-in"', growing(10)),
      series('sign_ins_total', 'result="busy"', growing(0.5)),
    ],
    [
      series('sign_ins_total', 'result="signed-in"', growing(10)),
      series('sign_ins_total', 'result="failed"', growing(5)),
    ],
  ],
  PasswordsGuessed: [
    [series('sign_ins_total', 'method="password", result="invalid"', growing(0.5))],
    [series('sign_ins_total', 'method="password", result="throttled"', growing(20))],
  ],
  KeysGuessed: by('http_problems_total', 'code="invalid_credentials"', growing, 5, 50),
  KeysExpire: by('api_keys_expiring', '', always, 0, 2),
  ClientSecretsExpire: by('client_secrets_expiring', '', always, 0, 1),
  SigningKeyOld: by('signing_key_age_seconds', '', always, 300 * 86_400, 400 * 86_400),
  AuthorizationServerErrors: [
    [series('oauth_errors_total', 'error="access_denied"', growing(5))],
    [series('oauth_errors_total', 'error="server_error"', growing(0.1))],
  ],
  FeedsFail: [
    [feeds(200, 20), feeds(429, 10), feeds(422, 1)],
    [feeds(200, 20), feeds(422, 5)],
  ],
  WebhooksFail: [
    [attempts('delivered', 10), attempts('failed', 4), attempts('withheld', 50)],
    [attempts('delivered', 1), attempts('failed', 2), attempts('withheld', 1)],
  ],
  WebhooksLate: [delays(1), delays(10)],
  WebhooksUnsent: by('webhook_oldest_due_seconds', '', always, 20, 900),
  WebhooksPileUp: [
    [series('webhook_deliveries_pending', '', always(20_000))],
    [series('webhook_deliveries_pending', '', `0+1000x${TIMES}`)],
  ],
  SweeperFails: by('sweeper_failures_total', 'rows="codes"', growing, 1 / 3600, 1 / 60),
  SweeperBehind: by('sweeper_overdue_seconds', 'rows="codes"', always, 600, 7200),
  PeriodicWorkFails: by('periodic_work_failures_total', 'work="totals"', growing, 1 / 3600, 1 / 60),
  DeadRows: by('database_dead_rows', 'table="events"', always, 100_000, 20_000_000),
  ReplicaNotAsked: by('database_replica_asked', 'replica="2"', always, 1, 0),
  // Then reads skip replicas although the replicas are healthy.
  MemberWritesChannelCut: [
    [series('member_writes_channel_up', '', always(1))],
    [
      series('member_writes_channel_up', '', always(0)),
      series('database_replica_asked', 'replica="2"', always(0)),
    ],
  ],
  EventLoopBlocked: by('nodejs_eventloop_lag_p99_seconds', '', always, 0.02, 0.6),
  ProcessSilent: by('server_processes', 'state="silent"', always, 0, 1),
  VersionsDiffer: [
    [series('build_info', 'version="1.0.0"', always(1))],
    [series('build_info', 'version="1.0.0"', always(1)), series('build_info', 'version="2.0.0"', always(1))],
  ],
  FailuresBurnBudget: [
    [
      requests('route="/oauth/authorize", status="303", method="GET"', 100),
      requests('route="/oauth/authorize", status="503", method="GET"', 0.05),
      requests('route="/livez", status="503", method="GET"', 5),
    ],
    [
      requests('route="/api/public/me", status="200", method="GET"', 99),
      requests('route="/oauth/token", status="500", method="POST"', 1),
    ],
  ],
  // A request for the platform’s changes waits for new changes.
  SlownessBurnsBudget: [[...durations(0.5), ...durations(100, '/api/platform/changes')], durations(20)],
  FailuresExceedBudget: [
    [],
    [
      requests('route="/api/public/profile", status="200", method="PUT"', 100),
      requests('route="/api/public/profile", status="503", method="PUT"', 0.2),
    ],
  ],
  SlownessExceedsBudget: [[], durations(2)],
  PostgresUnwatched: [[], [{ series: 'pg_up{instance="db"}', values: always(0) }]],
  ConnectionsNearMax: [connections(70), connections(90)],
  ReplicationSlotHolds: [[slot(1e9)], [slot(20e9)]],
  WalNotArchived: [archived(60, 10), archived(2_000, 10)],
  NoSynchronousStandby: [[], [{ series: 'patroni_sync_standby{scope="pua", name="1"}', values: always(0) }]],
  DoctorFinds: [
    [{ series: 'doctor_finding{check="webhooks"}', values: always(1) }],
    [{ series: 'doctor_finding{check="schema"}', values: always(2) }],
  ],
  DoctorSilent: [[], [{ series: 'doctor_last_run_timestamp_seconds', values: always(0) }]],
  BackupOld: [[], [{ series: 'backup_last_success_timestamp_seconds', values: always(-27 * 3_600) }]],
  CertificateExpires: [[], [{ series: 'probe_ssl_earliest_cert_expiry', values: always(10 * 86_400) }]],
};
/** Alerts that fire later, since the history also exceeds their budget. */
const ALSO: Readonly<Record<string, string>> = {
  FailuresBurnBudget: 'FailuresExceedBudget',
  SlownessBurnsBudget: 'SlownessExceedsBudget',
};

const promtool = (...parameters: string[]) => {
  const { status, stdout, stderr, error } = spawnSync('promtool', parameters, { encoding: 'utf8' });
  if (error) throw error;
  return { status, output: stdout + stderr };
};

postgres.describe('monitoring', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pua-monitoring-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('has a configuration that Prometheus accepts', () => {
    expect(promtool('check', 'config', join(FOLDER, 'prometheus.yml'))).toMatchObject({ status: 0 });
  });

  /**
   * Whether exactly these alerts fire after each history, or `at` a time in it.
   * @param by the labels that distinguish the alerts
   * @param where selects the checked alerts
   * @param every the time between two values
   */
  const firing = (
    histories: readonly (readonly [input: readonly Series[], alerts: readonly string[], at?: string])[],
    { by = 'alertname', where = '', every = '1m' } = {},
  ) => {
    const file = join(folder, 'alerts.test.json');
    const tests = histories.map(([input, alerts, at = `${TIMES}m`]) => ({
      interval: every,
      input_series: input,
      promql_expr_test: [
        {
          expr: `count by (${by}) (ALERTS{alertstate="firing"${where}})`,
          eval_time: at,
          exp_samples: alerts.map((alert) => ({
            labels: alert.startsWith('{') ? alert : `{alertname="${alert}"}`,
            value: 1,
          })),
        },
      ],
    }));
    const rules = FILES.map((name) => join(FOLDER, name));
    writeFileSync(file, JSON.stringify({ rule_files: rules, evaluation_interval: every, tests }));
    return promtool('test', 'rules', file);
  };

  it('does not alert on a healthy instance', () => {
    expect(Object.keys(HEALTH)).toEqual(NAMES);
    expect(firing([[whole(Object.values(HEALTH).flatMap(([well]) => well)), []]])).toMatchObject({
      status: 0,
    });
  });

  it('alerts on an unhealthy instance with only the alerts for its fault', () => {
    const histories = NAMES.map((name) => {
      const alerts = [name, ...(ALSO[name] === undefined ? [] : [ALSO[name]])];
      return [whole(HEALTH[name]![1]), alerts] as const;
    });
    expect(firing(histories)).toMatchObject({ status: 0 });
    expect(firing([[whole(HEALTH.ServerDown![1]), ['NotReady']]])).toMatchObject({ status: 1 });
  });

  it('alerts on missing exporters, and not on the archiving of a standby or an idle database', () => {
    const gone = ['ServersUnwatched', 'PostgresUnwatched', 'NoSynchronousStandby', 'DoctorSilent', 'BackupOld', 'CertificateExpires']; // prettier-ignore
    expect(
      firing([
        [[], gone],
        [whole(archived(2_000, 0)), []],
      ]),
    ).toMatchObject({ status: 0 });
  });

  describe('by the error budget of a route group', () => {
    const BUDGETS = { where: ', group!=""' };
    const token = (status: number, values: string) =>
      series('http_request_duration_seconds_count', `route="/oauth/token", status="${status}", method="POST"`, values); // prettier-ignore
    const others = (minutes: number) =>
      series('http_request_duration_seconds_count', 'route="/api/public/events", status="200", method="GET"', `0+5940x${minutes}`); // prettier-ignore

    it('alerts within five minutes when all requests to the token endpoint fail, even if they are only 1 % of the traffic', () => {
      const input = [others(180), token(200, '0+60x120 7200x60'), token(503, '0x120 60+60x60')];
      const fires = '{alertname="FailuresBurnBudget", group="token", severity="page"}';
      const histories = [[input, [], '120m'] as const, [input, [fires], '125m'] as const];
      expect(firing(histories, { ...BUDGETS, by: 'alertname, group, severity' })).toMatchObject({
        status: 0,
      });
    });

    it('ends the page 11 minutes after an outage, and ignores few failures and failures within the budget', () => {
      const burst = [token(200, '0+60x120 7200x9 7260+60x60'), token(503, '0x120 60+60x9 600x60')];
      const few = [token(200, '0x120'), token(503, '0x60 1+1x5 6x60')];
      const allowed = [token(200, '0+6000x180'), token(503, '0+5x180')];
      const histories = [
        [burst, ['FailuresBurnBudget'], '131m'] as const,
        [burst, ['FailuresExceedBudget'], '141m'] as const,
        [few, [], '70m'] as const,
        [allowed, [], '180m'] as const,
      ];
      expect(firing(histories, BUDGETS)).toMatchObject({ status: 0 });
    });

    it('opens a ticket for failures over days, and ends this alert within seven hours of the last failure', () => {
      // Every quarter of an hour, which suffices for windows of hours.
      const input = [token(200, '0+6000x400'), token(500, '0+12x288 3456x112')];
      const histories = [[input, ['FailuresExceedBudget'], '3d'] as const, [input, [], '79h'] as const];
      expect(firing(histories, { ...BUDGETS, every: '15m' })).toMatchObject({ status: 0 });
    });
  });

  it('shows every metric of the server, and of every alert, on the dashboard', () => {
    const shown = new Set(QUERIES.flatMap(([, query]) => metricsOf(query)));
    expect(Object.keys(METRICS).filter((name) => !shown.has(name))).toEqual([]);
    const unseen = ALERTS.flatMap(({ name, expr }) =>
      metricsOf(expr)
        .filter((metric) => !shown.has(metric))
        .map((metric) => `${name}: ${metric}`),
    );
    expect(unseen).toEqual([]);
  });

  it.each(ALERTS)('has a heading for $name at its runbook_url', ({ name, runbook }) => {
    const [, page, anchor] =
      /^https:\/\/git\.example\/public-user-api\/(docs\/operators\/[\w-]+\.md)#(.+)$/.exec(runbook!)!;
    const headings = readFileSync(page!, 'utf8').matchAll(/^#+ (.+)$/gm);
    expect([...headings].map(([, heading]) => heading)).toContain(name);
    expect(anchor).toBe(name.toLowerCase());
  });

  it('has the objectives of docs/operators/service-levels.md', () => {
    const page = readFileSync('docs/operators/service-levels.md', 'utf8');
    const rows = [...page.matchAll(/^\| `(\w+)` +\|.*\| 99\.9 % +\| (\d+ ms|1 s|none) +\|$/gm)];
    const seconds = (text: string) => (text.endsWith('ms') ? Number.parseInt(text, 10) / 1000 : 1);
    const said = Object.fromEntries(
      rows.flatMap(([, group, limit]) => (limit === 'none' ? [] : [[group, seconds(limit!)]])),
    ) as Record<string, number>;
    const ruled = [...RULES.matchAll(/group: (\w+) \}\n.*_bucket\{[^}]*le="([\d.]+)"/g)];
    expect(Object.fromEntries(ruled.map(([, group, le]) => [group, Number(le)]))).toEqual(said);
    const groups = [...RULES.matchAll(/requests:total\n {8}labels: \{ group: (\w+) \}/g)];
    expect(rows.map(([, group]) => group)).toEqual([...new Set(groups.map(([, group]) => group))]);
  });

  describe('with a real Prometheus', () => {
    const SUPERUSER = process.env.TEST_SUPERUSER_URL!;
    let database: TestDatabase;
    let server: ServerProcess;
    let startServer: () => Promise<void>;
    let prometheus: ChildProcess;
    let exporter: ChildProcess;
    let url: string;

    beforeAll(async () => {
      database = await createTestDatabase();
      const [metricsPort, port, exporterPort] = [await freePort(), await freePort(), await freePort()];
      exporter = spawn('prometheus-postgres-exporter', [`--web.listen-address=127.0.0.1:${exporterPort}`], {
        env: { DATA_SOURCE_NAME: `${SUPERUSER}?sslmode=disable` },
        stdio: 'ignore',
      });
      await query(SUPERUSER, `SELECT pg_create_physical_replication_slot('monitoring', true)`);
      startServer = async () => {
        server = await ServerProcess.start({ ...database.environment, METRICS_PORT: String(metricsPort) });
        // Requests of a browser and a load balancer, so that metrics have values.
        for (const path of ['/readyz', '/api/public/me', '/oauth/authorize'])
          await (await fetch(server.url + path)).text();
      };
      await startServer();
      const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
        .replace('localhost:9464', `127.0.0.1:${metricsPort}`)
        .replaceAll('15s', '500ms')
        .replaceAll(/ {2}- ([\w-]+\.yml)/g, (_, file: string) => `  - ${join(FOLDER, file)}`)
        .replace('localhost:9187', `127.0.0.1:${exporterPort}`);
      writeFileSync(join(folder, 'prometheus.yml'), config);
      url = `http://127.0.0.1:${port}`;
      prometheus = spawn(
        'prometheus',
        [
          `--config.file=${join(folder, 'prometheus.yml')}`,
          `--storage.tsdb.path=${join(folder, 'data')}`,
          `--web.listen-address=127.0.0.1:${port}`,
        ],
        { stdio: 'ignore' },
      );
      await seen(
        async () => (await ask<unknown[]>('sum_over_time(up{job="public-user-api"}[1m]) > 5')).length === 1,
      );
    });
    afterAll(async () => {
      prometheus.kill('SIGTERM');
      exporter.kill('SIGTERM');
      await Promise.all([once(prometheus, 'close'), once(exporter, 'close')]);
      await server.kill();
      await query(SUPERUSER, `SELECT pg_drop_replication_slot('monitoring')`);
      await database.drop();
    });

    const seen = (look: () => Promise<boolean>) =>
      until(() => look().catch(() => false), 'Prometheus comes that far');
    async function get<T>(path: string): Promise<T> {
      const { status, data, error } = (await (await fetch(url + path)).json()) as {
        status: string;
        data: T;
        error?: string;
      };
      if (status !== 'success') throw new Error(error);
      return data;
    }
    const ask = async <T>(query: string): Promise<T> =>
      (await get<{ result: T }>(`/api/v1/query?query=${encodeURIComponent(query)}`)).result;

    it('finds every metric of alerts and dashboard, except metrics of programs that do not run here', async () => {
      const unknown = async () => {
        const names = await get<string[]>('/api/v1/label/__name__/values');
        const metadata = await get<{ metric: string }[]>('/api/v1/targets/metadata');
        const recorded = [...RULES.matchAll(/- record: (\S+)/g)].map(([, name]) => name!);
        const known = new Set([...names.map(withoutSuffix), ...metadata.map(({ metric }) => metric), ...recorded, ...OF_OTHERS]); // prettier-ignore
        const queries = [
          ...ALERTS.map(({ expr }) => expr),
          ...[...RULES.matchAll(/- record: .*\n(?:.*labels.*\n)? +expr: (.+)/g)].map(([, expr]) => expr!),
          ...QUERIES.map(([, query]) => query),
        ];
        const asked = new Set(queries.flatMap(metricsOf));
        expect(asked.size).toBeGreaterThan(40);
        return [...asked].filter((name) => !known.has(name));
      };
      await seen(async () => (await unknown()).length === 0).catch(() => undefined);
      expect(await unknown()).toEqual([]);
    });

    it('evaluates every panel’s query, and has a result for each panel that this test does not exclude', async () => {
      const withoutAnswer = async () => {
        const answers = await Promise.all(
          QUERIES.map(async ([title, query]) => ({
            title,
            answer: await ask<unknown[]>(
              query.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
            ),
          })),
        );
        return answers.filter(({ answer }) => answer.length === 0).map(({ title }) => title);
      };
      // A scrape that a busy host could not finish has no values.
      let missing = await withoutAnswer();
      await seen(async () => {
        missing = await withoutAnswer();
        return missing.every((title) => NOTHING_YET.includes(title));
      }).catch(() => undefined);
      expect(missing.filter((title) => !NOTHING_YET.includes(title))).toEqual([]);
    });

    it('evaluates the queries of prometheus-adapter for Kubernetes autoscaling', async () => {
      const file = readFileSync('deploy/kubernetes-autoscaling/prometheus-adapter.yml', 'utf8');
      const [, template] = /metricsQuery: '(.+)'/.exec(file)!;
      const [, name, matchers] = /seriesQuery: '(\w+)\{(.+), namespace!="", pod!=""\}'/.exec(file)!;
      const query = template!
        .replace('<<.Series>>', name!)
        .replace('<<.LabelMatchers>>', matchers!)
        .replace('<<.GroupBy>>', 'instance');
      expect(await ask<unknown[]>(query)).toMatchObject([{ value: [expect.anything(), '0'] }]);
    });

    it('counts requests by route and status, and no rule fails', async () => {
      await seen(
        async () =>
          (
            await ask<unknown[]>(
              'http_request_duration_seconds_count{route="/api/public/me", status="401", job="public-user-api"} > 0',
            )
          ).length === 1,
      );
      const { groups } = await get<{ groups: { rules: { name: string; type: string; health: string }[] }[] }>(
        '/api/v1/rules',
      );
      const rules = groups.flatMap((group) => group.rules);
      const alerting = rules.filter(({ type }) => type === 'alerting').map(({ name }) => name);
      expect(alerting.toSorted()).toEqual(NAMES.toSorted());
      expect(rules.filter(({ health }) => health === 'err')).toEqual([]);
    });

    it('detects a stopped server', async () => {
      await server.kill('SIGKILL');
      const alert = 'ALERTS{alertname="ServerDown"}';
      await seen(async () => (await ask<unknown[]>(alert)).length === 1);
      expect(await ask<unknown[]>(alert)).toMatchObject([{ metric: { severity: 'page' } }]);
      await startServer();
    });
  });
});
