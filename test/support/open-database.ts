import { createDataSource } from '../../src/database/postgres/data-source.js';
import { createTestDatabase, testConfig } from './database.js';

export type OpenDatabase = Awaited<ReturnType<typeof openDatabase>>;

/** Opens a private database, without a server. @param use the kind of connections @param made by default migrated, without data */
export async function openDatabase(
  use: Parameters<typeof createDataSource>[1] = 'maintenance',
  made = createTestDatabase(),
) {
  const { environment, drop } = await made;
  const config = testConfig(environment);
  const dataSource = await createDataSource(config, use).initialize();
  const close = async () => {
    await dataSource.destroy();
    await drop();
  };
  return { environment, config, dataSource, close, [Symbol.asyncDispose]: close };
}
