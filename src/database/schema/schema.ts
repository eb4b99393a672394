import { REPEATABLE, REPEATABLE_DIGEST } from './repeatable.js';
import { MIGRATIONS } from './tables.js';
import { OperatorError } from '../../values/operator-error.js';

/** The migrations of a database, by name. */
export interface Schema {
  readonly applied: readonly string[];
  /** With {@link REPEATABLE} at the end if what it has was never applied. */
  readonly pending: readonly string[];
  /** In the database, but not in this build: the database is newer than the program. {@link REPEATABLE}: what it has was replaced. */
  readonly unknown: readonly string[];
  /** Those of {@link unknown} not marked as compatible with older versions. */
  readonly incompatible: readonly string[];
}

/** Why the program cannot use a database. */
interface SchemaMismatch {
  /** Predicate about the database, as in “the database lacks migrations”. */
  readonly predicate: string;
  readonly migrations: readonly string[];
  readonly remedy: string;
}

interface Database {
  query(sql: string): Promise<unknown>;
}

/** The functions of the migrations find their tables in it by name. */
const SCHEMA = 'public';

/**
 * Reads which migrations have run, in two statements; in a database that was never migrated, none have.
 *
 * @throws OperatorError if tables would be looked for in another schema, or the role may not use this one
 */
export async function readSchema(database: Database): Promise<Schema> {
  const [tables] = (await database.query(
    `SELECT current_schema() AS schema, current_user AS role,
  to_regclass('migrations') IS NOT NULL AS migrations, to_regclass('compatible_migrations') IS NOT NULL AS marks,
  to_regclass('schema_versions') IS NOT NULL AS versions`,
  )) as [{ schema: string | null; role: string; migrations: boolean; marks: boolean; versions: boolean }];
  if (tables.schema !== SCHEMA)
    throw new OperatorError(
      `The role ${tables.role} uses the schema ${tables.schema ?? '(none)'}, but the tables are in ${SCHEMA}: ` +
        `take search_path from its settings and from DATABASE_URL, and GRANT USAGE ON SCHEMA ${SCHEMA}`,
    );
  const marked = tables.marks ? 'name IN (SELECT c.name FROM compatible_migrations c)' : 'false';
  const repeated = tables.versions
    ? `(SELECT array_agg(digest = '${REPEATABLE_DIGEST}' ORDER BY applied_at DESC) FROM schema_versions)`
    : `'{}'::boolean[]`;
  const rows = (
    tables.migrations
      ? await database.query(
          `SELECT name, ${marked} AS compatible, ${repeated} AS repeated FROM migrations ORDER BY id`,
        )
      : []
  ) as { name: string; compatible: boolean; repeated: boolean[] }[];
  const known = MIGRATIONS.map(({ name }) => name);
  const applied = rows.map(({ name }) => name);
  const unknown = rows.filter(({ name }) => !known.includes(name));
  // A newer version has brought its own, and may have come back to a database that this one was in before.
  const repetitions = rows[0]?.repeated ?? [];
  const isRepeated = unknown.length > 0 || repetitions.includes(true);
  const isOutdated = isRepeated && repetitions[0] === false;
  return {
    applied,
    pending: [...known.filter((name) => !applied.includes(name)), ...(isRepeated ? [] : [REPEATABLE])],
    unknown: [...unknown.map(({ name }) => name), ...(isOutdated ? [REPEATABLE] : [])],
    incompatible: unknown.filter(({ compatible }) => !compatible).map(({ name }) => name),
  };
}

/** Checks whether the program can use a database. @returns undefined if it can */
export function mismatchOf({ pending, incompatible }: Schema): SchemaMismatch | undefined {
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

/** Refuses to use a database that does not match the program. @throws OperatorError with the reason and the remedy */
export function requireFit(schema: Schema): void {
  const mismatch = mismatchOf(schema);
  if (!mismatch) return;
  const { predicate, migrations, remedy } = mismatch;
  throw new OperatorError(`The database ${predicate} (${migrations.join(', ')}): ${remedy}`);
}
