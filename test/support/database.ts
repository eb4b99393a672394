import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from '@jest/globals';
import type { DataSource, QueryRunner } from 'typeorm';
import { loadConfig, type Config } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { migrate } from '../../src/database/schema/migrate.js';
import { embeddedAddress, socketPath } from '../../src/database/embedded/address.js';
import { fillFromSnapshot } from '../../src/database/embedded/snapshot.js';
import { openEmbedded } from './embedded-databases.js';
import { until } from './timing.js';

export interface TestDatabase {
  /** Settings of a process over this database. */
  readonly environment: Record<string, string>;
  drop(): Promise<void>;
}

/** Whether the tests use a real PostgreSQL (`npm run test:pg`); otherwise the embedded database. */
export const onPostgres = process.env.TEST_DATABASE_URL !== undefined;

const MARKED_DEPTH = Symbol.for('pua.markedDepth');
const depth = globalThis as { [MARKED_DEPTH]?: number };

/** Counts up while the function defines tests, so that native-environment.mjs can recognize these tests. */
function marking<Define extends object>(define: Define): Define {
  return new Proxy(define, {
    apply(target, self, given: unknown[]) {
      depth[MARKED_DEPTH] = (depth[MARKED_DEPTH] ?? 0) + 1;
      try {
        const defined: unknown = Reflect.apply(target as (...given: unknown[]) => unknown, self, given);
        return typeof defined === 'function' ? marking(defined) : defined; // it.each(…)
      } finally {
        depth[MARKED_DEPTH]--;
      }
    },
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? marking(member) : member;
    },
  });
}

const where = (here: boolean) => ({
  describe: marking(here ? describe : describe.skip),
  it: marking(here ? it : it.skip),
});

/** `postgres.describe` and `postgres.it` require a second session, locks, notices, a browser or many processes. A run that skips them reports how many. */
export const postgres = where(onPostgres);

/** `embedded.it` is for tests of the embedded database itself. */
export const embedded = where(!onPostgres);

/** Whether this run skips no test that can run here: on PostgreSQL, and with `THOROUGH=1 npm test`. */
export const isThorough = onPostgres || process.env.THOROUGH === '1';

/** `thorough.describe` and `thorough.it` are for slow tests with the same result on any database. A run that skips them reports how many. */
export const thorough = where(isThorough);

/** Creates a private migrated database without data. */
export function createTestDatabase(): Promise<TestDatabase> {
  return create({ migrated: true });
}

/** Creates a private database without a schema. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create({ migrated: false });
}

/** Creates a private database with the schema of 1.1.0 and some rows. */
export async function createReleasedDatabase(): Promise<TestDatabase> {
  const database = await create({ migrated: false });
  await query(database.environment, readFileSync('test/support/version-1.1.0.sql', 'utf8'));
  return database;
}

async function create({ migrated }: { migrated: boolean }): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  const server = process.env.TEST_DATABASE_URL;
  const common = {
    NODE_ENV: 'test',
    SECRET_KEY: process.env.TEST_SECRET_KEY!,
    LOG_LEVEL: 'silent',
    PORT: '0',
  };
  if (server) {
    const admin = { ...common, DATABASE_URL: server };
    await query(admin, `CREATE DATABASE ${name} TEMPLATE ${migrated ? 'template_pua' : 'template0'}`);
    return {
      environment: { ...common, DATABASE_URL: server.replace(/\/postgres$/, `/${name}`) },
      // FORCE ends remaining sessions including autovacuum, which an owner may not end.
      drop: () =>
        query(
          { ...common, DATABASE_URL: process.env.TEST_SUPERUSER_URL! },
          `DROP DATABASE ${name} WITH (FORCE)`,
        ),
    };
  }
  const folder = join(process.env.TEST_DATABASES_FOLDER!, name);
  const files = join(folder, 'embedded');
  mkdirSync(folder, { mode: 0o700 });
  await fillFromSnapshot(files);
  const { host } = embeddedAddress(folder);
  const served = await openEmbedded({ folder: files, socket: socketPath(host) });
  const environment = { ...common, DATA_DIR: folder };
  if (!migrated) await query(environment, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  return {
    environment,
    drop: async () => {
      await served.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Several times the deadlines of production ({@link Config.databaseDeadlines}): a busy host connects slowly. */
export const DEADLINES = { connect: 3_000, lock: 1_500, statement: 3_000, answer: 5_000 };

/** The configuration for such an environment, with long deadlines, since the host may be slow. */
export function testConfig(environment: Record<string, string>, overrides: Partial<Config> = {}): Config {
  const config = loadConfig(environment);
  const deadlines = { connect: 60_000, lock: 60_000, statement: 60_000, answer: 90_000 };
  // Tests of limits set limits; all other tests send as many requests as they need.
  const rateLimits = { read: 1e6, write: 1e6, auth: 1e6 };
  // The shortest duration of a failed sign-in, half a second, is set only in its own tests.
  const patient = { databaseDeadlines: deadlines, signInPatience: 60_000, shortestRefusal: 0 };
  return { ...config, ...patient, rateLimits, platformRateLimit: 1e6, ...overrides };
}

/**
 * The sessions of this database that wait for a lock in a statement whose first kilobyte contains `part`: the view cuts off the rest. Works
 * only outside of transactions, in which the view keeps its first result.
 */
export function lockWaits(dataSource: Pick<DataSource, 'query'>, part: string): Promise<LockWait[]> {
  return dataSource.query<LockWait[]>(
    `SELECT pid, query_start::text AS since FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, $1) > 0`,
    [part],
  );
}

interface LockWait {
  readonly pid: number;
  /** The start of the statement. */
  readonly since: string;
}

/** Resolves when a statement that contains `part` waits for a lock: other statements may wait too, such as those of background work. */
export async function waitingForLock(dataSource: Pick<DataSource, 'query'>, part: string): Promise<void> {
  await until(
    async () => (await lockWaits(dataSource, part)).length > 0,
    `a statement with ${part} waits for a lock`,
  );
}

/** Settings of a PostgreSQL that a test starts itself. */
export const QUICK = { fsync: 'off', full_page_writes: 'off', max_connections: 100, shared_buffers: '32MB' };

/** Creates the tables in such a database. */
export async function migrateAt(DATABASE_URL: string): Promise<void> {
  const environment = { NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY!, DATABASE_URL };
  await connected(testConfig(environment), (dataSource) => migrate(dataSource));
}

/** Runs a statement in a separate session, whose transaction stays open until the test ends it. */
export async function hold(
  dataSource: DataSource,
  sql: string,
  values: unknown[] = [],
  isolation?: Parameters<QueryRunner['startTransaction']>[0],
) {
  const runner = dataSource.createQueryRunner();
  await runner.startTransaction(isolation);
  await runner.query(sql, values);
  return {
    query: (more: string, its: unknown[] = []) => runner.query(more, its),
    commit: () => runner.commitTransaction().finally(() => runner.release()),
    rollback: () => runner.rollbackTransaction().finally(() => runner.release()),
  };
}

/** Runs superuser statements in a database on PostgreSQL; its owner, the role of tests, is not a superuser. */
export function asSuperuser<T>(
  { environment }: Pick<TestDatabase, 'environment'>,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  const url = new URL(process.env.TEST_SUPERUSER_URL!);
  url.pathname = new URL(environment.DATABASE_URL!).pathname;
  return connected(loadConfig({ ...environment, DATABASE_URL: url.href }), work);
}

async function query(environment: Record<string, string>, sql: string): Promise<void> {
  await connected(loadConfig(environment), (dataSource) => dataSource.query(sql));
}

/** Runs `work` with connections that end afterwards. */
async function connected<T>(config: Config, work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
