import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from './database/database.js';
import { AppModule } from './app.module.js';
import type { Config } from './config/config.js';
import { configureApp } from './configure-app.js';
import { Readiness } from './operations/health/readiness.js';
import { ApiAdapter } from './http/api.adapter.js';

/** The whole application over one database, ready to listen; for main and for the tests. */
export async function createApp(config: Config): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule.with(config), new ApiAdapter(), {
    bodyParser: false, // bodies are read after the credential was checked
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  configureApp(app);
  return app;
}

/** Requests in flight have this long to finish; operations.md promises an end within 10 s. */
const DRAIN_MS = 9_000;

/**
 * Ends it cleanly: not ready any more, no new connections, requests in flight finished, batches written, then the
 * database's connections.
 */
export async function closeApp(app: NestExpressApplication): Promise<void> {
  app.get(Readiness).ending = true;
  const database = app.get(Database);
  const server = app.getHttpServer();
  // A connection that is kept alive becomes idle when its request is answered.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const late = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await app.close();
  clearInterval(idle);
  clearTimeout(late);
  await database.end();
}
