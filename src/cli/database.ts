import type { Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { SignInMethods } from '../accounts/sign-in/sign-in-methods.js';
import { UsersService } from '../accounts/users.service.js';
import { AuditLog } from '../audit/audit-log.js';
import { ApiKeysService } from '../auth/api-keys/api-keys.service.js';
import { AppTesters } from '../clients/app-testers.js';
import { ClientsService } from '../clients/clients.service.js';
import { ClientReviews } from '../clients/reviews.js';
import { ConnectedApps } from '../clients/connected-apps.js';
import { SigningKeysService } from '../clients/signing-keys.service.js';
import { Config, loadConfig, loadDotEnv } from '../config/config.js';
import { openEmbedded } from '../database/embedded/embedded.js';
import { migrate } from '../database/schema/migrate.js';
import { connect } from '../database/open-database.js';
import { readSchema, requireFit } from '../database/schema/schema.js';
import { PublicHttps } from '../runtime/public-https.js';
import { OperatorError } from '../values/operator-error.js';
import { WebhookSecrets, WebhookSender } from '../webhooks/webhook-sender.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';

/** Maximum attempts to open or reach the embedded database, since the process that serves it may end at any time. */
const MAX_ATTEMPTS = 10;

const INSUFFICIENT_PRIVILEGE = '42501';

/** Services that commands can use. */
const SERVICES = [
  ApiKeysService,
  AppTesters,
  AuditLog,
  ClientReviews,
  ClientsService,
  ConnectedApps,
  SigningKeysService,
  UsersService,
  SignInMethods,
  PublicHttps,
  WebhookSecrets,
  WebhookSender,
  WebhooksService,
];

export interface Work {
  readonly config: Config;
  readonly dataSource: DataSource;
  readonly get: <Service>(type: Type<Service>) => Service;
}

/** Reads the settings like the server does. @throws OperatorError */
export function readConfig(): Config {
  loadDotEnv();
  return loadConfig();
}

/** The schema that a command accepts: this version's; any version's; or anything, including an empty database. */
export type AcceptedSchema = 'this version' | 'any version' | 'anything';

/** Runs work on the database. Migrates an empty embedded database, unless `accepted` is `anything`. @throws OperatorError */
export async function onDatabase<T>(
  work: (of: Work) => Promise<T>,
  accepted: AcceptedSchema = 'this version',
  config = readConfig(),
): Promise<T> {
  const { embedded, dataSource } = await open(config);
  try {
    if (accepted !== 'anything') {
      const schema = await readSchema(dataSource);
      if (schema.applied.length === 0 && !config.databaseUrl) await migrate(dataSource);
      else if (schema.applied.length === 0 || accepted === 'this version') requireFit(schema);
    }
    const given = [
      { provide: Config, useValue: config },
      { provide: DataSource, useValue: dataSource },
    ];
    const services = await NestFactory.createApplicationContext(
      { module: class {}, providers: [...given, ...SERVICES] },
      { logger: false, abortOnError: false },
    );
    return await work({ config, dataSource, get: (type) => services.get(type) });
  } catch (error) {
    if ((error as { code?: unknown }).code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new OperatorError(
      `The database role lacks a privilege (${(error as Error).message}): ` +
        'run the command as the owner of the tables, or grant the privileges that docs/operators/operations.md lists',
      { cause: error },
    );
  } finally {
    await dataSource.destroy();
    await embedded?.close(Infinity); // waits for other commands that use it through this process
  }
}

/** Connects to the database. @returns also `embedded` if this process opened the embedded database */
async function open(config: Config) {
  for (let attempt = 1; ; attempt++) {
    const embedded = config.databaseUrl ? undefined : await openEmbedded(config.dataDir);
    try {
      return { embedded, dataSource: await connect(config) };
    } catch (error) {
      await embedded?.close();
      // The process that served the database may have ended; then the next attempt opens the database in this process.
      if (config.databaseUrl || embedded || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
