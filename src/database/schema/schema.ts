import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EntityManager } from 'typeorm';
import { sha256 } from '../../crypto/digests.js';
import { MIGRATIONS } from './tables.js';
import { OperatorError } from '../../values/operator-error.js';

const FOLDER = join(import.meta.dirname, '../../../schema');

/** The name of the folder schema/ in lists of migrations. */
export const REPEATABLE = 'schema/';

/** Statements of schema/ by the created object's name, as in a DROP statement; functions come first. */
const STATEMENTS = readStatements();

export const REPEATABLE_DIGEST = sha256(JSON.stringify([...STATEMENTS]), 'hex');

function readStatements(): ReadonlyMap<string, string> {
  const texts = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .toSorted()
    .flatMap((name) => readFileSync(join(FOLDER, name), 'utf8').split(/\n\n(?=(?:--.*\n)*CREATE )/));
  const named = texts.map((text): [string, string] => [nameOf(text), text.trim()]);
  const functions = named.filter(([name]) => name.startsWith('FUNCTION'));
  return new Map([...functions, ...named.filter((entry) => !functions.includes(entry))]);
}

function nameOf(statement: string): string {
  const found = /^CREATE OR REPLACE (?:(FUNCTION \w+)|(TRIGGER [\w"]+)[^;]*?\s(ON \w+))/m.exec(statement);
  if (!found) throw new Error(`Use only CREATE OR REPLACE FUNCTION or TRIGGER in schema/, not: ${statement}`);
  return found.slice(1).filter(Boolean).join(' ');
}

/** Names of volatile functions of schema/, except trigger functions: statements that call them count as writes. */
export const WRITING_FUNCTIONS = [...STATEMENTS].flatMap(([name, text]) => {
  const [declaration] = text.slice(text.indexOf('CREATE ')).split(/\bAS \$\$|^  RETURN /m);
  const writes =
    name.startsWith('FUNCTION ') && !/\b(?:STABLE|IMMUTABLE|RETURNS trigger)\b/.test(declaration!);
  return writes ? [name.slice('FUNCTION '.length)] : [];
});

/** The migration that creates the tables of 1.1.0; it replaces all earlier migrations. */
const BASELINE = MIGRATIONS[0]!.name;

export interface Schema {
  /** Migrations that have run; without those that {@link BASELINE} replaces, unless `tooOld` is set. */
  readonly applied: readonly string[];
  /** The last migration that ran, if the database is older than 1.1.0: this version cannot upgrade it. */
  readonly tooOld: string | undefined;
  /** Migrations to run, then {@link REPEATABLE} if this state of schema/ was never applied and no unknown migration has run. */
  readonly pending: readonly string[];
  /** Migrations that have run but that this build lacks, and {@link REPEATABLE} if another version has replaced schema/. */
  readonly unknown: readonly string[];
  /** Migrations among {@link unknown} that are not marked as compatible with older versions. */
  readonly incompatible: readonly string[];
}

/** The schema that contains the tables. */
const SCHEMA = 'public';

/** Reads which migrations have run, in at most two statements. @throws OperatorError if the session uses another schema */
export async function readSchema(database: { query(sql: string): Promise<unknown> }): Promise<Schema> {
  const [tables] = (await database.query(
    `SELECT current_schema() AS schema, current_user AS role,
  to_regclass('migrations') IS NOT NULL AS migrations, to_regclass('compatible_migrations') IS NOT NULL AS marks,
  to_regclass('schema_versions') IS NOT NULL AS versions`,
  )) as [{ schema: string | null; role: string; migrations: boolean; marks: boolean; versions: boolean }];
  if (tables.schema !== SCHEMA)
    throw new OperatorError(
      `The role ${tables.role} uses the schema ${tables.schema ?? '(none)'}, but the tables are in ${SCHEMA}: ` +
        `remove search_path from the role’s settings and from DATABASE_URL, and GRANT USAGE ON SCHEMA ${SCHEMA}`,
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
  const recent = rows.filter(({ name }) => timeOf(name) >= timeOf(BASELINE));
  const tooOld = recent.length === 0 ? rows.at(-1)?.name : undefined;
  const applied = (tooOld === undefined ? recent : rows).map(({ name }) => name);
  const unknown = recent.filter(({ name }) => !known.includes(name));
  // A newer version may have replaced schema/ after this version prepared the database.
  const repetitions = rows[0]?.repeated ?? [];
  const isRepeated = unknown.length > 0 || repetitions.includes(true);
  const isOutdated = isRepeated && repetitions[0] === false;
  return {
    applied,
    tooOld,
    pending: [...known.filter((name) => !applied.includes(name)), ...(isRepeated ? [] : [REPEATABLE])],
    unknown: [...unknown.map(({ name }) => name), ...(isOutdated ? [REPEATABLE] : [])],
    incompatible: unknown.filter(({ compatible }) => !compatible).map(({ name }) => name),
  };
}

/** The time in ms at the end of a migration's name. */
const timeOf = (name: string) => Number(name.slice(-13));

/** Tells why the program cannot use a database: `predicate` as in “the database lacks migrations”. @returns undefined if it can */
export function mismatchOf({ tooOld, pending, incompatible }: Schema) {
  if (tooOld !== undefined)
    return {
      predicate: 'is older than version 1.1.0',
      migrations: [tooOld],
      remedy: 'run `pua db migrate` of version 1.1.0 first, then of this version',
    };
  if (incompatible.length > 0)
    return {
      predicate: 'is newer than this version',
      migrations: incompatible,
      remedy: 'use the newer version',
    };
  if (pending.length > 0)
    return { predicate: 'lacks migrations', migrations: pending, remedy: 'run `pua db migrate`' };
  return undefined;
}

/** Rejects a database that does not match the program. @throws OperatorError with the reason and the remedy */
export function requireFit(schema: Schema): void {
  const mismatch = mismatchOf(schema);
  if (!mismatch) return;
  const { predicate, migrations, remedy } = mismatch;
  throw new OperatorError(`The database ${predicate} (${summarizeNames(migrations)}): ${remedy}`);
}

/** Returns one name, or the number of names with the first and the last. */
export function summarizeNames(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.length}, from ${names[0]} to ${names.at(-1)}`;
}

/** Writes new, changed and missing functions and triggers, and drops removed ones, within a transaction. @returns whether any changed */
export async function applyRepeatable(manager: EntityManager): Promise<boolean> {
  const [{ objects, there }] = (await manager.query(`SELECT objects, ARRAY(
  SELECT 'FUNCTION ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT format('TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger) AS there
FROM schema_versions ORDER BY applied_at DESC LIMIT 1`)) as [
    { objects: Record<string, string>; there: string[] },
  ];
  const writing = [...STATEMENTS].filter(([name, text]) => objects[name] !== text || !there.includes(name));
  const gone = Object.keys(objects).filter((name) => !STATEMENTS.has(name) && there.includes(name));
  const triggers = gone.filter((name) => name.startsWith('TRIGGER'));
  const functions = gone.filter((name) => name.startsWith('FUNCTION')).map((name) => name.split(' ')[1]);
  const statements = [
    ...writing.map(([, text]) => text),
    ...triggers.map((name) => `DROP ${name};`),
    ...(functions.length > 0 ? [`DROP FUNCTION ${functions.join(', ')};`] : []),
  ];
  await manager.query(statements.join('\n'));
  await manager.query(
    `INSERT INTO schema_versions (digest, objects) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET applied_at = EXCLUDED.applied_at`,
    [REPEATABLE_DIGEST, Object.fromEntries(STATEMENTS)],
  );
  return statements.length > 0;
}
