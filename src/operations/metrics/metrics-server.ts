import cluster, { type Worker } from 'node:cluster';
import { on, once } from 'node:events';
import { createServer } from 'node:http';
import type { Registry } from 'prom-client';
import type { Config } from '../../config/config.js';
import { metricOf } from '../../runtime/metrics.js';
import { OperatorError } from '../../values/operator-error.js';

/** Maximum time in ms to wait for workers' metrics; the last counters of late workers are used. */
const PATIENCE_MS = 1_000;

type Snapshot = readonly { readonly name: string; readonly type: string }[];

/** The primary process sends the scrape's number, and each worker returns it with its metrics. */
interface ScrapeMessage {
  readonly scrape: number;
  readonly snapshot?: Snapshot;
}

/** Sends a worker's metrics to the primary process on request. */
export function tellPrimary(registry: Registry): void {
  process.on('message', (message: Partial<ScrapeMessage> | null) => {
    const scrape = message?.scrape;
    if (scrape !== undefined) void answer(scrape);
  });
  const answer = async (scrape: number) => {
    const snapshot = await takeSnapshot(registry);
    if (process.connected) process.send?.({ scrape, snapshot } satisfies ScrapeMessage);
  };
}

/** Combines the workers' metrics. Keeps the counters of ended and unresponsive workers: if a sum fell, rate() would see a restart. */
export class WorkersMetrics {
  readonly #said = new Map<number, Snapshot>();
  #ended: Snapshot[] = [];
  #scrapes = 0;
  #collecting: Promise<string> | undefined;

  constructor() {
    cluster.on('exit', ({ id }) => {
      const said = this.#said.get(id);
      this.#said.delete(id);
      if (said) this.#ended.push(said.filter(grows));
    });
  }

  collect(): Promise<string> {
    this.#collecting ??= this.#collect().finally(() => (this.#collecting = undefined));
    return this.#collecting;
  }

  async #collect(): Promise<string> {
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    const { AggregatorRegistry } = (await import('prom-client')).default;
    const answered = await this.#ask(workers);
    const ended = this.#ended.length;
    if (ended > 1) {
      const together = await takeSnapshot(AggregatorRegistry.aggregate(this.#ended));
      this.#ended.splice(0, ended, together);
    }
    const silent = { labels: { state: 'silent' }, value: workers.length - answered.size };
    return AggregatorRegistry.aggregate([
      ...[...this.#said].map(([id, said]) => (answered.has(id) ? said : said.filter(grows))),
      ...this.#ended,
      [{ ...metricOf('server_processes'), name: 'server_processes', aggregator: 'sum', values: [silent] }],
    ]).metrics();
  }

  /** @returns ids of the workers that responded in time */
  async #ask(workers: readonly Worker[]): Promise<Set<number>> {
    const scrape = ++this.#scrapes;
    const answered = new Set<number>();
    const ask = async (worker: Worker) => {
      const messages = on(worker, 'message', { signal: AbortSignal.timeout(PATIENCE_MS), close: ['exit'] });
      worker.send({ scrape } satisfies ScrapeMessage, () => undefined);
      for await (const [message] of messages as AsyncIterable<[Partial<ScrapeMessage> | null]>) {
        if (message?.scrape !== scrape || message.snapshot === undefined) continue;
        this.#said.set(worker.id, message.snapshot);
        answered.add(worker.id);
        return;
      }
    };
    await Promise.allSettled(workers.filter((worker) => worker.isConnected()).map(ask));
    return answered;
  }
}

function grows({ type }: Snapshot[number]): boolean {
  return ['counter', 'histogram', 'summary'].includes(type);
}

async function takeSnapshot(registry: Registry): Promise<Snapshot> {
  // prom-client declares `type` as a number, but returns names.
  return (await registry.getMetricsAsJSON()) as unknown as Snapshot;
}

/** Serves `collect` at /metrics on METRICS_PORT, if set. @returns a function that stops the server @throws OperatorError */
export async function serveMetrics(
  { metricsPort, host }: Config,
  collect: () => Promise<string>,
): Promise<() => Promise<void>> {
  if (metricsPort === undefined) return async () => undefined;
  const { Registry } = (await import('prom-client')).default;
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    collect().then(
      (text) => response.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(metricsPort, host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new OperatorError(
      `METRICS_PORT ${metricsPort} on ${host} cannot be used (${error.code}): set another port`,
      { cause: error },
    );
  });
  return async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
}
