import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { lastMigrations, migrate, collectStatements, stepsOf } from '../../src/database/schema/migrate.js';
import { planMigration, planMigrations, split, type PlannedStep } from '../../src/database/schema/plan.js';
import { MIGRATIONS } from '../../src/database/schema/tables.js';
import { pua, puaJson } from '../support/command-line.js';
import { createReleasedDatabase, postgres } from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';

/** The last migration of 1.1.0: an operator has not run later migrations. */
const BEFORE = 'InlineFunctionsOfLists1763700122000';
const AFTER = MIGRATIONS.slice(MIGRATIONS.findIndex(({ name }) => name === BEFORE) + 1);

let database: OpenDatabase;
let dataSource: DataSource;
beforeAll(async () => {
  database = await openDatabase('maintenance', createReleasedDatabase());
  ({ dataSource } = database);
});
afterAll(() => database.close());

const rollBack = () => pua(database.environment, `db rollback --to ${BEFORE} --yes`);

describe('pua db rollback --to', () => {
  beforeEach(() => migrate(dataSource));

  it('names the migrations to undo and the data that would be lost, and undoes nothing without --yes', async () => {
    const { code, stdout, stderr } = await pua(database.environment, `db rollback --to ${BEFORE}`);
    expect([code, stdout]).toEqual([2, '']);
    for (const { name } of AFTER) expect(stderr).toContain(`These statements would undo ${name}.`);
    expect(stderr).toContain('The data in oauth_logouts, oauth_sessions.clients, oauth_clients.backchannel_logout_uri would be lost'); // prettier-ignore
    expect((await lastMigrations(dataSource, BEFORE)).map(({ name }) => name)).toEqual(AFTER.map(({ name }) => name).toReversed()); // prettier-ignore
  });

  it('undoes all later migrations, last first, does nothing when repeated, and never undoes the first', async () => {
    const names = AFTER.map(({ name }) => name).toReversed();
    expect((await rollBack()).stdout).toBe(names.map((name) => `${name}\n`).join(''));
    const { applied } = await puaJson<{ applied: string[] }>(database.environment, 'db status');
    expect(applied.at(-1)).toBe(BEFORE);
    const nothing = `Nothing has run after ${BEFORE}\n`;
    expect(await rollBack()).toEqual({ code: 0, stdout: '', stderr: nothing });
    const stderr = 'The first migration cannot be undone: drop the database instead\n';
    for (const yes of ['', '--yes'])
      expect(await pua(database.environment, `db rollback ${yes}`)).toEqual({ code: 1, stdout: '', stderr });
  });

  it('rejects a migration that has not run, and names the command that shows applied migrations', async () => {
    await rollBack();
    for (const name of ['Never1763700000001', AFTER[0]!.name]) {
      const { code, stderr } = await pua(database.environment, `db rollback --to ${name} --yes`);
      expect([code, stderr]).toEqual([1, `${name} has not run: choose a migration that \`npx pua db status\` shows as applied\n`]); // prettier-ignore
    }
  });
});

describe('pua db migrate --plan', () => {
  beforeEach(async () => void (await rollBack()));
  const plan = async () =>
    (await puaJson<{ plan: PlannedStep[] }>(database.environment, 'db migrate --plan')).plan;

  it('names each pending migration without running the migration, and prints the same output each time', async () => {
    const planned = await plan();
    const named = [...new Set(planned.map(({ migration }) => migration))]; // a migration may have several steps
    expect(named).toEqual([...AFTER.map(({ name }) => name), 'schema/']);
    expect(await plan()).toEqual(planned);
    expect(await planMigrations(dataSource)).toEqual(planned);
  });

  it('states in lines of at most 80 characters which clients wait, how long and why', async () => {
    const { code, stdout } = await pua(database.environment, 'db migrate --plan');
    expect(code).toBe(0);
    expect(stdout).toContain(`FindLeasesByTime1763802300000: about 0 s
  readers and writers of webhook_deliveries wait
  scan of webhook_deliveries (1 MB)
`);
    expect(stdout).toContain('KeepMembersPending1763802200000: about 0 s\n  nobody waits\n');
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('estimates the duration from the table’s size', async () => {
    const seconds = async () => (await plan()).find(({ migration }) => migration.startsWith('TellClients'))!;
    await dataSource.query(
      `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) SELECT 'client-' || n, repeat('x', 90), 'web', ARRAY['https://app.example/' || repeat('x', 1500)], '{}' FROM generate_series(1, 20000) n`,
    );
    const { seconds: taken, work } = await seconds();
    expect(taken).toBeGreaterThan(0);
    expect(work).toContainEqual(expect.stringMatching(/^scan of oauth_clients \(\d+ MB\)$/));
    await dataSource.query(`DELETE FROM oauth_clients WHERE id LIKE 'client-%'`);
    await dataSource.query('VACUUM oauth_clients'); // later, autovacuum would make the table smaller between two plans
  });

  // Compares with pg_locks, which the embedded database does not fill.
  postgres.it('names PostgreSQL’s locks for migrations since 1.1.0 and ten statements', async () => {
    /** Modes for which readers, or only writers, wait (PostgreSQL, “Explicit Locking”). */
    const WAITING: Record<string, string> = {
      AccessExclusiveLock: 'readers and writers',
      ExclusiveLock: 'writers',
      ShareRowExclusiveLock: 'writers',
      ShareLock: 'writers',
    };
    const KINDS = [
      'CREATE INDEX made_up_idx ON events (title)',
      'DROP INDEX webhook_deliveries_leased_idx',
      'ALTER TABLE users ADD COLUMN made_up text; UPDATE users SET made_up = username',
      `ALTER TABLE events ADD CONSTRAINT made_up CHECK (title <> 'made; up') NOT VALID`,
      'CREATE TABLE made_up (id bigint REFERENCES users (id))',
      'ALTER TABLE events ADD COLUMN made_up bigint REFERENCES connections (id)'.replace('connections', 'events'),
      'DROP TRIGGER users_derive ON users',
      'CREATE TRIGGER made_up AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION users_derive()',
      'ALTER TABLE users ENABLE ALWAYS TRIGGER users_derive',
      'DELETE FROM connections WHERE id = 1; -- nobody waits; truly\nUPDATE events SET title = title',
    ]; // prettier-ignore
    const locked = async (statements: readonly string[]) => {
      // Queried first: after a DROP, only pg_locks contains the table.
      const tables = await dataSource.query<{ oid: number; name: string }[]>(
        `SELECT oid, relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
      );
      const runner = dataSource.createQueryRunner();
      await runner.startTransaction();
      try {
        for (const statement of statements) await runner.query(statement);
        const rows = await runner.manager.query<{ relation: number; mode: string }[]>(
          'SELECT relation, mode FROM pg_locks WHERE pid = pg_backend_pid()',
        );
        return rows.flatMap(({ relation, mode }) => {
          const table = tables.find(({ oid }) => oid === relation);
          return WAITING[mode] && table ? [`${WAITING[mode]} of ${table.name}`] : [];
        });
      } finally {
        await runner.rollbackTransaction();
        await runner.release();
      }
    };
    const expected = (locks: PlannedStep['locks']) =>
      Object.entries(locks).flatMap(([name, waiting]) =>
        waiting === 'nobody' ? [] : [`${waiting} of ${name}`],
      );
    const strongest = (found: string[]) =>
      [...new Set(found)].filter((one) => !found.includes(`readers and ${one}`)).toSorted();
    for (const sql of KINDS) {
      class MadeUp {
        up = (runner: { query(sql: string): Promise<unknown> }) => runner.query(sql);
      }
      const [planned] = await planMigration(dataSource, new MadeUp() as never);
      expect([sql, strongest(expected(planned!.locks))]).toEqual([sql, strongest(await locked(split(sql)))]);
    }
    for (const Migration of AFTER) {
      const migration = new Migration();
      const planned = (await planMigration(dataSource, migration)).at(-1);
      const { name } = Migration;
      for (const step of stepsOf(migration)) await dataSource.query(step);
      const found = await locked(await collectStatements(migration, 'up'));
      expect([name, strongest(expected(planned!.locks))]).toEqual([name, strongest(found)]);
      const runner = dataSource.createQueryRunner();
      await migration.up(runner);
      await runner.release();
    }
    const runner = dataSource.createQueryRunner();
    for (const Migration of AFTER.toReversed()) {
      const migration = new Migration();
      for (const step of stepsOf(migration, 'down')) await dataSource.query(step);
      await migration.down(runner);
    }
    await runner.release();
  });
});
