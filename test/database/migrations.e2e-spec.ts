import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { InlineFunctionsOfLists1763700122000 } from '../../migrations/1763700122000-inline-functions-of-lists.js';
import { TellClientsOfSignOuts1763802701000 } from '../../migrations/1763802701000-tell-clients-of-sign-outs.js';
import { ReadClientsKeySets1764200000000 } from '../../migrations/1764200000000-read-clients-key-sets.js';
import { drawTables } from '../../bin/tables.mjs';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { lastMigrations, migrate, rollback } from '../../src/database/schema/migrate.js';
import { planMigrations } from '../../src/database/schema/plan.js';
import { readSchema, REPEATABLE } from '../../src/database/schema/schema.js';
import { findDamage, readExpected, readObjects } from '../../src/operations/doctor/schema.js';
import { findDrift, findStaleCopies } from '../../src/operations/doctor/totals.js';
import { startPua } from '../support/command-line.js';
import {
  createEmptyDatabase,
  createReleasedDatabase,
  hold,
  postgres,
  testConfig,
  waitingForLock,
} from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';

/** Tables of the database: columns with type, nullability and position in the key; references; unique constraints. */
const TABLES = `
  SELECT c.relname AS table,
    (SELECT json_object_agg(a.attname, format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END)
      FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    (SELECT COALESCE(json_agg(pg_get_constraintdef(k.oid) ORDER BY pg_get_constraintdef(k.oid)), '[]')
      FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f')) AS constraints
  FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`;

const BASELINE = InlineFunctionsOfLists1763700122000.name;

/** All objects of a database by name; columns are sorted, because undoing a migration may append a dropped column. */
const objectsOf = async ({ manager }: DataSource) =>
  (await readObjects(manager))
    .map(({ name, statement }) => ({
      name,
      statement: name.startsWith('table ') ? statement.split(/,?\n/).toSorted().join('\n') : statement,
    }))
    .toSorted((a, b) => (a.name + a.statement < b.name + b.statement ? -1 : 1));

interface Table {
  table: string;
  columns: Record<string, string>;
  constraints: string[];
}

/** The tables that the entities declare, in the form of TABLES. */
function tablesOfEntities({ entityMetadatas, driver }: DataSource): Table[] {
  return entityMetadatas.map((entity) => ({
    table: entity.tableName,
    columns: Object.fromEntries(
      entity.columns.map((column) => [
        column.databaseName,
        `${driver.normalizeType(column)}${column.isArray ? '[]' : ''}${column.isNullable ? '' : ' not null'}`,
      ]),
    ),
    constraints: [
      `PRIMARY KEY (${entity.primaryColumns.map((column) => column.databaseName).join(', ')})`,
      ...entity.uniques.map(
        (unique) => `UNIQUE (${unique.columns.map((column) => column.databaseName).join(', ')})`,
      ),
      ...entity.foreignKeys.map(
        ({ columnNames, referencedEntityMetadata, referencedColumnNames, onDelete, onUpdate }) => {
          const rules = [
            onUpdate && onUpdate !== 'NO ACTION' ? ` ON UPDATE ${onUpdate}` : '',
            onDelete && onDelete !== 'NO ACTION' ? ` ON DELETE ${onDelete}` : '',
          ];
          const target = `${referencedEntityMetadata.tableName}(${referencedColumnNames.join(', ')})`;
          return `FOREIGN KEY (${columnNames.join(', ')}) REFERENCES ${target}${rules.join('')}`;
        },
      ),
    ].toSorted(),
  }));
}

describe('migrations', () => {
  let database: OpenDatabase;
  let dataSource: DataSource;
  beforeAll(async () => {
    database = await openDatabase();
    ({ dataSource } = database);
  });
  afterAll(() => database.close());

  const schema = () => readObjects(dataSource.manager);

  it('have the names and the order of their files', () => {
    const named = readdirSync('migrations')
      .toSorted()
      .map((file) => {
        const [time, ...words] = file.replace('.ts', '').split('-');
        return words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('') + time;
      });
    expect(dataSource.migrations.map((migration) => migration.constructor.name)).toEqual(named);
  });

  it('create the schema of docs/schema.sql and docs/contributors/tables.md (npm run docs)', async () => {
    // Without their order: another test drops a function and restores it, which is then the last.
    expect(new Set(await schema())).toEqual(new Set(readExpected()));
    expect(readFileSync('docs/contributors/tables.md', 'utf8')).toContain(drawTables(await schema()));
  });

  postgres.it('create the same tables that docs/schema.sql creates in an empty database', async () => {
    await using empty = await openDatabase('maintenance', createEmptyDatabase());
    const { dataSource } = empty;
    await dataSource.query(`SET check_function_bodies = off; ${readFileSync('docs/schema.sql', 'utf8')}`);
    const isTable = ({ name }: { name: string }) => name.startsWith('table ');
    expect((await readObjects(dataSource.manager)).filter(isTable)).toEqual(readExpected().filter(isTable));
    expect(await findDamage(dataSource.manager)).toEqual([]); // the doctor would find no fault after a restore
  });

  it('match the entities: columns, types, keys and references', async () => {
    const tables = await dataSource.query<Table[]>(TABLES);
    for (const entity of tablesOfEntities(dataSource)) {
      const table = tables.find(({ table: name }) => name === entity.table);
      expect(table && { ...table, constraints: table.constraints.toSorted() }).toEqual(entity);
    }
  });

  it('give folded columns the collation C, which compares code points in any locale', async () => {
    const folded = await dataSource.query<{ collation: string }[]>(
      `SELECT table_name || '.' || column_name AS column, collation_name AS collation FROM information_schema.columns
WHERE table_schema = 'public' AND column_name ~ '^(folded_|peer_(user)?name)'`,
    );
    expect(folded.length).toBeGreaterThan(4);
    expect(folded.filter(({ collation }) => collation !== 'C')).toEqual([]);
    const [index] = await dataSource.query<object[]>(
      `SELECT collname AS collation FROM pg_index JOIN pg_collation c ON c.oid = indcollation[0]
WHERE indexrelid = 'users_username_key'::regclass`,
    );
    expect(index).toEqual({ collation: 'C' });
  });

  describe('on a database of 1.1.0', () => {
    let old: OpenDatabase;
    let dataSource: DataSource;
    beforeEach(async () => {
      old = await openDatabase('maintenance', createReleasedDatabase());
      ({ dataSource } = old);
    });
    afterEach(() => old.close());

    const rows = async () => {
      const [row] = await dataSource.query<object[]>(`SELECT
  (SELECT json_agg(u ORDER BY id) FROM (SELECT id, username, display_name, card, folded_name, password_hash, email, disabled_at FROM users) u) AS users,
  (SELECT json_agg(c ORDER BY user_id, id) FROM connections c) AS connections,
  (SELECT json_agg(p ORDER BY user_id, event_id) FROM participants p) AS participants,
  (SELECT json_agg(e ORDER BY id) FROM events e) AS events,
  (SELECT json_agg(k) FROM api_keys k) AS keys, (SELECT json_agg(a) FROM auth_events a) AS audit,
  (SELECT json_agg(t ORDER BY user_id) FROM user_totals t) AS user_totals,
  (SELECT json_agg(t ORDER BY event_id) FROM event_totals t) AS event_totals,
  (SELECT json_agg(t) FROM platform_totals t) AS platform_totals,
  (SELECT json_agg(a ORDER BY id) FROM achievements a) AS achievements`);
      return row;
    };
    it('keep the rows, set when existing grants’ access ends, and can be undone to the schema of 1.1.0', async () => {
      await dataSource.query(`INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ('web', 'Web', 'web', '{https://web.example/}', '{}');
INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at) VALUES ('web', 1, 'web', '{}', 'infinity')`);
      const [before, had] = [await rows(), await objectsOf(dataSource)];
      const { applied, pending } = await readSchema(dataSource);
      expect([applied, pending.length > 10]).toEqual([[BASELINE], true]);
      expect(await migrate(dataSource)).toEqual(pending);
      expect(await readSchema(dataSource)).toMatchObject({ pending: [], unknown: [], incompatible: [] });
      expect(await rows()).toMatchObject(before!); // columns may have been added
      expect(await findDamage(dataSource.manager)).toEqual([]);
      expect(await findDrift(dataSource.manager)).toEqual([]);
      expect(await findStaleCopies(dataSource.manager)).toEqual([]);
      expect(
        await dataSource.query(`SELECT EXTRACT(day FROM access_ends_at - created_at)::int AS days,
  payload -> 'resources' ->> 'https://api.example/' AS scopes FROM oauth_grants ORDER BY id`),
      ).toEqual([{ days: 180, scopes: 'profile:read' }, { days: 14, scopes: null }]); // as stored with the consent

      for (const { name } of await lastMigrations(dataSource, BASELINE)) await rollback(dataSource, name);
      expect(await rows()).toEqual(before);
      expect(await objectsOf(dataSource)).toEqual(had);
      const recorded = await dataSource.query<object[]>('SELECT FROM migrations');
      expect(recorded).toHaveLength(38); // 1.1.0 finds all its own migrations
    }); // prettier-ignore

    it('reject a database older than 1.1.0, and name 1.1.0 as the intermediate version', async () => {
      await dataSource.query(`DELETE FROM migrations WHERE name = '${BASELINE}'`);
      const reason =
        /^The database is older than version 1\.1\.0 \(WriteChangesCheaply1763700121000\): run `pua db migrate` of version 1\.1\.0 first, then of this version$/;
      await expect(migrate(dataSource)).rejects.toThrow(reason);
      await expect(rollback(dataSource)).rejects.toThrow(reason);
      await expect(planMigrations(dataSource)).rejects.toThrow(reason);
    });

    postgres.it('continue after a process was killed while it waited for a lock', async () => {
      const before = await rows();
      const holder = await hold(dataSource, 'LOCK TABLE oauth_clients IN ACCESS SHARE MODE');
      const killed = startPua({ ...old.environment, NODE_ENV: 'test' }, ['db', 'migrate']);
      const ended = once(killed, 'close');
      const next = async () => (await readSchema(dataSource)).pending[0];
      while ((await next()) !== TellClientsOfSignOuts1763802701000.name);
      killed.kill('SIGKILL');
      await ended;
      await holder.rollback();
      expect((await migrate(dataSource))[0]).toBe(TellClientsOfSignOuts1763802701000.name);
      expect(await rows()).toMatchObject(before!);
      expect(await findDrift(dataSource.manager)).toEqual([]);
      expect(await dataSource.query('SELECT conname FROM pg_constraint WHERE NOT convalidated')).toEqual([]);
    });
  });

  postgres.it('require no superuser', async () => {
    const [me] = await dataSource.query<object[]>(
      'SELECT rolsuper AS superuser, datdba = r.oid AS owner FROM pg_roles r, pg_database WHERE rolname = current_user AND datname = current_database()',
    );
    expect(me).toEqual({ superuser: false, owner: true });
  });

  it('create no table without an entity, except counters and TypeORM’s own table', async () => {
    const tables = await dataSource.query<Table[]>(TABLES);
    const entities = tablesOfEntities(dataSource).map(({ table }) => table);
    const undescribed = tables.filter(({ table }) => !entities.includes(table));
    const hasKey = ({ constraints }: Table) => constraints.some((text) => text.startsWith('PRIMARY KEY'));
    // Exceptions: TypeORM's own table, and appended counters, since TypeORM entities need a primary key.
    expect(undescribed.filter(hasKey).map(({ table }) => table)).toEqual(['migrations']);
    expect(
      undescribed
        .filter((table) => !hasKey(table))
        .map(({ table }) => table)
        .toSorted(),
    ).toEqual(['achievement_total_deltas', 'event_totals', 'platform_total_deltas', 'user_totals']);
  });

  it('reject a database with unknown migrations, unless the database lists these migrations as compatible', async () => {
    await dataSource.query(
      `INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'FromTheFuture9999999999999')`,
    );
    await expect(migrate(dataSource)).rejects.toThrow(/FromTheFuture/);
    await dataSource.query(
      `INSERT INTO compatible_migrations VALUES ('FromTheFuture9999999999999'), ('LaterStill9999999999999')`,
    );
    expect(await readSchema(dataSource)).toMatchObject({
      unknown: ['FromTheFuture9999999999999'],
      incompatible: [],
    });
    expect(await migrate(dataSource)).toEqual([]);
    await expect(rollback(dataSource)).rejects.toThrow(/FromTheFuture/);
    await dataSource.query(`DELETE FROM migrations WHERE name = 'FromTheFuture9999999999999'`);
    await dataSource.query(
      `DELETE FROM compatible_migrations WHERE name IN ('FromTheFuture9999999999999', 'LaterStill9999999999999')`,
    );
  });

  it('restore changed and missing functions and triggers of schema/, and drop those that only the previous version had', async () => {
    const byName = async () => (await schema()).toSorted((a, b) => (a.name < b.name ? -1 : 1)); // new columns are last
    const before = await byName();
    // The state after a previous version: one function differs, a trigger and a function are missing, and a trigger and two functions are additional.
    await dataSource.query(`
CREATE OR REPLACE FUNCTION fold_case(value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN upper(value);
DROP TRIGGER users_derive ON users;
DROP FUNCTION local_time_or_utc;
CREATE FUNCTION folded_before() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER folded_before AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION folded_before();
CREATE FUNCTION operators_own() RETURNS int LANGUAGE sql RETURN 1;
UPDATE schema_versions SET digest = 'the version before', objects = objects - 'TRIGGER users_derive ON users' - 'FUNCTION local_time_or_utc'
  || '{"FUNCTION fold_case": "another", "FUNCTION folded_before": "", "TRIGGER folded_before ON users": ""}' WHERE digest <> 'migrations'`);
    expect((await readSchema(dataSource)).pending).toEqual([REPEATABLE]);
    expect(await migrate(dataSource)).toEqual([REPEATABLE]);
    const after = await byName();
    expect(after.filter(({ name }) => name !== 'function operators_own()')).toEqual(before);
    expect(after).toHaveLength(before.length + 1);
    expect((await readSchema(dataSource)).pending).toEqual([]);
    await dataSource.query('DROP FUNCTION operators_own');
  });

  it('keep a newer version’s function, and cannot be undone', async () => {
    await dataSource.query(`
INSERT INTO schema_versions (digest, objects) VALUES ('a newer version', '{"FUNCTION newer": ""}');
CREATE FUNCTION newer() RETURNS int LANGUAGE sql RETURN 1`);
    expect(await readSchema(dataSource)).toMatchObject({
      pending: [],
      unknown: [REPEATABLE],
      incompatible: [],
    });
    expect(await migrate(dataSource)).toEqual([]);
    await expect(rollback(dataSource)).rejects.toThrow(/does not know \(schema\/\)/);
    expect((await schema()).map(({ name }) => name)).toContain('function newer()');
    await dataSource.query(
      `DROP FUNCTION newer; DELETE FROM schema_versions WHERE digest = 'a newer version'`,
    );
  });

  // The embedded database has one session: no other client holds a lock there.
  postgres.it('are undone once by two concurrent rollbacks, and no other migration is undone', async () => {
    const { applied } = await readSchema(dataSource);
    const other = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
    const [last, before] = [applied.at(-1), applied.at(-2)];
    const undone = await Promise.all([dataSource, other].map((by) => rollback(by, last)));
    expect(undone.filter(Boolean)).toEqual([last]);
    expect((await readSchema(dataSource)).applied.at(-1)).toBe(before);
    await other.destroy();
    await migrate(dataSource);
  });

  postgres.it('stop waiting for a lock that another client holds, and retry', async () => {
    // Undoes migrations down to one that changes a table which requests read.
    const undone = [await rollback(dataSource)];
    while (undone[0] !== ReadClientsKeySets1764200000000.name) undone.unshift(await rollback(dataSource));
    const holder = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
    const holding = await hold(holder, 'LOCK TABLE oauth_clients IN ACCESS SHARE MODE');
    const migrating = migrate(dataSource);
    await waitingForLock(holder, 'oauth_clients');
    // A new reader waits only until the migration gives up its lock attempt.
    expect(await holder.query('SELECT count(*) AS n FROM oauth_clients')).toEqual([{ n: 0 }]);
    await holding.rollback();
    await holder.destroy();
    expect((await migrating).filter((name) => name !== REPEATABLE)).toEqual(undone);
  });
});
