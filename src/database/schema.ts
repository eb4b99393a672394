import { MIGRATIONS } from './data-source.js';
import { OperatorError } from '../values/operator-error.js';

/** What a database says of its migrations, by their names. */
export interface Schema {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** In the database, but not in this build: the database is newer than the program. */
  readonly unknown: readonly string[];
  /** Those of them over which this program cannot work: all that do not say that older ones can. */
  readonly incompatible: readonly string[];
}

/** Why the program cannot work over a database. */
export interface Misfit {
  /** What the database does, as in “the database lacks migrations”. */
  readonly predicate: string;
  readonly migrations: readonly string[];
  readonly remedy: string;
}

interface Database {
  query(sql: string): Promise<unknown>;
}

/** Reads which migrations have run, in two statements; a database that nobody has migrated yet has run none. */
export async function readSchema(database: Database): Promise<Schema> {
  const [tables] = (await database.query(
    `SELECT to_regclass('migrations') IS NOT NULL AS migrations, to_regclass('compatible_migrations') IS NOT NULL AS marks`,
  )) as [{ migrations: boolean; marks: boolean }];
  const marked = tables.marks ? 'name IN (SELECT c.name FROM compatible_migrations c)' : 'false';
  const rows = (
    tables.migrations
      ? await database.query(`SELECT name, ${marked} AS compatible FROM migrations ORDER BY id`)
      : []
  ) as { name: string; compatible: boolean }[];
  const known = MIGRATIONS.map(({ name }) => name);
  const applied = rows.map(({ name }) => name);
  const unknown = rows.filter(({ name }) => !known.includes(name));
  return {
    applied,
    pending: known.filter((name) => !applied.includes(name)),
    unknown: unknown.map(({ name }) => name),
    incompatible: unknown.filter(({ compatible }) => !compatible).map(({ name }) => name),
  };
}

/** Judges whether the program can work over a database. @returns undefined where it can */
export function misfitOf({ pending, incompatible }: Schema): Misfit | undefined {
  if (incompatible.length > 0)
    return {
      predicate: 'is newer than this version',
      migrations: incompatible,
      remedy: 'use the newer version',
    };
  if (pending.length > 0)
    return { predicate: 'lacks migrations', migrations: pending, remedy: 'run `npx pua db migrate`' };
  return undefined;
}

/** Refuses to go on over a database that does not fit. @throws OperatorError that says why, and what to do */
export function requireFit(schema: Schema): void {
  const misfit = misfitOf(schema);
  if (!misfit) return;
  const { predicate, migrations, remedy } = misfit;
  throw new OperatorError(`The database ${predicate} (${migrations.join(', ')}): ${remedy}`);
}
