import { once } from 'node:events';
import { beforeAll, beforeEach, afterEach, describe, expect, it } from '@jest/globals';
import type { DataSource, QueryRunner } from 'typeorm';
import { puaProcess, startPua } from '../support/command-line.js';
import { createEmptyDatabase, createTestDatabase, lockWaits, postgres, type TestDatabase } from '../support/database.js'; // prettier-ignore
import { openDatabase, type OpenDatabase } from '../support/open-database.js';
import { makeNextVersion } from '../support/next-version.js';
import { eventually } from '../support/timing.js';

const FILLED = 'FillPronouns1763999999001';
/** As CONTRIBUTING.md describes: first the column, then the steps that fill, check and index it without blocking clients. */
const MIGRATIONS = {
  '1763999999000-add-pronouns.ts': `
export class AddPronouns1763999999000 {
  async up(runner) {
    await runner.query(\`
ALTER TABLE users ADD COLUMN pronouns text;
ALTER TABLE users ADD CONSTRAINT users_pronouns_check CHECK (pronouns <> '') NOT VALID;
INSERT INTO compatible_migrations (name) VALUES ('AddPronouns1763999999000')\`);
  }
  async down(runner) {
    await runner.query(\`
DELETE FROM compatible_migrations WHERE name = 'AddPronouns1763999999000';
ALTER TABLE users DROP COLUMN pronouns\`);
  }
}`,
  '1763999999001-fill-pronouns.ts': `
import type { MigrationInterface, QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

export class ${FILLED} implements MigrationInterface, SteppedMigration {
  readonly steps = [
    \`UPDATE users SET pronouns = 'they' WHERE id IN (SELECT id FROM users WHERE pronouns IS NULL ORDER BY id LIMIT 10)\`,
    'ALTER TABLE users VALIDATE CONSTRAINT users_pronouns_check',
    'CREATE INDEX CONCURRENTLY users_pronouns_idx ON users (pronouns)',
  ];
  readonly stepsBack = ['DROP INDEX CONCURRENTLY IF EXISTS users_pronouns_idx'];
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(\`INSERT INTO compatible_migrations (name) VALUES ('${FILLED}')\`);
  }
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(\`DELETE FROM compatible_migrations WHERE name = '${FILLED}'\`);
  }
}`,
};

describe('a migration with steps', () => {
  let next: string;
  beforeAll(() => void (next = makeNextVersion(MIGRATIONS)));

  let database: OpenDatabase;
  let dataSource: DataSource;
  const open = async (made: Promise<TestDatabase>) => {
    database = await openDatabase('maintenance', made);
    ({ dataSource } = database);
  };
  afterEach(() => database.close());

  const migrate = async () => {
    const { code, stdout, stderr } = await puaProcess(database.environment, ['db', 'migrate', '--json'], next);
    expect([code, stderr.replace(/^\d+ of \d+: \S+\n/gm, '')]).toEqual([0, '']);
    return (JSON.parse(stdout) as { applied: string[] }).applied;
  }; // prettier-ignore
  const ask = async <T>(sql: string): Promise<T> => (await dataSource.query<{ is: T }[]>(sql))[0]!.is;
  const filled = () => ask<number>('SELECT count(*) AS is FROM users WHERE pronouns IS NOT NULL');
  const index = () =>
    ask<boolean | null>(
      `SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('users_pronouns_idx')) AS is`,
    );

  it('creates its index in an empty database', async () => {
    await open(createEmptyDatabase());
    expect(await migrate()).toEqual(expect.arrayContaining([FILLED]));
    expect(await index()).toBe(true);
  });

  it('repeats its fill step until every row is filled, and then checks and indexes the column', async () => {
    await open(createTestDatabase());
    await dataSource.query(`INSERT INTO users (username) SELECT 'member' || n FROM generate_series(1, 25) n`);
    expect(await migrate()).toEqual(['AddPronouns1763999999000', FILLED]);
    expect([await filled(), await index()]).toEqual([25, true]);
    expect(await ask(`SELECT convalidated AS is FROM pg_constraint WHERE conname = 'users_pronouns_check'`)).toBe(true); // prettier-ignore
  });

  it('is undone with its undo steps, which run outside of a transaction', async () => {
    await open(createTestDatabase());
    await migrate();
    const { code, stderr } = await puaProcess(database.environment, ['db', 'rollback', '--yes'], next);
    expect([code, stderr, await index()]).toEqual([0, '', null]);
    const said = await puaProcess(database.environment, ['db', 'status', '--json'], next);
    expect((JSON.parse(said.stdout) as { pending: string[] }).pending).toEqual([FILLED]);
  });

  // The embedded database has one session.
  postgres.describe('that is killed', () => {
    let holder: QueryRunner;
    beforeEach(async () => {
      await open(createTestDatabase());
      // The previous migration needs an exclusive lock on the table.
      await migrate();
      await puaProcess(database.environment, ['db', 'rollback', '--yes'], next);
      await dataSource.query(
        `INSERT INTO users (username) SELECT 'member' || n FROM generate_series(1, 25) n`,
      );
      holder = dataSource.createQueryRunner();
      await holder.startTransaction();
    });
    afterEach(() => holder.release());

    /** Starts to migrate, and kills the process at this point, when its statement with `part` waits: an orphan that does not wait yet would run. */
    const killOnce = async (part: string, hasCome: () => Promise<boolean>) => {
      const child = startPua(database.environment, ['db', 'migrate'], next);
      const ended = once(child, 'close');
      const isThere = async () => (await hasCome()) && (await lockWaits(dataSource, part)).length > 0;
      await eventually(async () => (await isThere().catch(() => false)) || undefined);
      child.kill('SIGKILL');
      await ended;
      // PostgreSQL notices the lost client only when PostgreSQL sends something: a waiting statement would still run.
      await dataSource.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      await holder.rollbackTransaction();
      await eventually(async () =>
        (await ask<number>(`SELECT count(*) AS is FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)) === 0 || undefined,
      );
    }; // prettier-ignore

    it('during the fill keeps the filled rows, and fills the remaining rows in the next run', async () => {
      await holder.query(`UPDATE users SET bio = 'being written' WHERE username = 'member15'`);
      await killOnce('UPDATE users SET pronouns', async () => (await filled()) === 10);
      expect([await filled(), await index()]).toEqual([10, null]);
      expect(await migrate()).toEqual([FILLED]);
      expect([await filled(), await index()]).toEqual([25, true]);
    });

    it('during the creation of an index leaves an invalid index, and creates the index again in the next run', async () => {
      await holder.query('LOCK TABLE users IN ROW EXCLUSIVE MODE');
      await killOnce('CREATE INDEX CONCURRENTLY', async () => {
        if ((await index()) !== false) return false;
        await dataSource.query(`UPDATE users SET bio = 'written meanwhile' WHERE username = 'member3'`);
        return true;
      });
      expect(await index()).toBe(false);
      expect(await migrate()).toEqual([FILLED]);
      expect(await index()).toBe(true);
    });
  });
});
