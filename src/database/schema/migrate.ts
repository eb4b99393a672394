import { setTimeout as pause } from 'node:timers/promises';
import {
  MigrationExecutor,
  type DataSource,
  type EntityManager,
  type MigrationInterface,
  type QueryRunner,
} from 'typeorm';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { applyRepeatable, readSchema, REPEATABLE } from './schema.js';
import { MIGRATIONS } from './tables.js';
import { OperatorError } from '../../values/operator-error.js';

/**
 * Runs pending migrations, each in its own transaction: its locks are released when it ends, and after one is killed the next call
 * continues where it stopped. In an empty database, all of them are one transaction: nothing waits for its locks, and a client that
 * connects meanwhile finds the whole schema or none. Functions and triggers come with the last one, or alone if only they changed.
 *
 * @returns the names of those that this call ran, without those run by another process meanwhile
 * @throws OperatorError if the database is newer than the program
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  const names: string[] = [];
  for (;;) {
    const ran = await alone(dataSource, async (executor, manager) => {
      const schema = await readSchema(manager);
      const pending = await executor.getPendingMigrations();
      const now = schema.applied.length === 0 ? pending : pending.slice(0, 1);
      for (const migration of now) await executor.executeMigration(migration);
      const names = now.map(({ name }) => name);
      const isDue = names.length > 0 || schema.pending.includes(REPEATABLE);
      if (isDue && now.length === pending.length && (await applyRepeatable(manager))) names.push(REPEATABLE);
      return names;
    });
    if (ran.length === 0) return names;
    names.push(...ran);
  }
}

/** How long a migration's statement waits for a lock; all other statements on that table wait behind it. */
const LOCK_TIMEOUT_MS = 3_000;
/** For sorts and indexes of whole tables. */
const MEMORY = '256MB';
/** Pause between two attempts, for waiting statements to run. */
const PAUSE_MS = 1_000;
const ATTEMPTS = 60;
/** PostgreSQL, appendix A: lock_not_available, deadlock_detected. */
const TRY_AGAIN = ['55P03', '40P01'];

/**
 * Finds the migration that {@link rollback} would undo.
 *
 * @returns its name, and the statements that undo it; undefined if none has run
 * @throws OperatorError if the database is newer than the program
 */
export async function lastMigration(dataSource: DataSource) {
  const { applied, unknown } = await readSchema(dataSource);
  refuseNewer(unknown);
  const name = applied.at(-1);
  const Last = MIGRATIONS.find((migration) => migration.name === name);
  if (!name || !Last) return undefined;
  return { name, undoing: await statementsOf(new Last(), 'down') };
}

/** Returns a migration's statements, to apply or to undo it, without running any. */
export async function statementsOf(migration: MigrationInterface, way: 'up' | 'down'): Promise<string> {
  const statements: string[] = [];
  // Migrations are plain SQL and read nothing: their recorded statements are all that they would do.
  const listener = { query: (sql: string) => Promise.resolve(statements.push(sql.trim())) };
  await migration[way](listener as unknown as QueryRunner);
  return statements.join(';\n');
}

/**
 * Undoes the migration that ran last; data in what that drops is lost.
 *
 * @returns its name, or undefined if none has run
 * @throws OperatorError if the database is newer than the program
 */
export async function rollback(dataSource: DataSource): Promise<string | undefined> {
  return alone(dataSource, async (executor, manager) => {
    const { applied, unknown } = await readSchema(manager);
    refuseNewer(unknown);
    if (applied.length > 0) await executor.undoLastMigration();
    return applied.at(-1);
  });
}

/**
 * Checks and writes in one transaction, so concurrent callers find the work done. On PostgreSQL, the lock makes them wait. The
 * embedded database has one session for all connections, in which a lock excludes nothing; there, the transaction itself does.
 *
 * If a lock cannot be obtained, the transaction is rolled back and retried.
 */
async function alone<T>(
  dataSource: DataSource,
  work: (executor: MigrationExecutor, manager: EntityManager) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await dataSource.transaction(async (manager) => {
        await manager.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.migrations]);
        refuseNewer((await readSchema(manager)).incompatible);
        await manager.query(
          `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SET LOCAL work_mem = '${MEMORY}'; SET LOCAL maintenance_work_mem = '${MEMORY}'`,
        );
        const executor = new MigrationExecutor(dataSource, manager.queryRunner);
        executor.transaction = 'all'; // the one already begun
        return await work(executor, manager);
      });
    } catch (error) {
      if (!TRY_AGAIN.includes((error as { code?: string }).code ?? '')) throw error;
      if (attempt === ATTEMPTS)
        throw new OperatorError(
          `The migrations could not get their locks (${(error as Error).message}): ` +
            'end the transactions that hold them (pg_stat_activity shows them), then run them again',
          { cause: error },
        );
      await pause(PAUSE_MS);
    }
  }
}

function refuseNewer(names: readonly string[]): void {
  if (names.length > 0) {
    throw new OperatorError(
      `The database has migrations that this version does not know (${names.join(', ')}): ` +
        'start the version that wrote them, or `npx pua db rollback --yes` with it first',
    );
  }
}
