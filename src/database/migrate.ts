import { MigrationExecutor } from 'typeorm';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { StartupError } from '../config/config.js';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { MIGRATIONS } from './data-source.js';

export interface MigrationStatus {
  readonly applied: string[];
  readonly pending: string[];
  /** In the database, but not in this build: the database is newer than the program. */
  readonly unknown: string[];
}

export async function migrationStatus(dataSource: Pick<DataSource, 'query'>): Promise<MigrationStatus> {
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
 * Runs what is pending: all of it, or nothing.
 *
 * @returns the names of what ran
 * @throws StartupError where the database is newer than the program
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  return alone(dataSource, async (executor) =>
    (await executor.executePendingMigrations()).map((migration) => migration.name),
  );
}

/** The migration that ran last. */
export interface UndoableMigration {
  readonly name: string;
  /** The statements that undo it. */
  readonly undoing: string;
}

/**
 * What {@link rollback} would do.
 *
 * @returns undefined where none has run
 * @throws StartupError where the database is newer than the program
 */
export async function lastMigration(dataSource: DataSource): Promise<UndoableMigration | undefined> {
  await refuseUnknown(dataSource);
  const name = (await migrationStatus(dataSource)).applied.at(-1);
  const Last = MIGRATIONS.find((migration) => migration.name === name);
  if (!name || !Last) return undefined;
  const undoing: string[] = [];
  // Migrations are plain SQL and read nothing: who only listens learns all that they would do.
  const listener = { query: (sql: string) => Promise.resolve(undoing.push(sql.trim())) };
  await new Last().down(listener as unknown as QueryRunner);
  return { name, undoing: undoing.join(';\n') };
}

/**
 * Undoes the migration that ran last, with the data that it held.
 *
 * @returns its name, or undefined where none has run
 * @throws StartupError where the database is newer than the program
 */
export async function rollback(dataSource: DataSource): Promise<string | undefined> {
  return alone(dataSource, async (executor, manager) => {
    const { applied } = await migrationStatus(manager);
    if (applied.length > 0) await executor.undoLastMigration();
    return applied.at(-1);
  });
}

/**
 * One transaction that looks and writes, so that whoever comes at the same moment finds it done. On PostgreSQL the lock makes
 * them wait. The embedded database has one session for all connections, in which a lock keeps nobody out; there it is the
 * transaction that nobody gets between.
 */
async function alone<T>(
  dataSource: DataSource,
  work: (executor: MigrationExecutor, manager: EntityManager) => Promise<T>,
): Promise<T> {
  return dataSource.transaction(async (manager) => {
    await manager.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.migrations]);
    await refuseUnknown(manager);
    const executor = new MigrationExecutor(dataSource, manager.queryRunner);
    executor.transaction = 'all'; // the one that has begun
    return work(executor, manager);
  });
}

async function refuseUnknown(manager: Pick<DataSource, 'query'>): Promise<void> {
  const { unknown } = await migrationStatus(manager);
  if (unknown.length > 0) {
    throw new StartupError(
      `The database has migrations that this version does not know (${unknown.join(', ')}): ` +
        'start the version that wrote them, or `npx pua db rollback --yes` with it first',
    );
  }
}
