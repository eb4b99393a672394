import { setTimeout as pause } from 'node:timers/promises';
import {
  MigrationExecutor,
  type DataSource,
  type EntityManager,
  type MigrationInterface,
  type QueryRunner,
} from 'typeorm';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import {
  applyRepeatable,
  readSchema,
  REPEATABLE,
  requireFit,
  summarizeNames,
  type Schema,
} from './schema.js';
import { MIGRATIONS } from './tables.js';
import { OperatorError } from '../../values/operator-error.js';

/** A migration that does part of its work in separate transactions before its `up`, to avoid long locks. */
export interface SteppedMigration extends MigrationInterface {
  /**
   * Statements that each run in a separate transaction, such as CREATE INDEX CONCURRENTLY. An UPDATE repeats until it changes no row.
   * Each statement must be repeatable, since an interrupted migration starts over.
   */
  readonly steps: readonly string[];
  readonly stepsBack?: readonly string[];
}

/** Returns the steps that run before a migration's `up` or `down`; most migrations have none. */
export function stepsOf(migration: MigrationInterface, way: 'up' | 'down' = 'up'): readonly string[] {
  const { steps = [], stepsBack = [] } = migration as Partial<SteppedMigration>;
  return way === 'up' ? steps : stepsBack;
}

/**
 * Runs pending migrations, then writes functions and triggers. In an empty database, everything runs in one transaction.
 * @param report called once per migration @returns their names @throws OperatorError, such as for a database of another version
 */
export async function migrate(
  dataSource: DataSource,
  report: (number: number, total: number, name: string) => void = () => undefined,
): Promise<string[]> {
  const names: string[] = [];
  let prepared: string | undefined;
  let total: number | undefined;
  let reported = 0;
  for (;;) {
    const { ran, stepped } = await alone(dataSource, async (executor, manager) => {
      const schema = await readSchema(manager);
      const pending = await executor.getPendingMigrations();
      const isEmpty = schema.applied.length === 0;
      const now = isEmpty ? pending : pending.slice(0, 1);
      total ??= schema.pending.length;
      const ahead = total - schema.pending.length;
      const begin = (name: string) => {
        const number = ahead + schema.pending.indexOf(name) + 1;
        if (number <= reported) return; // reported before its steps, or by an attempt that could not get its locks
        reported = number;
        report(number, total!, name);
      };
      const [stepped] = now.filter(
        ({ name, instance }) => name !== prepared && stepsOf(instance!).length > 0,
      );
      if (stepped && !isEmpty) {
        begin(stepped.name);
        return { ran: [], stepped };
      }
      for (const migration of now) {
        begin(migration.name);
        if (isEmpty)
          for (const step of stepsOf(migration.instance!))
            await manager.query(step.replace(' CONCURRENTLY', ''));
        await executor.executeMigration(migration);
      }
      const ran = now.map(({ name }) => name);
      const isDue = ran.length > 0 || schema.pending.includes(REPEATABLE);
      if (isDue && now.length === pending.length && (await applyRepeatable(manager))) {
        if (schema.pending.includes(REPEATABLE)) begin(REPEATABLE);
        ran.push(REPEATABLE);
      }
      return { ran };
    });
    if (stepped) {
      await runSteps(dataSource, stepsOf(stepped.instance!));
      prepared = stepped.name;
    } else if (ran.length === 0) return names;
    names.push(...ran);
  }
}

/** Lock timeout of a migration's statement: while the statement waits for a lock, other statements queue behind it. */
const LOCK_TIMEOUT_MS = 3_000;
const MEMORY = '256MB';
/** Pause between two attempts, in which waiting statements can run. */
const PAUSE_MS = 1_000;
/** Interval of checks whether another process still migrates. */
const TURN_MS = 100;
const ATTEMPTS = 60;
/** PostgreSQL, appendix A: lock_not_available, deadlock_detected. */
const TRY_AGAIN = ['55P03', '40P01'];

/** Finds the migrations to undo: the last one, or all after `to`. @returns latest first @throws OperatorError */
export async function lastMigrations(dataSource: DataSource, to?: string) {
  const schema = await readSchema(dataSource);
  rejectOtherVersions(schema, schema.unknown);
  const { applied } = schema;
  if (to !== undefined && !applied.includes(to))
    throw new OperatorError(`${to} has not run: choose a migration that \`pua db status\` shows as applied`);
  const names = to === undefined ? applied.slice(-1) : applied.slice(applied.indexOf(to) + 1);
  const last = names.toReversed().map(async (name) => {
    const migration = migrationOf(name);
    const undoing = [...stepsOf(migration, 'down'), ...(await collectStatements(migration, 'down'))].join(
      ';\n',
    );
    return { name, undoing, losing: droppedBy(undoing) };
  });
  return Promise.all(last);
}

const migrationOf = (name: string) => new (MIGRATIONS.find((migration) => migration.name === name)!)();

/** Returns the names of tables (`a`) and columns (`a.b`) that the statements drop. */
function droppedBy(sql: string): string[] {
  const tables = [...sql.matchAll(/DROP TABLE (?:IF EXISTS )?([\w, ]+)/g)].flatMap(([, names]) =>
    names!.split(', '),
  );
  const columns = [...sql.matchAll(/ALTER TABLE (\w+)([^;]*)/g)].flatMap(([, table, changes]) =>
    [...changes!.matchAll(/DROP COLUMN (?:IF EXISTS )?(\w+)/g)].map(([, column]) => `${table!}.${column!}`),
  );
  return [...tables, ...columns];
}

/** Returns the statements of a migration's `up` or `down`, without its steps; runs none of them. */
export async function collectStatements(
  migration: MigrationInterface,
  way: 'up' | 'down',
): Promise<string[]> {
  const statements: string[] = [];
  // Works because migrations only send SQL, and read no results.
  const listener = { query: (sql: string) => Promise.resolve(statements.push(sql.trim())) };
  await migration[way](listener as unknown as QueryRunner);
  return statements;
}

/** Undoes the last migration; with `only`, only if it has this name. @returns its name if undone @throws OperatorError */
export async function rollback(dataSource: DataSource, only?: string): Promise<string | undefined> {
  const [last] = await lastMigrations(dataSource);
  if (!last || last.name !== (only ?? last.name)) return undefined;
  await runSteps(dataSource, stepsOf(migrationOf(last.name), 'down'));
  return alone(dataSource, async (executor, manager) => {
    const schema = await readSchema(manager);
    rejectOtherVersions(schema, schema.unknown);
    if (schema.applied.at(-1) !== last.name) return undefined;
    await executor.undoLastMigration();
    return last.name;
  });
}

/** Checks the schema and runs `work` in one transaction under the migrations' lock, so that concurrent callers find the finished work. */
async function alone<T>(
  dataSource: DataSource,
  work: (executor: MigrationExecutor, manager: EntityManager) => Promise<T>,
): Promise<T> {
  for (;;) {
    const done = await insist(() =>
      dataSource.transaction(async (manager) => {
        if (!(await isOurTurn(manager, 'pg_try_advisory_xact_lock'))) return undefined;
        const schema = await readSchema(manager);
        rejectOtherVersions(schema, schema.incompatible);
        await manager.query(
          `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SET LOCAL work_mem = '${MEMORY}'; SET LOCAL maintenance_work_mem = '${MEMORY}'`,
        );
        const executor = new MigrationExecutor(dataSource, manager.queryRunner);
        executor.transaction = 'all'; // joins the open transaction
        return { result: await work(executor, manager) };
      }),
    );
    if (done) return done.result;
    await pause(TURN_MS);
  }
}

/** Tries to take the lock. Callers pause outside transactions, since CREATE INDEX CONCURRENTLY waits for all open transactions. */
async function isOurTurn(session: Pick<EntityManager, 'query'>, lock: string): Promise<boolean> {
  const [row] = await session.query<{ ours: boolean }[]>(`SELECT ${lock}($1) AS ours`, [
    ADVISORY_LOCKS.migrations,
  ]);
  return row!.ours;
}

/** Runs a migration's steps in one session that holds the migrations' lock. */
async function runSteps(dataSource: DataSource, steps: readonly string[]): Promise<void> {
  if (steps.length === 0) return;
  const runner = dataSource.createQueryRunner();
  try {
    while (!(await isOurTurn(runner.manager, 'pg_try_advisory_lock'))) await pause(TURN_MS);
    await runner.query(`SET work_mem = '${MEMORY}'; SET maintenance_work_mem = '${MEMORY}'`);
    for (const step of steps) await insist(() => runStep(runner, step));
  } finally {
    // A broken session holds no locks.
    await runner.query('SELECT pg_advisory_unlock_all(); RESET ALL').catch(() => undefined);
    await runner.release();
  }
}

async function runStep(runner: QueryRunner, step: string): Promise<void> {
  const [, index] = /^\s*CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+)/.exec(step) ?? [];
  if (index) {
    const [made] = await runner.manager.query<{ valid: boolean }[]>(
      'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)',
      [index],
    );
    if (made?.valid) return;
    // An interrupted CREATE INDEX CONCURRENTLY can leave an index that PostgreSQL updates but never reads.
    if (made) await runner.query(`DROP INDEX CONCURRENTLY ${index}`);
  }
  // CREATE INDEX CONCURRENTLY blocks neither reads nor writes, so it may wait for its locks.
  await runner.query(`SET lock_timeout = ${index ? 0 : LOCK_TIMEOUT_MS}`);
  for (;;) {
    const { affected } = await runner.query(step, [], true);
    if (!/^\s*UPDATE/.test(step) || affected === 0) return;
  }
}

/** Retries work that could not get its locks. @throws OperatorError after the last attempt */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!TRY_AGAIN.includes((error as { code?: string }).code ?? '')) throw error;
      if (attempt === ATTEMPTS)
        throw new OperatorError(
          `The migrations could not get their locks (${(error as Error).message}): ` +
            'end the transactions that hold these locks (see pg_stat_activity), then run the migrations again',
          { cause: error },
        );
      await pause(PAUSE_MS);
    }
  }
}

/** Rejects a database that is too old, or that has `newer` migrations. @throws OperatorError with the remedy */
function rejectOtherVersions(schema: Schema, newer: readonly string[]): void {
  if (schema.tooOld !== undefined) requireFit(schema);
  if (newer.length > 0) {
    throw new OperatorError(
      `The database has migrations that this version does not know (${summarizeNames(newer)}): ` +
        'use the version that added them, or first undo them with its `pua db rollback --to <migration>`',
    );
  }
}
