import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/config.js';
import type { Config } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/data-source.js';
import { embeddedAddress, startWorker } from '../../src/database/embedded.js';

export interface TestDatabase {
  /** Settings of a process over this database. */
  readonly environment: Record<string, string>;
  drop(): Promise<void>;
}

/** Whether the tests run over a real PostgreSQL (`npm run test:pg`); else over the embedded database. */
export const onPostgres = process.env.TEST_DATABASE_URL !== undefined;

/** A migrated database of its own, without data. */
export function createTestDatabase(): Promise<TestDatabase> {
  return create({ migrated: true });
}

/** One that nobody has migrated. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create({ migrated: false });
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
    await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${migrated ? 'template_pua' : 'template0'}`);
    return {
      environment: { ...common, DATABASE_URL: server.replace(/\/postgres$/, `/${name}`) },
      drop: () => asAdmin(`DROP DATABASE ${name} WITH (FORCE)`),
    };
  }
  const folder = join(process.env.TEST_FOLDER!, name);
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(join(folder, 'embedded.lock'), String(process.pid)); // as a server holds it
  const { host, port } = embeddedAddress(folder);
  const worker = await startWorker({
    socket: join(host, `.s.PGSQL.${port}`),
    ...(migrated ? { snapshot: join(process.env.TEST_FOLDER!, 'snapshot.tar') } : {}),
  });
  return { environment: { ...common, DATA_DIR: folder }, drop: () => worker.close() };
}

/** The configuration for such an environment, patient: the machine that runs the tests may be slow. */
export function testConfig(environment: Record<string, string>, overrides: Partial<Config> = {}): Config {
  const config = loadConfig(environment);
  const deadlines = { connect: 10_000, lock: 10_000, statement: 10_000, answer: 15_000 };
  // Tests of limits ask for some; the others call as often as they need.
  const rateLimits = { read: 1e6, write: 1e6, auth: 1e6 };
  return { ...config, databaseDeadlines: deadlines, signInPatience: 10_000, rateLimits, ...overrides };
}

/** Resolves when somebody waits for a lock in this database: what a test is about has come that far. */
export async function waitingForLock(dataSource: { query<T>(sql: string): Promise<T> }): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const [row] = await dataSource.query<{ waiting: number }[]>(
      "SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    if (row!.waiting > 0) return;
    if (Date.now() > deadline) throw new Error('nobody waits for a lock');
  }
}

async function asAdmin(sql: string): Promise<void> {
  const admin = createDataSource(
    loadConfig({
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY,
      DATABASE_URL: process.env.TEST_DATABASE_URL,
    }),
    'maintenance',
  );
  await admin.initialize();
  try {
    await admin.query(sql);
  } finally {
    await admin.destroy();
  }
}
