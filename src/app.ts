import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from './database/database.js';
import { AppModule } from './app.module.js';
import type { Config } from './config/config.js';
import { configureApp } from './configure-app.js';
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

/** Ends it cleanly: no new connections, requests in flight finished, batches written, then the pool. */
export async function closeApp(app: NestExpressApplication): Promise<void> {
  const database = app.get(Database);
  await app.close();
  await database.end();
}
