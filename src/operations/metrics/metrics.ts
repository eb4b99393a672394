import cluster from 'node:cluster';
import {
  Inject,
  Injectable,
  type FactoryProvider,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { Database } from '../../database/database.js';
import { MemberReads } from '../../database/member-reads.js';
import { Meter } from '../../runtime/meter.js';
import { metricOf, METRICS, type MetricName } from '../../runtime/metrics.js';
import { MAX_LAG_SECONDS } from '../../database/replicas/primary-wal.js';
import { serveMetrics, tellPrimary } from './metrics-server.js';
import { VERSION } from '../../config/version.js';
import { Config } from '../../config/config.js';

const EXPIRING_KEYS = `SELECT count(*)::integer AS value FROM api_keys k JOIN api_key_usage u ON u.key_id = k.id
WHERE k.revoked_at IS NULL AND k.replaced_by IS NULL AND k.expires_at BETWEEN now() AND now() + interval '7 days'
  AND u.last_used_at > now() - interval '7 days'`;

const EXPIRING_SECRETS = `SELECT count(*)::integer AS value FROM oauth_client_secrets s JOIN oauth_clients c ON c.id = s.client_id
WHERE c.disabled_at IS NULL AND s.expires_at BETWEEN now() AND now() + interval '7 days' AND s.last_used_at > now() - interval '7 days'
  AND NOT EXISTS (SELECT FROM oauth_client_secrets o WHERE o.client_id = s.client_id AND o.id > s.id
    AND (o.expires_at IS NULL OR o.expires_at > s.expires_at) AND o.last_used_at IS NOT NULL)`;

const SIGNING_KEY_AGE = `SELECT extract(epoch FROM now() - min(activated_at))::float8 AS value FROM signing_keys WHERE status = 'current'`;

const DEAD_ROWS = 'SELECT relname AS table, n_dead_tup::float8 AS dead FROM pg_stat_user_tables';

const KNOWN_METHODS = METRICS.http_request_duration_seconds.labels.method;

const PROMETHEUS = Symbol('prom-client');
type Prometheus = typeof import('prom-client');

/** prom-client, loaded only if metrics are exposed. */
export const prometheus: FactoryProvider<Prometheus | undefined> = {
  provide: PROMETHEUS,
  inject: [Config],
  // In the bundle, a CommonJS library has only the default export.
  useFactory: async ({ metricsPort }: Config) =>
    metricsPort === undefined ? undefined : (await import('prom-client')).default,
};

/** Prometheus metrics of this process: {@link METRICS}, and Node's metrics. */
@Injectable()
export class Metrics implements OnApplicationBootstrap, OnApplicationShutdown {
  #registry: Registry | undefined;
  #inProgress = 0;
  #end: (() => Promise<void>) | undefined;

  constructor(
    private readonly config: Config,
    private readonly meter: Meter,
    database: Database,
    reads: MemberReads,
    channel: RevocationChannel,
    @Inject(PROMETHEUS) prometheus: Prometheus | undefined,
  ) {
    if (!prometheus) return;
    this.#registry = new prometheus.Registry();
    prometheus.collectDefaultMetrics({ register: this.#registry });
    this.#register(prometheus, this.#registry);
    meter.read('build_info', () => [[{ version: VERSION, node: process.version }, 1]]);
    meter.read('server_processes', () => [[{ state: 'answering' }, 1]]);
    meter.read('http_requests_under_way', () => [[{}, this.#inProgress]]);
    meter.read('database_pool_connections', () => {
      const pool = database.poolState();
      return (['busy', 'idle', 'waiting'] as const).map((state) => [{ state }, pool[state]] as const);
    });
    meter.read('database_pipelined_lanes', () => [[{}, database.pipelinesInProgress().length]]);
    meter.read('database_pipelined_reads_under_way', () => [
      [{}, database.pipelinesInProgress().reduce((sum, count) => sum + count, 0)],
    ]);
    meter.read('overload_refusals_total', () => [[{ reason: 'database_pool' }, database.refusals]]);
    meter.read('database_replica_lag_seconds', async () =>
      (await reads.lags()).flatMap((lag, index) =>
        lag === Infinity ? [] : [[{ replica: String(index + 1) }, lag] as const],
      ),
    );
    meter.read('database_replica_asked', async () =>
      (await reads.lags()).map(
        (lag, index) => [{ replica: String(index + 1) }, lag <= MAX_LAG_SECONDS ? 1 : 0] as const,
      ),
    );
    meter.read('member_writes_channel_up', () =>
      reads.hearsWrites === undefined ? [] : [[{}, reads.hearsWrites ? 1 : 0]],
    );
    meter.read('member_reads_total', () =>
      (['primary', 'replica'] as const).map((place) => [{ place }, reads.reads[place]] as const),
    );
    for (const [name, sql] of [
      ['api_keys_expiring', EXPIRING_KEYS],
      ['client_secrets_expiring', EXPIRING_SECRETS],
      ['signing_key_age_seconds', SIGNING_KEY_AGE],
    ] as const)
      meter.read(name, async () => {
        const [row] = await database.rows<{ value: number | null }>(sql, []);
        return row!.value === null ? [] : [[{}, row!.value]];
      });
    if (config.databaseUrl !== undefined)
      meter.read('database_dead_rows', async () => {
        const rows = await database.rows<{ table: string; dead: number }>(DEAD_ROWS, []);
        return rows.map(({ table, dead }) => [{ table }, dead] as const);
      });
    meter.read('revocation_channel_up', () => [[{}, channel.trusted ? 1 : 0]]);
  }

  /** Whether metrics are exposed. */
  get enabled(): boolean {
    return this.#registry !== undefined;
  }

  observe() {
    return ({ context }: Request, _response: Response, next: NextFunction): void => {
      this.#inProgress++;
      context.whenOver.push((message, response) => {
        const request = message as Request;
        this.#inProgress--;
        const { startedAt, problem, route: named } = context;
        // Paths of unknown routes must not become labels.
        const route = named ?? (request.route as { path: string } | undefined)?.path ?? 'none';
        const method = KNOWN_METHODS.find((known) => known === request.method) ?? 'other';
        const labels = { method, route, status: String(response.statusCode) };
        const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
        this.meter.observe('http_request_duration_seconds', labels, seconds);
        if (problem !== undefined) this.meter.count('http_problems_total', { code: problem });
      });
      next();
    };
  }

  #register({ Counter, Gauge, Histogram }: Prometheus, registry: Registry): void {
    const { meter } = this;
    for (const name of Object.keys(METRICS) as MetricName[]) {
      const { type, help, labels = {}, together, buckets } = metricOf(name);
      const common = {
        name,
        help,
        labelNames: Object.keys(labels),
        registers: [registry],
        ...(together === undefined ? {} : { aggregator: together }),
      };
      const collected = {
        ...common,
        async collect(this: Counter | Gauge) {
          const readings = await meter.readings(name);
          if (readings === undefined) return;
          this.reset();
          for (const [of, value] of readings) this.inc(of, value);
        },
      };
      if (type === 'histogram') new Histogram({ ...common, buckets: [...buckets!] });
      else if (type === 'gauge') new Gauge(collected);
      else {
        const counter = new Counter(collected);
        // Creates the series with known labels at the start: rate() does not count a new series' first value as an increase.
        for (const combination of combine(labels)) counter.inc(combination, 0);
      }
    }
    meter.sink = {
      count: (name, labels, by) => (registry.getSingleMetric(name) as Counter).inc(labels, by),
      observe: (name, labels, value) => (registry.getSingleMetric(name) as Histogram).observe(labels, value),
    };
  }

  /** Serves the metrics; a worker instead sends them to the primary process, which has the port. */
  async onApplicationBootstrap(): Promise<void> {
    const registry = this.#registry;
    if (!registry) return;
    if (cluster.isWorker) tellPrimary(registry);
    else this.#end = await serveMetrics(this.config, () => registry.metrics());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#end?.();
  }
}

/** Returns every combination of the labels' values; none if a label's values are not listed. */
function combine(labels: Readonly<Record<string, readonly string[] | string>>) {
  let combinations: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    const listed = typeof values === 'string' ? [] : values;
    combinations = combinations.flatMap((one) => listed.map((value) => ({ ...one, [label]: value })));
  }
  return combinations;
}
