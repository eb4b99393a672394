import type { DataSource, QueryRunner } from 'typeorm';
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
  return alone(dataSource, async () => {
    await refuseUnknown(dataSource);
    return (await dataSource.runMigrations({ transaction: 'each' })).map((migration) => migration.name);
  });
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
  return alone(dataSource, async () => {
    await refuseUnknown(dataSource);
    const { applied } = await migrationStatus(dataSource);
    if (applied.length > 0) await dataSource.undoLastMigration({ transaction: 'each' });
    return applied.at(-1);
  });
}

async function alone<T>(dataSource: DataSource, work: () => Promise<T>): Promise<T> {
  const lock = dataSource.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    return await work();
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
  }
}

async function refuseUnknown(dataSource: DataSource): Promise<void> {
  const { unknown } = await migrationStatus(dataSource);
  if (unknown.length > 0) {
    throw new StartupError(
      `The database has migrations that this version does not know (${unknown.join(', ')}): ` +
        'start the version that wrote them, or `npx pua db rollback --yes` with it first',
    );
  }
}
