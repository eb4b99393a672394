import { once } from 'node:events';
import { createServer, Server } from 'node:net';
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

/** Who was accepted just before the listener was closed has so long until its connection counts as idle. */
const IDLE_MS = 100;

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
  await closeStandIn();
  const resume = await quietMoment(connections);
  const closed = listenersClosed(server);
  resume();
  const idle = globalThis.setTimeout(() => server.closeIdleConnections(), IDLE_MS);
  const silent = globalThis.setTimeout(() => connections.closeSilent(), SILENT_MS);
  const late = globalThis.setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(idle);
  clearTimeout(silent);
  clearTimeout(late);
  await app.close();
  await database.end();
}

/** Closes a listener and leaves its connections. The server's own close looks through idle ones first, and meanwhile somebody connects. */
function listenersClosed(server: Server): Promise<unknown> {
  return new Promise((resolve) => Server.prototype.close.call(server, resolve));
}

/** Closes a listener that nobody knows: so the code for that is loaded, which takes ten times as long as it runs. */
async function closeStandIn(): Promise<void> {
  const standIn = createServer();
  await once(standIn.listen({ port: 0, host: '127.0.0.1', exclusive: true }), 'listening');
  await listenersClosed(standIn);
}

/** So long nobody connects, in ms, before the listener is closed; and so long that is waited for, and for the turn below. */
const QUIET_MS = 50;
const QUIET_WITHIN_MS = 900;
const EMPTY_WITHIN_MS = 1_000;
/** Between two looks, in ms. */
const LOOK_MS = 5;
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
  let quietSince = begun;
  for (let now = begun; now - begun < EMPTY_WITHIN_MS; now = performance.now()) {
    // Sleeps rather than spins: who has just slept is not about to lose the processor, within the turn that counts.
    await setTimeout(LOOK_MS);
    const before = performance.now();
    await setImmediate();
    const after = performance.now();
    if (connections.accepted > accepted) {
      ({ accepted } = connections);
      quietSince = after;
      continue;
    }
    // Of a longer turn the machine may have used a part for something else, and somebody came meanwhile.
    const isEmpty = after - before < EMPTY_TURN_MS;
    if (isEmpty && (after - quietSince >= QUIET_MS || after - begun >= QUIET_WITHIN_MS)) break;
  }
  return resume;
}
