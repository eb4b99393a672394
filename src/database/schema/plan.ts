import type { DataSource, MigrationInterface } from 'typeorm';
import { collectStatements, stepsOf } from './migrate.js';
import { readSchema, REPEATABLE, requireFit } from './schema.js';
import { MIGRATIONS } from './tables.js';

/** Sessions whose statements on a table wait until the transaction ends. */
export type Waiting = 'nobody' | 'writers' | 'readers and writers';

export interface PlannedStep {
  readonly migration: string;
  /** Number from 1; null for the migration's transaction after its steps. */
  readonly step: number | null;
  readonly locks: Readonly<Record<string, Waiting>>;
  /** Estimate from the current table sizes, rounded to a tenth of a second. */
  readonly seconds: number;
  /** The slow work, as in `index of events (1.2 GB)`. */
  readonly work: readonly string[];
}

/** Bytes of a table per second, measured on two virtual cores with cached data: docs/operators/upgrade.md. */
const SPEED = { scan: 400e6, index: 100e6, rewrite: 20e6 };
type Work = keyof typeof SPEED;

/** A stored computed column or a volatile default makes PostgreSQL rewrite the table; so do most changes of a column's type. */
const REWRITES =
  /GENERATED ALWAYS AS \(|ALTER COLUMN \w+ (?:SET DATA )?TYPE|DEFAULT (?:gen_random_uuid|clock_timestamp|random)/;
const SCANS = /\bCHECK \(|SET NOT NULL|FOREIGN KEY|REFERENCES/;

/** Treats the build of a partial index as a scan, since it usually sorts few rows. */
const indexing = (statement: string): Work => (/\sWHERE\s/.test(statement) ? 'scan' : 'index');

/** Locks by kind of statement, from PostgreSQL's documentation (“Explicit Locking”, and each statement's page). */
const KINDS: readonly { of: RegExp; waiting: Waiting; work?: (statement: string) => Work | undefined }[] = [
  { of: /^CREATE (?:UNIQUE )?INDEX CONCURRENTLY .*? ON (\w+)/s, waiting: 'nobody', work: indexing },
  { of: /^CREATE (?:UNIQUE )?INDEX .*? ON (\w+)/s, waiting: 'writers', work: indexing },
  { of: /^CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER .*? ON (\w+)/s, waiting: 'writers' },
  { of: /^ALTER TABLE (\w+)\s+VALIDATE CONSTRAINT/, waiting: 'nobody', work: () => 'scan' },
  { of: /^ALTER TABLE (\w+) ENABLE (?:ALWAYS |REPLICA )?TRIGGER/, waiting: 'writers' },
  {
    of: /^ALTER TABLE (?:ONLY )?(\w+)/,
    waiting: 'readers and writers',
    work: (statement) =>
      REWRITES.test(statement)
        ? 'rewrite'
        : SCANS.test(statement) && !/NOT VALID/.test(statement)
          ? 'scan'
          : undefined,
  },
  { of: /^DROP TABLE (\w+)/, waiting: 'readers and writers' },
  { of: /^DROP TRIGGER .* ON (\w+)/, waiting: 'readers and writers' },
  { of: /^UPDATE (\w+)/, waiting: 'nobody', work: () => 'rewrite' },
  { of: /^DELETE FROM (\w+)/, waiting: 'nobody', work: () => 'scan' },
];
const ORDER: readonly Waiting[] = ['nobody', 'writers', 'readers and writers'];

/** Estimates locks and duration of pending migrations, except DO blocks. @throws OperatorError if the database is too old or too new */
export async function planMigrations(dataSource: DataSource): Promise<PlannedStep[]> {
  const schema = await readSchema(dataSource);
  if (schema.tooOld !== undefined || schema.incompatible.length > 0) requireFit(schema);
  const due = MIGRATIONS.filter(({ name }) => schema.pending.includes(name));
  const plans = await Promise.all(due.map((Migration) => planMigration(dataSource, new Migration())));
  // Ignores the time and locks for writing functions and triggers, which are short.
  const functions = { migration: REPEATABLE, step: null, locks: {}, seconds: 0, work: [] };
  return [...plans.flat(), ...(schema.pending.includes(REPEATABLE) ? [functions] : [])];
}

interface Table {
  readonly name: string;
  readonly bytes: number;
  readonly indexes: readonly string[];
}

/** Plans one migration, pending or not: its steps, then its other statements. */
export async function planMigration(
  dataSource: DataSource,
  migration: MigrationInterface,
): Promise<PlannedStep[]> {
  const tables = await dataSource.query<Table[]>(
    `SELECT relname AS name, pg_relation_size(c.oid) AS bytes,
  ARRAY(SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = c.oid) AS indexes
FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  const steps = stepsOf(migration).map((step, i) => ({ step: i + 1, statements: [step] }));
  const own = { step: null, statements: (await collectStatements(migration, 'up')).flatMap(split) };
  return [...steps, own].map(({ step, statements }) => ({
    migration: migration.constructor.name,
    step,
    ...planOf(statements, tables),
  }));
}

/** Splits SQL into statements without leading comments; strings and `$$` bodies stay whole. */
export const split = (sql: string): string[] =>
  (sql.match(/(?:\$\$[^]*?\$\$|'[^']*'|--.*|[^;])+/g) ?? [])
    .map((statement) => statement.replace(/^(?:\s*--.*)+/, '').trim())
    .filter((statement) => statement !== '');

function planOf(statements: readonly string[], tables: readonly Table[]) {
  const locks: Record<string, Waiting> = {};
  const work: string[] = [];
  let seconds = 0;
  const lock = (name: string, waiting: Waiting) => {
    locks[name] = ORDER[Math.max(ORDER.indexOf(waiting), ORDER.indexOf(locks[name] ?? 'nobody'))]!;
  };
  for (const statement of statements) {
    const [, dropped] = /^DROP INDEX (?:IF EXISTS )?(\w+)/.exec(statement) ?? [];
    for (const { name } of tables.filter(({ indexes }) => indexes.includes(dropped!)))
      lock(name, 'readers and writers');
    for (const [, referred] of statement.matchAll(/REFERENCES (\w+)/g))
      if (tables.some(({ name }) => name === referred)) lock(referred!, 'writers');
    const kind = KINDS.find(({ of }) => of.test(statement));
    const table = kind && tables.find(({ name }) => name === kind.of.exec(statement)![1]);
    if (!kind || !table) continue; // such as a block, or one that creates a table or function
    lock(table.name, kind.waiting);
    const done = kind.work?.(statement);
    if (!done) continue;
    seconds += table.bytes / SPEED[done];
    work.push(`${done} of ${table.name} (${formatSize(table.bytes)})`);
  }
  return { locks, seconds: Math.round(seconds * 10) / 10, work };
}

const formatSize = (bytes: number) =>
  bytes < 1e9 ? `${Math.ceil(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
