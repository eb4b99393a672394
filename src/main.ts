import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { DataSource } from 'typeorm';
import { exposedDevelopment, loadConfig, loadDotEnv, type Config } from './config/config.js';
import { VERSION } from './config/version.js';
import { openDatabase } from './database/open-database.js';
import { registerDemoClient, registerDocsClient } from './clients/own-clients.js';
import {
  banner,
  beginning,
  type DemoFacts,
  demoMembers,
  hasDemo,
  rejectDemoMembers,
  seedDemo,
  testKey,
} from './operations/demo/demo.js';
import { serveMetrics, WorkersMetrics } from './operations/metrics/metrics-server.js';
import { isListening } from './values/network.js';
import { OperatorError } from './values/operator-error.js';

/** Pause before replacing a dead worker, to avoid a tight loop. */
const REPLACE_MS = 1_000;

/** Loads the application's code, which only processes that serve requests need. */
const loadApp = () => import('./app.js');

async function start(config: Config): Promise<void> {
  await refuseTakenPort(config);
  if (!config.production) console.log(beginning(config));
  let demo: DemoFacts | undefined;
  const prepare = async (dataSource: DataSource) => {
    if (!config.loopbackOnly) await rejectDemoMembers(dataSource);
    await registerDocsClient(dataSource, config);
    if (!config.seedDemo) return;
    await seedDemo(dataSource);
    if (!(await hasDemo(dataSource))) return;
    await registerDemoClient(dataSource, config);
    demo = { key: await testKey(dataSource, config), members: await demoMembers(dataSource) };
  };
  const database = await openDatabase(config, prepare, config.workers === 1 ? loadApp : undefined);
  const endWith = (end: () => Promise<void>) => onSignal(() => end().then(() => database.close()));
  if (config.workers > 1) {
    const metrics = new WorkersMetrics();
    const endMetrics = await serveMetrics(config, () => metrics.collect());
    const workers = superviseWorkers(config.workers);
    endWith(() => workers.end().then(endMetrics)); // registered early: the first worker may serve before the last is ready
    await workers.ready;
  } else {
    endWith(await serve(config));
  }
  if (config.production) await logStart(config);
  else console.log(banner(config, demo));
  const exposed = exposedDevelopment(config);
  if (exposed !== undefined) console.warn(`${exposed}: set NODE_ENV=production`);
}

async function logStart(config: Config): Promise<void> {
  const { createLogger } = await import('./runtime/logger.js');
  const { host, port, publicUrl, databaseUrl, workers } = config;
  const database = new URL(databaseUrl!);
  createLogger(config).info(
    {
      version: VERSION,
      address: `${host}:${port}`,
      public_url: publicUrl,
      database: `${database.host}${database.pathname}`,
      workers,
    },
    'server started',
  );
}

/** @returns a function that ends the server */
async function serve(config: Config): Promise<() => Promise<void>> {
  const { closeApp, createApp } = await loadApp();
  const app = await createApp(config);
  await app.listen(config.port, config.host).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === 'listen' ? portFault(config, error) : error;
  });
  return () => closeApp(app);
}

/** Runs `count` server processes on one port; replaces dead ones. `ready` rejects with OperatorError if one ends before it listens. */
function superviseWorkers(count: number) {
  let ending = false;
  const fork = (): Worker => {
    const worker = cluster.fork();
    worker.once('exit', () => {
      if (!ending) setTimeout(() => (ending ? undefined : fork()), REPLACE_MS);
    });
    return worker;
  };
  const listening = Array.from({ length: count }, () => {
    const worker = fork();
    return new Promise<void>((resolve, reject) => {
      worker.once('listening', () => resolve());
      worker.once('exit', () => {
        if (!ending)
          reject(
            new OperatorError('A server process ended before it was ready: fix the error that it printed'),
          );
      });
    });
  });
  return {
    ready: Promise.all(listening),
    end: async () => {
      ending = true;
      const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
      const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
      for (const worker of workers) worker.process.kill('SIGTERM');
      await Promise.all(ended);
    },
  };
}

function onSignal(end: () => Promise<void>): void {
  let ending = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (ending) return;
      ending = true;
      void end().then(() => process.exit(0));
    });
  }
}

/** Connects to the port, since a test listener could accept clients. @throws OperatorError if the port or address cannot be used */
async function refuseTakenPort(config: Config): Promise<void> {
  const { host, port } = config;
  const probe = createServer();
  try {
    // First listens on any free port, to check that the address belongs to this host.
    await once(probe.listen(0, host), 'listening');
  } catch (error) {
    throw portFault(config, error as NodeJS.ErrnoException);
  }
  await new Promise((resolve) => probe.close(resolve));
  if (await isListening({ port, host })) throw portFault(config, { code: 'EADDRINUSE' });
}

function portFault({ host, port }: Config, error: { readonly code?: string | undefined }): OperatorError {
  const reason =
    error.code === 'EADDRINUSE'
      ? 'is in use: stop the program that listens there, or set PORT'
      : `cannot be used (${error.code}): set another HOST or PORT`;
  return new OperatorError(`Port ${port} on ${host} ${reason}`, { cause: error });
}

try {
  loadDotEnv();
  const config = loadConfig();
  if (cluster.isPrimary) await start(config);
  else onSignal(await serve(config));
} catch (error) {
  // Operators can fix an OperatorError, so it needs no stack.
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}
