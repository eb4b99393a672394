import { once } from 'node:events';
import { createServer, Server } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import { OauthRoutes } from './authorization-server/oauth-routes.js';
import { Config } from './config/config.js';
import { Database } from './database/database.js';
import { Logger } from './runtime/logger.js';
import { Meter } from './runtime/meter.js';
import { ProblemFilter } from './http/output/problem.filter.js';
import { Problem } from './http/output/problems.js';
import { apiHeaders, isUnderApi } from './http/pipeline/api-headers.js';
import { ApiAdapter } from './http/pipeline/api.adapter.js';
import { rejectBusy } from './http/pipeline/busy.js';
import { compose } from './http/pipeline/compose.js';
import { KINDS, type EntryPoint } from './http/pipeline/entry-point.js';
import { requestLines, requestLog } from './http/pipeline/request-log.js';
import { responseDeadline } from './http/pipeline/response-deadline.js';
import { PageRoutes, rejectBusyOauth } from './member-pages/requests/page-requests.js';
import { Readiness } from './operations/health/readiness.js';
import { Metrics } from './operations/metrics/metrics.js';
import { ProblemPage } from './site/problem-page.js';

/** Creates the application, ready to listen. */
export async function createApp(config: Config): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.with(config),
    new ApiAdapter(config),
    {
      bodyParser: false, // bodies are read after the credential is checked
      logger: ['error', 'warn'],
      abortOnError: false,
    },
  );
  configureApp(app);
  return app;
}

/** Sets up the middleware, the error filter and the overload metrics. */
export function configureApp(app: NestExpressApplication): void {
  const config = app.get(Config);
  const filter = app.get(ProblemFilter);
  const metrics = app.get(Metrics);
  const { refusals, admissions } = (app.getHttpAdapter() as unknown as ApiAdapter).entryPoint;
  refusals.api = refusals.platform = rejectBusy(config.publicUrl);
  refusals.oauth = refusals.pages = rejectBusyOauth;
  const meter = app.get(Meter);
  for (const kind of KINDS) {
    meter.read('overload_refusals_total', () => [[{ reason: kind }, admissions[kind].refused]]);
    meter.read('admission', () => {
      const { atWork, waiting, held } = admissions[kind].state();
      return [
        [{ kind, state: 'at_work' }, atWork],
        [{ kind, state: 'waiting' }, waiting],
        [{ kind, state: 'unread_connections' }, held],
      ];
    });
  }
  const ofApi = compose(apiHeaders, responseDeadline(config.databaseDeadlines.answer, filter));
  const ofOthers = compose(app.get(OauthRoutes).handler(), app.get(PageRoutes).handler());
  app.use(
    compose(
      config.logFormat === 'pretty' ? linesForPeople(app, config) : requestLog(app.get(Logger)),
      ...(metrics.enabled ? [metrics.observe()] : []),
      (request, response, next) => {
        const { path, valid } = request.context;
        if (valid) (isUnderApi(path) ? ofApi : ofOthers)(request, response, next);
        else filter.answer(new Problem('not_found'), request, response);
      },
    ),
  );
  app.useGlobalFilters(filter);
  const page = app.get(ProblemPage);
  filter.page = (...problem) => page.answer(...problem);
}

function linesForPeople(app: NestExpressApplication, { logLevel }: Config) {
  const database = app.get(Database);
  const write = ['warn', 'error', 'fatal', 'silent'].includes(logLevel)
    ? () => undefined
    : (line: string) => void process.stdout.write(`${line}\n`);
  return requestLines(write, async (userId) => {
    const [user] = await database.read<{ username: string }>(
      { name: 'read-username', text: 'SELECT username FROM users WHERE id = $1' },
      [userId],
    );
    return user?.username ?? String(userId);
  });
}

/** Maximum wait in ms for requests in progress: docs/operators/operations.md promises the exit within 10 s after SHUTDOWN_DELAY. */
const DRAIN_MS = 9_000;

/** Delay in ms before the server closes idle connections: the last accepted connections may still send a request. */
const IDLE_MS = 100;

/** Maximum wait in ms, at shutdown, for the first request of a connection. */
const SILENT_MS = 1_000;

/** Ends the application: serves for SHUTDOWN_DELAY while /readyz fails, finishes requests, writes batches, and closes connections. */
export async function closeApp(app: NestExpressApplication): Promise<void> {
  const database = app.get(Database);
  const { entryPoint } = app.getHttpAdapter() as ApiAdapter;
  const server = app.getHttpServer();
  app.get(Readiness).ending = true;
  entryPoint.end();
  await setTimeout(app.get(Config).shutdownDelaySeconds * 1000);
  await closeStandIn();
  const resume = await quietMoment(server, entryPoint);
  const closed = listenersClosed(server);
  resume();
  const timers = [
    globalThis.setTimeout(() => server.closeIdleConnections(), IDLE_MS),
    globalThis.setTimeout(() => entryPoint.connections.closeSilent(), SILENT_MS),
    globalThis.setTimeout(() => server.closeAllConnections(), DRAIN_MS),
  ];
  await closed;
  for (const timer of timers) clearTimeout(timer);
  await app.close();
  await database.end();
}

/** Closes a listener, not its connections. Node's `close` first scans idle connections, and clients may connect during the scan. */
function listenersClosed(server: Server): Promise<unknown> {
  return new Promise((resolve) => Server.prototype.close.call(server, resolve));
}

/** Closes another listener first, so that the code for closing is loaded. */
async function closeStandIn(): Promise<void> {
  const standIn = createServer();
  await once(standIn.listen({ port: 0, host: '127.0.0.1', exclusive: true }), 'listening');
  await listenersClosed(standIn);
}

const QUIET_MS = 50; // time in ms without a new connection before the listener closes
const QUIET_WITHIN_MS = 900; // maximum wait for QUIET_MS
const EMPTY_WITHIN_MS = 1_000; // maximum wait for an event loop turn without work
const LOOK_MS = 5; // pause between two checks
/** Maximum duration, in ms, of an event loop turn without work. */
const EMPTY_TURN_MS = 0.05;

/**
 * Waits, about a second at most, until the kernel has no connection left to accept: closing a listener resets such connections. Delays new
 * requests until the caller calls the returned function, in the same event loop turn in which it closes the listener.
 */
async function quietMoment(server: Server, entryPoint: EntryPoint): Promise<() => void> {
  const resume = entryPoint.pause();
  const begun = performance.now();
  let acceptedAt = begun;
  server.on('connection', () => (acceptedAt = performance.now()));
  for (let now = begun; now - begun < EMPTY_WITHIN_MS; now = performance.now()) {
    // Sleeps instead of spinning: a process that just slept is unlikely to lose the processor in the measured turn.
    await setTimeout(LOOK_MS);
    const before = performance.now();
    await setImmediate();
    const after = performance.now();
    if (acceptedAt >= before) continue;
    // A client may have connected during a longer turn.
    const isEmpty = after - before < EMPTY_TURN_MS;
    if (isEmpty && (after - acceptedAt >= QUIET_MS || after - begun >= QUIET_WITHIN_MS)) break;
  }
  return resume;
}
