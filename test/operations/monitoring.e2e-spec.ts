import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { METRICS } from '../../src/http/metrics.js';
import { createTestDatabase, postgres, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { SLOW_MACHINE_MS, until } from '../support/timing.js';

const FOLDER = join(process.cwd(), 'deploy/monitoring');
const ALERTS = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
const NAMES = [...ALERTS.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
const DASHBOARD = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};
const QUERIES = DASHBOARD.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

/** Nobody has signed in, nothing was refused or fed, no message was sent, no row has expired, or not for long, and there is no replica. */
const NOTHING_YET = [
  'Refused',
  'Sign-ins',
  'Password hashing',
  'OAuth errors',
  'Sweeper',
  'Deleted by the sweeper',
  'Webhook messages',
  'Feeds',
  'Member reads',
  'Replica lag',
];

/** Prometheus looks for targets every five seconds. */
const TARGETS_MS = 20_000;

/** A series as promtool takes it; a value a minute. */
interface Series {
  readonly series: string;
  readonly values: string;
}
const LABELS = 'job="public-user-api", instance="a"';
const series = (name: string, labels: string, values: string): Series => ({
  series: `${name}{${LABELS}${labels === '' ? '' : `, ${labels}`}}`,
  values,
});
const HOURS = 2;
const TIMES = HOURS * 60;
const always = (value: number) => `${value}x${TIMES}`;
/** A counter that grows by so much a second. */
const growing = (perSecond: number) => `0+${perSecond * 60}x${TIMES}`;
const requests = (labels: string, perSecond: number) =>
  series('http_request_duration_seconds_count', labels, growing(perSecond));
const durations = (slowPerSecond: number, route = '/api/public/me') =>
  ['0.1', '0.5', '1', '+Inf'].map((le) =>
    series(
      'http_request_duration_seconds_bucket',
      `route="${route}", le="${le}"`,
      growing(Number(le) < 1 ? 100 - slowPerSecond : 100),
    ),
  );
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

/** What Prometheus sees of an instance that is well. */
const WELL: Readonly<Record<string, readonly Series[]>> = {
  ServerDown: [series('up', '', always(1))],
  RequestsFail: [
    requests('route="/api/public/me", status="200"', 100),
    requests('route="/livez", status="503"', 5),
  ],
  NotReady: [requests('route="/readyz", status="200"', 1)],
  // Who asks for the platform’s changes waits for them.
  RequestsSlow: [...durations(0.5), ...durations(100, '/api/platform/changes')],
  Overloaded: [series('overload_refusals_total', 'reason="api"', growing(0.5))],
  DatabasePoolExhausted: [
    series('database_pool_connections', 'state="waiting"', '0 0 0 5 '.repeat(TIMES / 4)),
  ],
  RevocationChannelCut: [series('revocation_channel_up', '', always(1))],
  RateLimitsNotShared: [series('rate_limits_shared', '', always(1))],
  SignInsFail: [
    series('sign_ins_total', 'result="signed-in"', growing(10)),
    series('sign_ins_total', 'result="busy"', growing(0.5)),
  ],
  PasswordsGuessed: [series('sign_ins_total', 'method="password", result="invalid"', growing(0.5))],
  KeysGuessed: [series('http_problems_total', 'code="invalid_credentials"', growing(5))],
  AuthorizationServerErrors: [series('oauth_errors_total', 'error="access_denied"', growing(5))],
  FeedsFail: [feeds(200, 20), feeds(429, 10), feeds(422, 1)],
  WebhooksFail: [attempts('delivered', 10), attempts('failed', 4), attempts('withheld', 50)],
  WebhooksLate: delays(1),
  WebhooksPileUp: [series('webhook_deliveries_pending', '', always(20_000))],
  SweeperFails: [series('sweeper_failures_total', 'rows="codes"', growing(1 / 3600))],
  SweeperBehind: [series('sweeper_overdue_seconds', 'rows="codes"', always(600))],
  PeriodicWorkFails: [series('periodic_work_failures_total', 'work="totals"', growing(1 / 3600))],
  DeadRows: [series('database_dead_rows', 'table="events"', always(100_000))],
  ReplicaNotAsked: [series('database_replica_asked', 'replica="2"', always(1))],
  MemberWritesChannelCut: [series('member_writes_channel_up', '', always(1))],
  EventLoopBlocked: [series('nodejs_eventloop_lag_p99_seconds', '', always(0.02))],
  ProcessSilent: [series('server_processes', 'state="silent"', always(0))],
  VersionsDiffer: [series('build_info', 'version="1.0.0"', always(1))],
};
/** And of one of which each alert is to tell. */
const UNWELL: typeof WELL = {
  ServerDown: [series('up', '', always(0))],
  RequestsFail: [
    requests('route="/api/public/me", status="200"', 100),
    requests('route="/oauth/token", status="503"', 5),
  ],
  NotReady: [requests('route="/readyz", status="503"', 1)],
  RequestsSlow: durations(5),
  Overloaded: [series('overload_refusals_total', 'reason="api"', growing(20))],
  DatabasePoolExhausted: [series('database_pool_connections', 'state="waiting"', always(3))],
  RevocationChannelCut: [series('revocation_channel_up', '', always(0))],
  RateLimitsNotShared: [series('rate_limits_shared', '', always(0))],
  SignInsFail: [
    series('sign_ins_total', 'result="signed-in"', growing(10)),
    series('sign_ins_total', 'result="failed"', growing(5)),
  ],
  PasswordsGuessed: [series('sign_ins_total', 'method="password", result="throttled"', growing(20))],
  KeysGuessed: [series('http_problems_total', 'code="invalid_credentials"', growing(50))],
  AuthorizationServerErrors: [series('oauth_errors_total', 'error="server_error"', growing(0.1))],
  FeedsFail: [feeds(200, 20), feeds(422, 5)],
  WebhooksFail: [attempts('delivered', 1), attempts('failed', 2), attempts('withheld', 1)],
  WebhooksLate: delays(10),
  WebhooksPileUp: [series('webhook_deliveries_pending', '', `0+1000x${TIMES}`)],
  SweeperFails: [series('sweeper_failures_total', 'rows="codes"', growing(1 / 60))],
  SweeperBehind: [series('sweeper_overdue_seconds', 'rows="codes"', always(7200))],
  PeriodicWorkFails: [series('periodic_work_failures_total', 'work="totals"', growing(1 / 60))],
  DeadRows: [series('database_dead_rows', 'table="events"', always(20_000_000))],
  ReplicaNotAsked: [series('database_replica_asked', 'replica="2"', always(0))],
  // Then no replica is asked, and it is no replica's fault.
  MemberWritesChannelCut: [
    series('member_writes_channel_up', '', always(0)),
    series('database_replica_asked', 'replica="2"', always(0)),
  ],
  EventLoopBlocked: [series('nodejs_eventloop_lag_p99_seconds', '', always(0.6))],
  ProcessSilent: [series('server_processes', 'state="silent"', always(1))],
  VersionsDiffer: [
    series('build_info', 'version="1.0.0"', always(1)),
    series('build_info', 'version="2.0.0"', always(1)),
  ],
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

  it('is configured as Prometheus takes it', () => {
    expect(promtool('check', 'config', join(FOLDER, 'prometheus.yml'))).toMatchObject({ status: 0 });
  });

  /** Whether after some hours of each history exactly those alerts are firing. */
  const firing = (histories: readonly (readonly [input: readonly Series[], alerts: readonly string[]])[]) => {
    const file = join(folder, 'alerts.test.json');
    const tests = histories.map(([input, alerts]) => ({
      interval: '1m',
      input_series: input,
      promql_expr_test: [
        {
          expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
          eval_time: `${HOURS}h`,
          exp_samples: alerts.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
        },
      ],
    }));
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [join(FOLDER, 'alerts.yml')], evaluation_interval: '1m', tests }),
    );
    return promtool('test', 'rules', file);
  };

  it('has a well and an unwell instance for every alert', () => {
    expect(Object.keys(WELL)).toEqual(NAMES);
    expect(Object.keys(UNWELL)).toEqual(NAMES);
  });

  it('says nothing of an instance that is well', () => {
    expect(firing([[Object.values(WELL).flat(), []]])).toMatchObject({ status: 0 });
  });

  it('says of an instance that is unwell what it is, and nothing else', () => {
    expect(firing(NAMES.map((name) => [UNWELL[name]!, [name]]))).toMatchObject({ status: 0 });
    expect(firing([[UNWELL.ServerDown!, ['NotReady']]])).toMatchObject({ status: 1 });
  });

  it('shows or watches every metric of the server', () => {
    const text = [ALERTS, ...QUERIES.map(([, query]) => query)].join(' ');
    expect(Object.keys(METRICS).filter((name) => !text.includes(name))).toEqual([]);
  });

  it.each(NAMES)('says what to do about %s', (name) => {
    const docs = readFileSync('docs/monitoring.md', 'utf8');
    expect(docs).toContain(`### ${name}\n`);
  });

  describe('by a real Prometheus', () => {
    let database: TestDatabase;
    let server: ServerProcess;
    let prometheus: ChildProcess;
    let url: string;

    beforeAll(async () => {
      database = await createTestDatabase();
      const [metricsPort, port] = [await freePort(), await freePort()];
      server = await ServerProcess.start({
        ...database.environment,
        METRICS_PORT: String(metricsPort),
      });
      // As a browser and a balancer ask, so that there is something to see.
      for (const path of ['/readyz', '/api/public/me', '/oauth/authorize'])
        await (await fetch(server.url + path)).text();
      const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
        .replace('localhost:9464', `127.0.0.1:${metricsPort}`)
        .replaceAll('15s', '500ms')
        .replace('- alerts.yml', `- ${join(FOLDER, 'alerts.yml')}`);
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
      await seen(async () => (await ask<unknown[]>('sum_over_time(up[1m]) > 5')).length === 1);
    }, 60_000);
    afterAll(async () => {
      prometheus.kill('SIGTERM');
      await once(prometheus, 'close');
      await server.kill();
      await database.drop();
    });

    const seen = (look: () => Promise<boolean>) =>
      until(() => look().catch(() => false), 'Prometheus comes that far', TARGETS_MS + SLOW_MACHINE_MS);
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

    it('knows every metric that alerts and dashboard ask for', async () => {
      const known = new Set(await get<string[]>('/api/v1/label/__name__/values'));
      const metadata = await get<Record<string, unknown>>('/api/v1/targets/metadata').then((all) =>
        (all as unknown as { metric: string }[]).map(({ metric }) => metric),
      );
      for (const name of metadata) known.add(name).add(`${name}_count`).add(`${name}_bucket`);
      known.add('up');
      const asked = [ALERTS, ...QUERIES.map(([, query]) => query)].flatMap((text) => [
        ...text.matchAll(/\b([a-z][a-z0-9_]+)\{(?:\{ \$labels)?/g),
      ]);
      const names = [...new Set(asked.map(([, name]) => name!))];
      expect(names.length).toBeGreaterThan(20);
      expect(names.filter((name) => !known.has(name))).toEqual([]);
    });

    it('understands what every panel asks, and has an answer to most', async () => {
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
      // Of a scrape for which a busy machine took too long, there is nothing.
      let missing = await withoutAnswer();
      await seen(async () => {
        missing = await withoutAnswer();
        return missing.every((title) => NOTHING_YET.includes(title));
      }).catch(() => undefined);
      expect(missing.filter((title) => !NOTHING_YET.includes(title))).toEqual([]);
    });

    it('sees requests by route and status, and no rule fails', async () => {
      await seen(
        async () =>
          (
            await ask<unknown[]>(
              'http_request_duration_seconds_count{route="/api/public/me", status="401", job="public-user-api"} > 0',
            )
          ).length === 1,
      );
      const { groups } = await get<{ groups: { rules: { name: string; health: string }[] }[] }>(
        '/api/v1/rules',
      );
      const rules = groups.flatMap((group) => group.rules);
      expect(rules.map(({ name }) => name)).toEqual(NAMES);
      expect(rules.filter(({ health }) => health === 'err')).toEqual([]);
    });

    it('sees that a server is gone', async () => {
      await server.kill('SIGKILL');
      const alert = 'ALERTS{alertname="ServerDown"}';
      await seen(async () => (await ask<unknown[]>(alert)).length === 1);
      expect(await ask<unknown[]>(alert)).toMatchObject([{ metric: { severity: 'page' } }]);
    });
  });
});
