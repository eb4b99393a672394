import type { DataSource } from 'typeorm';
import { StartupError } from '../config/config.js';
import { MIGRATIONS } from './data-source.js';

/** Taken while migrations run, so that instances that start together wait for one another. */
const MIGRATION_LOCK = 7_862_013_001;

export interface MigrationStatus {
  readonly applied: string[];
  readonly pending: string[];
  /** In the database, but not in this build: the database is newer than the program. */
  readonly unknown: string[];
}

export async function migrationStatus(dataSource: DataSource): Promise<MigrationStatus> {
  const [table] = await dataSource.query<{ present: boolean }[]>(
    `SELECT to_regclass('migrations') IS NOT NULL AS present`,
  );
  const rows = table?.present
    ? await dataSource.query<{ name: string }[]>('SELECT name FROM migrations ORDER BY id')
    : [];
  const applied = rows.map((row) => row.name);
  const known = MIGRATIONS.map((migration) => migration.name);
  return {
    applied,
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

/**
 * Runs what is pending.
 *
 * @returns the names of what ran
 * @throws StartupError where the database is newer than the program
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  const lock = dataSource.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const { unknown } = await migrationStatus(dataSource);
    if (unknown.length > 0) {
      throw new StartupError(
        `The database has migrations that this version does not know (${unknown.join(', ')}): ` +
          'start the version that wrote them, or `npx pua db rollback` with it first',
      );
    }
    return (await dataSource.runMigrations({ transaction: 'each' })).map((migration) => migration.name);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
  }
}
