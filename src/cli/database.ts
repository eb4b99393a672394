import type { DataSource } from 'typeorm';
import { loadConfig, loadDotEnv } from '../config/config.js';
import type { Config } from '../config/config.js';
import { openEmbedded } from '../database/embedded.js';
import type { EmbeddedDatabase } from '../database/embedded.js';
import { migrate } from '../database/migrate.js';
import { connect } from '../database/open-database.js';
import { readSchema, requireFit } from '../database/schema.js';

/** To find somebody who serves the embedded database and does not end that moment. */
const MOST_ATTEMPTS = 10;

/** What a command works on. */
export interface Work {
  readonly config: Config;
  readonly dataSource: DataSource;
}

/** Reads the settings as the server does. @throws OperatorError */
export function readConfig(): Config {
  loadDotEnv();
  return loadConfig();
}

/**
 * Runs a command over the database, beside a running server or alone: the embedded database is opened here where
 * nobody serves it, and migrated where it is empty.
 *
 * @throws OperatorError where migrations are pending
 */
export function withDatabase<T>(work: (of: Work) => Promise<T>): Promise<T> {
  return withAnyDatabase(async (of) => {
    await requireSchema(of);
    return work(of);
  });
}

/** The same for what revokes: where anything was ever migrated, no version is a reason to refuse. */
export function withDatabaseOfAnyVersion<T>(work: (of: Work) => Promise<T>): Promise<T> {
  return withAnyDatabase(async (of) => {
    const { applied } = await readSchema(of.dataSource);
    if (applied.length === 0) await requireSchema(of);
    return work(of);
  });
}

/** The same, whatever the state of its schema. */
export async function withAnyDatabase<T>(work: (of: Work) => Promise<T>, config = readConfig()): Promise<T> {
  const { embedded, dataSource } = await open(config);
  try {
    return await work({ config, dataSource });
  } finally {
    await dataSource.destroy();
    await embedded?.close(Infinity); // other commands may work on it through this one
  }
}

/** @returns `embedded` where it was opened here */
async function open(
  config: Config,
): Promise<{ embedded: EmbeddedDatabase | undefined; dataSource: DataSource }> {
  for (let attempt = 1; ; attempt++) {
    const embedded = config.databaseUrl ? undefined : await openEmbedded(config.dataDir);
    try {
      return { embedded, dataSource: await connect(config) };
    } catch (error) {
      await embedded?.close();
      // Who served it a moment ago may have ended before we came: then it is ours to open.
      if (config.databaseUrl || embedded || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

async function requireSchema({ config, dataSource }: Work): Promise<void> {
  const schema = await readSchema(dataSource);
  if (schema.applied.length === 0 && !config.databaseUrl) await migrate(dataSource);
  else requireFit(schema);
}
