import type { DataSource } from 'typeorm';
import type { Config } from '../config/config.js';
import { createDataSource } from './postgres/data-source.js';
import { openEmbedded } from './embedded/embedded.js';
import { migrate } from './schema/migrate.js';
import { readSchema, requireFit } from './schema/schema.js';
import { isUnavailable, UnreachableDatabase } from './postgres/unavailable.js';
import { OperatorError } from '../values/operator-error.js';

/** Opens and migrates the database; in production, only checks its schema. @param meanwhile runs while the embedded database opens */
export async function openDatabase(
  config: Config,
  prepare?: (dataSource: DataSource) => Promise<void>,
  meanwhile?: () => Promise<unknown>,
): Promise<{ close(): Promise<void> }> {
  const opening = config.databaseUrl ? undefined : openEmbedded(config.dataDir);
  const [embedded] = await Promise.all([opening, meanwhile?.()]);
  if (!config.databaseUrl && !embedded) {
    throw new OperatorError(
      `The data folder ${config.dataDir} is in use by another process (a server or pua): stop it, or name another DATA_DIR`,
    );
  }
  try {
    const dataSource = await connect(config);
    try {
      if (config.production) requireFit(await readSchema(dataSource));
      else await migrate(dataSource);
      await prepare?.(dataSource);
    } finally {
      await dataSource.destroy();
    }
  } catch (error) {
    await embedded?.close();
    throw error;
  }
  return { close: async () => embedded?.close() };
}

/** Opens a maintenance connection. @throws UnreachableDatabase */
export async function connect(config: Config): Promise<DataSource> {
  try {
    return await createDataSource(config, 'maintenance').initialize();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new UnreachableDatabase(
      `The database cannot be reached (${(error as Error).message || (error as { code?: string }).code}): ` +
        'start it, or correct DATABASE_URL',
      { cause: error },
    );
  }
}
