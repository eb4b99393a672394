import { setImmediate, setTimeout } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from './database/database.js';
import { AppModule } from './app.module.js';
import { configureApp } from './configure-app.js';
import { Readiness } from './operations/health/readiness.js';
import { ApiAdapter } from './http/pipeline/api.adapter.js';
import type { Connections } from './http/pipeline/connections.js';
import { Config } from './config/config.js';

/** Makes the whole application over one database, ready to listen; for main and for the tests. */
export async function createApp(config: Config): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.with(config),
    new ApiAdapter(config),
    {
      bodyParser: false, // bodies are read after the credential was checked
      logger: ['error', 'warn'],
      abortOnError: false,
    },
  );
  app.get(Readiness).watch((app.getHttpAdapter() as ApiAdapter).frontDoor.connections);
  configureApp(app);
  return app;
}

/** Requests in flight have this long to finish; operations.md promises an end within 10 s of SHUTDOWN_DELAY. */
const DRAIN_MS = 9_000;

/** A connection on which nothing was asked yet has this long to ask. */
const SILENT_MS = 1_000;

/**
 * Ends it cleanly. For SHUTDOWN_DELAY it serves on, not ready any more, and every answer is the last one on its connection;
 * then there are no new connections, requests in flight are finished, batches written, and the database's connections closed.
 */
export async function closeApp(app: NestExpressApplication): Promise<void> {
  const database = app.get(Database);
  const { connections } = (app.getHttpAdapter() as ApiAdapter).frontDoor;
  const server = app.getHttpServer();
  app.get(Readiness).end();
  await setTimeout(app.get(Config).shutdownDelaySeconds * 1000);
  const resume = await quietMoment(connections);
  const closed = new Promise((resolve) => server.close(resolve));
  resume();
  const silent = globalThis.setTimeout(() => connections.closeSilent(), SILENT_MS);
  const late = globalThis.setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(silent);
  clearTimeout(late);
  await app.close();
  await database.end();
}

/** So long nobody connects, in ms, before the listener is closed; and so long that is waited for. */
const QUIET_MS = 20;
const QUIET_WITHIN_MS = 900;
/** Longest a turn of the event loop takes in which nothing happened, in ms. */
const EMPTY_TURN_MS = 0.05;

/**
 * Waits for a moment in which nobody is about to be accepted: a listener that closes resets the connections that wait to be, and
 * with them requests. So that there is such a moment, no answer is begun meanwhile: who waits for one does not ask again.
 *
 * @returns what begins the answers that were held back; the listener is to be closed first, in the same turn of the event loop
 */
async function quietMoment(connections: Connections): Promise<() => void> {
  const resume = connections.pause();
  const begun = performance.now();
  let { accepted } = connections;
  let [now, quietSince] = [begun, begun];
  while (now - begun < QUIET_WITHIN_MS) {
    const before = now;
    await setImmediate();
    now = performance.now();
    if (connections.accepted > accepted) {
      ({ accepted } = connections);
      quietSince = now;
      continue;
    }
    // Who was accepted has sent a request by then, or it would be closed as idle. A longer turn may have been one in which the machine
    // did something else, and somebody came meanwhile.
    if (now - quietSince >= QUIET_MS && now - before < EMPTY_TURN_MS) break;
  }
  return resume;
}
