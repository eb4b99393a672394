import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { EraseUsers1763700032000 } from '../../migrations/1763700032000-erase-users.js';
import { createDataSource } from '../../src/database/data-source.js';
import { migrate, migrationStatus, rollback } from '../../src/database/migrate.js';
import { createTestDatabase, onPostgres, testConfig } from '../support/database.js';
import type { TestDatabase } from '../support/database.js';

/** Everything that migrations make: tables with their columns and constraints, indexes, functions, triggers. */
const SCHEMA = `
  SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
    || ' ' || COALESCE(generation_expression, '') AS thing
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'migrations'
  UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 'migrations'::regclass
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'migrations'
  UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT 'sequence ' || sequence_name FROM information_schema.sequences
    WHERE sequence_schema = 'public' AND sequence_name <> 'migrations_id_seq'
  ORDER BY thing`;

/** Tables as the database has them: columns with type, nullability and place in the key; references; uniques. */
const TABLES = `
  SELECT c.relname AS table,
    (SELECT json_object_agg(a.attname, format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END)
      FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    (SELECT COALESCE(json_agg(pg_get_constraintdef(k.oid) ORDER BY pg_get_constraintdef(k.oid)), '[]')
      FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f')) AS constraints
  FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`;

interface Table {
  table: string;
  columns: Record<string, string>;
  constraints: string[];
}

/** Tables as the entities say they are, in the same words. */
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
  let database: TestDatabase;
  let dataSource: DataSource;
  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const schema = async () => (await dataSource.query<{ thing: string }[]>(SCHEMA)).map(({ thing }) => thing);

  it('make what the entities say: columns, types, keys and references', async () => {
    const tables = await dataSource.query<Table[]>(TABLES);
    for (const entity of tablesOfEntities(dataSource)) {
      const { columns, constraints } = tables.find(({ table }) => table === entity.table)!;
      expect({ table: entity.table, columns, constraints: constraints.toSorted() }).toEqual(entity);
    }
  });

  it('go down without a trace, and up again to the same', async () => {
    const before = await schema();
    expect(before.length).toBeGreaterThan(100);
    while ((await rollback(dataSource)) !== undefined);
    expect(await schema()).toEqual([]);
    await migrate(dataSource);
    expect(await schema()).toEqual(before);
    expect((await migrationStatus(dataSource)).pending).toEqual([]);
  });

  it('refuse a database that is newer than the program, unless older programs may work over it', async () => {
    await dataSource.query(
      `INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'FromTheFuture9999999999999')`,
    );
    await expect(migrate(dataSource)).rejects.toThrow(/FromTheFuture/);
    await dataSource.query(
      `INSERT INTO compatible_migrations VALUES ('FromTheFuture9999999999999'), ('LaterStill9999999999999')`,
    );
    expect(await migrationStatus(dataSource)).toMatchObject({
      unknown: ['FromTheFuture9999999999999'],
      incompatible: [],
    });
    expect(await migrate(dataSource)).toEqual([]);
    await expect(rollback(dataSource)).rejects.toThrow(/FromTheFuture/);
    await dataSource.query(`DELETE FROM migrations WHERE name = 'FromTheFuture9999999999999'`);
    await dataSource.query('DELETE FROM compatible_migrations');
  });

  // The embedded database has one session: nobody else holds a lock there.
  (onPostgres ? it : it.skip)('give way where somebody holds a lock, and come again', async () => {
    // As far as one that changes a table which requests read.
    let undone = 1;
    while ((await rollback(dataSource)) !== EraseUsers1763700032000.name) undone++;
    const holder = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
    const holding = holder.createQueryRunner();
    await holding.startTransaction();
    await holding.query('LOCK TABLE users IN ACCESS SHARE MODE');
    const migrating = migrate(dataSource);
    const waiting = async () =>
      (
        await holder.query<unknown[]>(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
      ).length > 0;
    while (!(await waiting()));
    // Whoever comes now waits behind the migration, and only until it gives way.
    expect(await holder.query('SELECT count(*) AS n FROM users')).toEqual([{ n: 0 }]);
    await holding.rollbackTransaction();
    await holding.release();
    await holder.destroy();
    expect(await migrating).toHaveLength(undone);
  });
});
