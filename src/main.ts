import cluster from 'node:cluster';
import { connect, createServer } from 'node:net';
import type { DataSource } from 'typeorm';
import { loadConfig, loadDotEnv } from './config/config.js';
import type { Config } from './config/config.js';
import { openDatabase } from './database/open-database.js';
import { registerDemoClient } from './oauth/demo-client.js';
import { registerDocsClient } from './oauth/docs-client.js';
import { demoMembers, hasDemo, refuseDemoMembers, seedDemo } from './operations/demo/demo.js';
import { testKey } from './operations/demo/test-key.js';
import { banner, beginning } from './operations/demo/banner.js';
import type { DemoFacts } from './operations/demo/banner.js';
import { serveMetrics } from './operations/metrics/metrics-server.js';
import { WorkersMetrics } from './operations/metrics/workers-metrics.js';
import { superviseWorkers } from './workers.js';
import { OperatorError } from './values/operator-error.js';

/** Takes much of a start: done while the embedded database is opened, and only where requests are served. */
const loadApp = () => import('./app.js');

/** Makes everything ready that processes share, then serves: itself, or through workers. */
async function start(config: Config): Promise<void> {
  await refuseTakenPort(config);
  if (!config.production) console.log(beginning(config));
  let demo: DemoFacts | undefined;
  const prepare = async (dataSource: DataSource) => {
    if (!config.loopbackOnly) await refuseDemoMembers(dataSource);
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
    endWith(() => workers.end().then(endMetrics)); // the first may serve before the last is ready
    await workers.ready;
  } else {
    endWith(await serve(config));
  }
  if (!config.production) console.log(banner(config, demo));
}

/** @returns how to end it */
async function serve(config: Config): Promise<() => Promise<void>> {
  const { closeApp, createApp } = await loadApp();
  const app = await createApp(config);
  await app.listen(config.port, config.host).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === 'listen' ? portFault(config, error) : error;
  });
  return () => closeApp(app);
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

/**
 * Before anything is made: a port that is taken is the commonest fault, and nothing should be half done for it. Asked by connecting,
 * since whoever tries the port again and again, as proxies do, would be let in by a listener, and cut off when it is closed.
 */
async function refuseTakenPort(config: Config): Promise<void> {
  const { host, port } = config;
  const probe = createServer();
  try {
    // On any port: whether the address is one of this machine's. Nobody else's is connected to.
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject).listen(0, host, resolve);
    });
  } catch (error) {
    throw portFault(config, error as NodeJS.ErrnoException);
  }
  await new Promise((resolve) => probe.close(resolve));
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect(port, host, () => {
      resolve(true);
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
  if (isTaken) throw portFault(config, { code: 'EADDRINUSE' });
}

function portFault({ host, port }: Config, error: { readonly code?: string | undefined }): OperatorError {
  const reason =
    error.code === 'EADDRINUSE'
      ? 'is taken: stop what listens there, or set PORT'
      : `cannot be used (${error.code})`;
  return new OperatorError(`Port ${port} on ${host} ${reason}`, { cause: error });
}

try {
  loadDotEnv();
  const config = loadConfig();
  if (cluster.isPrimary) await start(config);
  else onSignal(await serve(config));
} catch (error) {
  // What the operator can mend is told in one line; anything else is a fault of ours, with its stack.
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}
