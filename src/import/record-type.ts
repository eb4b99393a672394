import type { eraseMembers } from '../accounts/erasure.js';
import type { Copies } from '../model/derived.js';
import {
  columnsOf,
  type Absence,
  type Fault,
  type FaultCode,
  type Fields,
  type StagedRow,
} from './fields.js';

/** SQL expressions by column; they can use the staged record `s` and the stored row `t`. */
type Values = Readonly<Record<string, string>>;
/** Computes a column of the staging table from the row and the original record. */
type Note = (row: StagedRow, record: object) => boolean;

/** What a record type declares; {@link recordType} derives the rest. `name` is also the name of the table. */
interface Declared {
  readonly name: string;
  readonly fields: Fields;
  /** Columns that identify a row; `id` if not given. */
  readonly key?: readonly string[];
  readonly check?: (row: StagedRow) => Fault | undefined;
  readonly notes?: Readonly<Record<string, Note>>;
  /** Queries for (line, code, reason) of invalid staged records; they also check records that a later line replaces. */
  readonly references?: readonly string[];
  /** Queries like `references`, but they do not check records that a later line replaces. */
  readonly rules?: readonly string[];
  /** Sets of staging columns, each of which identifies a record; default: `id`, or else the key. */
  readonly identities?: readonly (readonly string[])[];
  /** For a record of two members: SQL of its two rows `s`, with all columns that the values use. */
  readonly sides?: string;
  /** Columns to write; default: the columns of the fields. */
  readonly columns?: readonly string[];
  /** Further values to write with a row; a difference only in these values is not a change. */
  readonly besides?: Values;
  /** Columns in unique indexes, and columns that determine such columns. */
  readonly referred?: readonly string[];
  /** Columns that are copied from a referenced row. */
  readonly copies?: Copies;
  readonly joins?: string;
  /** Statements that release unique values for other rows, before the insert. */
  readonly release?: readonly string[];
  /** Values with `--keep-profile`, instead of the default values. */
  readonly kept?: Values;
  /** Effect of `"op": "delete"`, and in some files of `"deleted": true`; default: deletes the record's row. */
  readonly removal?: Partial<Removal>;
}

interface Removal {
  /** Fields that identify the record; the line's other fields are ignored. */
  readonly fields: Fields;
  readonly check?: (row: StagedRow) => Fault | undefined;
  readonly complete?: (row: StagedRow) => void;
  readonly rows: string;
  /** For soft-deleted rows: the column with the time of deletion. */
  readonly ended?: string;
  readonly ends?: Values;
  readonly remove?: typeof eraseMembers;
}

export type RecordType = ReturnType<typeof recordType>;

/** Who changes the records, for the audit log. */
export type Author = Parameters<typeof eraseMembers>[2];

/** Names the temporary table in which records of the type are staged. */
export const staged = (name: string) => `import_${name}`;

/** Temporary table with the ids of members that this import adds. */
export const NEW_USERS = 'import_new_users';

/** Lists columns of a row, as SQL. */
export const columnList = (columns: readonly string[], row: string) =>
  columns.map((column) => `${row}.${column}`).join(', ');

/** Quotes a fault code for SQL; the compiler checks that it exists. */
export const code = (name: FaultCode) => `'${name}'`;

/** Condition for a staged record that can conflict with another line; a deletion in a deduplicated feed cannot. */
const EXCLUSIVE = 'NOT (deleted AND counts IS TRUE)';

/** Makes a query for lines that equal an earlier line in these columns or expressions. @param reason SQL; the first line is `d.first` */
export const twice = (name: string, same: readonly string[], reason: string) =>
  `SELECT s.line, ${code('duplicate')}, ${reason} FROM ${staged(name)} s
  JOIN (SELECT ${same.map((sql, i) => `${sql} AS same_${i}`).join(', ')}, min(line) AS first FROM ${staged(name)}
    WHERE ${EXCLUSIVE} GROUP BY ${same.map((_, i) => i + 1).join(', ')} HAVING count(*) > 1) d
    ON (${same.map((_, i) => `d.same_${i}`).join(', ')}) = (${same.join(', ')}) WHERE s.line > d.first AND ${EXCLUSIVE}`;

/** Makes a query for lines whose `column` names a row of `table` that is neither in the import nor in the database. */
const missing = (name: string, column: string, table: string) =>
  `SELECT s.line, ${code('unknown_reference')}, '${column}: there is no such record in ${table}: ' || s.${column} FROM ${staged(name)} s
  WHERE NOT s.deleted AND s.${column} IS NOT NULL
    AND NOT EXISTS (SELECT FROM ${staged(table)} r WHERE r.id = s.${column} AND NOT r.deleted)
    AND NOT EXISTS (SELECT FROM ${table} r WHERE r.id = s.${column})`;

/** Makes a query for lines whose `column` names a member who is erased, or whom another line erases. */
export const erased = (name: string, column: string) =>
  `SELECT s.line, ${code('member_erased')}, '${column}: the member ' || r.id || ' was erased' FROM ${staged(name)} s
  JOIN users r ON r.id = s.${column} WHERE NOT s.deleted AND r.erased_at IS NOT NULL
  UNION ALL SELECT s.line, ${code('member_erased')}, '${column}: line ' || r.line || ' deletes the member ' || r.id FROM ${staged(name)} s
  JOIN ${staged('users')} r ON r.id = s.${column} AND r.deleted AND (r.line < s.line OR s.counts IS NULL)
  WHERE NOT s.deleted`;

const VALUES: Readonly<Record<Absence | 'null', (column: string) => string>> = {
  null: (column) => `s.${column}`,
  'unchanged; null for a new member': (column) =>
    `CASE WHEN s.says_${column} THEN s.${column} ELSE t.${column} END`,
  'the time of the import': (column) => `COALESCE(s.${column}, t.${column}, now())`,
  'the time of the import that changes it': (column) => `COALESCE(s.${column}, now())`,
};

/** Derives the rest of a record type from its declaration. */
export function recordType(declared: Declared) {
  const { name, fields, key = ['id'], copies, sides } = declared;
  const all = columnsOf(fields).filter(([column]) => column !== 'deleted');
  const fieldOf = Object.fromEntries(all);
  const references = all.flatMap(([column, { refersTo }]) => (refersTo ? [{ column, ...refersTo }] : []));
  const version = 'id' in fields ? ['id'] : key;
  const identity = Object.keys(fields).filter((field) => version.includes(field));
  const id = identity.join(', ');
  const { ended } = declared.removal ?? {};
  const besides: Values = { ...copies?.columns, ...declared.besides };
  const values: Record<string, string> = {};
  for (const column of declared.columns ?? Object.keys(fieldOf))
    values[column] = VALUES[fieldOf[column]?.absent ?? 'null'](column);
  const compared: Record<string, string> = {};
  for (const column of Object.keys(besides)) compared[column] = `t.${column}`;
  const notes: Record<string, Note> = { ...declared.notes };
  for (const [column, { absent }] of all) {
    if (absent === 'the time of the import that changes it')
      compared[column] = `COALESCE(s.${column}, t.${column})`;
    if (absent === 'unchanged; null for a new member')
      notes[`says_${column}`] = (_, record) => Object.hasOwn(record, column);
  }
  const removal: Removal = {
    fields: Object.fromEntries(identity.map((field) => [field, fields[field]!])),
    rows: `SELECT ${columnList(key, 't')} FROM ${staged(name)} s JOIN ${name} t ON (${columnList(key, 't')}) = (${columnList(key, 's')})
  WHERE s.deleted ${ended === undefined ? '' : `AND t.${ended} IS NULL`}`,
    ...declared.removal,
  };
  return {
    ...declared,
    key,
    notes,
    values: { ...values, ...besides } as Values,
    /** Values that replace the written ones in the comparison with `t`, which detects changes. */
    compared: compared as Values,
    removal,
    joins: copies && `JOIN ${copies.from} o ON o.id = s.${copies.by} ${declared.joins ?? ''}`,
    identities: declared.identities ?? [identity],
    refersTo: references,
    references: [
      ...references.map(({ column, table }) => missing(name, column, table)),
      ...references.filter(({ alive }) => alive).map(({ column }) => erased(name, column)),
      ...(declared.references ?? []),
    ],
    rules: [
      twice(
        name,
        identity,
        `'${id}: line ' || d.first || ' already has this ${identity.length > 1 ? 'pair' : 'id'}'`,
      ),
      ...(declared.rules ?? []),
    ],
    /** SQL of the rows `s` to write for the staged records. */
    source: sides ?? `(SELECT * FROM ${staged(name)} WHERE NOT deleted) s`,
    rowsPerRecord: sides === undefined ? 1 : 2,
    /** Staging columns that form the key of a record's stored version. */
    version,
  };
}

/** PostgreSQL's error codes (appendix A) that conflicts with other transactions can cause. */
const LOST_RACE = /^(23503|23505|23P01|40001|40P01)$/;

/** Tells whether a conflict with another transaction can have caused the error, so that a retry may succeed. */
export const isLostRace = (error: unknown): boolean =>
  LOST_RACE.test(String((error as { code?: unknown }).code));

/** Returns the record type with the values for `--keep-profile`. */
export const keepingProfile = (type: RecordType): RecordType => ({
  ...type,
  values: { ...type.values, ...type.kept },
});

/** Condition on a staged row `s` and the stored row `t`: whether the write changes these columns. */
export function differs({ values, compared }: RecordType, only?: readonly string[]): string {
  const wanted = { ...values, ...compared };
  const columns = only ?? Object.keys(wanted);
  return `(${columns.map((column) => wanted[column]!).join(', ')}) IS DISTINCT FROM (${columnList(columns, 't')})`;
}

/**
 * Makes statements that lock existing rows in key order, and change them. {@link RecordType.referred} columns have a separate statement,
 * since a statement that can write them blocks inserts that reference the row. @param changesReferred whether any such column changes
 */
export function updateSql(type: RecordType, changesReferred = true): string[] {
  const { name, key, source, values, joins = '', referred = [] } = type;
  const others = Object.keys(values).filter((column) => !key.includes(column) && !referred.includes(column));
  const [stored, wanted] = [columnList(key, 't'), columnList(key, 's')];
  return [changesReferred ? referred : [], others]
    .filter(({ length }) => length > 0)
    .map(
      (columns) => `WITH changing AS MATERIALIZED (
  SELECT ${stored} FROM ${source} JOIN ${name} t ON (${stored}) = (${wanted}) WHERE ${differs(type, columns)}
  ORDER BY ${stored} FOR NO KEY UPDATE OF t
)
UPDATE ${name} t SET ${columns.map((column) => `${column} = ${values[column]!}`).join(', ')}
FROM ${source} ${joins} WHERE (${stored}) = (${wanted}) AND (${wanted}) IN (SELECT * FROM changing)`,
    );
}

/** Makes queries that lock rows in the order of their ids, before a feed writes them, so that feeds do not deadlock. */
export function lockSql(types: readonly RecordType[]): string[] {
  const changed = types.flatMap((type) => {
    const { name, source, referred } = type;
    if (!referred) return [];
    const changing = (columns?: readonly string[]) =>
      `SELECT t.id FROM ${source} JOIN ${name} t USING (id) WHERE ${differs(type, columns)}`;
    return [
      `${changing()} AND EXISTS (${changing(referred)}) ORDER BY t.id FOR NO KEY UPDATE OF t`,
      `${changing(referred)} ORDER BY t.id FOR UPDATE OF t`,
    ];
  });
  const ids = types.flatMap(({ name, sides, removal, refersTo }) => [
    ...refersTo.map(({ column, table }) => ({ table, sql: `SELECT ${column} FROM ${staged(name)}` })),
    // A line that deletes a connection by its id does not name the members.
    ...(sides ? [{ table: 'users', sql: `SELECT user_id FROM (${removal.rows}) r` }] : []),
  ]);
  const referred = [...Map.groupBy(ids, ({ table }) => table)].map(
    ([table, some]) =>
      // An array forces lookups by id, regardless of the estimated number of staged lines.
      `SELECT id FROM ${table} WHERE id = ANY (ARRAY(${some.map(({ sql }) => sql).join(' UNION ALL ')})) ORDER BY id FOR KEY SHARE`,
  );
  return [...changed, ...referred].map((lock) => `SELECT count(*) FROM (${lock}) locked`);
}

/** Makes the statement that inserts new rows. */
export const insertSql = (
  type: RecordType,
): string => `INSERT INTO ${type.name} (${Object.keys(type.values).join(', ')})
SELECT ${Object.values(type.values).join(', ')} FROM ${withPresent(type)} ${type.joins ?? ''}
WHERE t.${type.key[0]!} IS NULL ORDER BY ${columnList(type.key, 's')} ${type.joins ? 'FOR KEY SHARE OF o' : ''}`;

/** Joins the staged rows `s` with their stored rows `t`, if any. */
export const withPresent = ({ source, name, key }: RecordType): string =>
  `${source} LEFT JOIN ${name} t ON (${columnList(key, 't')}) = (${columnList(key, 's')})`;

/** SQL of the member and the id under which a staged record's version is stored; the member is 0 for types with an `id`. */
const versionKey = ({ version }: RecordType): string =>
  version.length > 1 ? columnList(version, 's') : `0, ${columnList(version, 's')}`;

/** Makes the statement that removes staged records whose stored version is not older, and counts them (`n`). */
export const dropStaleSql = (type: RecordType): string => `WITH wanted AS MATERIALIZED (
  SELECT * FROM (SELECT line, ${versionKey(type)}, version FROM ${staged(type.name)} s) s (line, user_id, id, version)
  WHERE version IS NOT NULL ORDER BY 2, 3
), known AS MATERIALIZED (
  SELECT w.line FROM wanted w CROSS JOIN LATERAL (
    SELECT v.version FROM record_versions v WHERE v.type = '${type.name}' AND v.user_id = w.user_id AND v.id = w.id FOR UPDATE
  ) v WHERE w.version <= v.version
), gone AS (
  DELETE FROM ${staged(type.name)} s WHERE s.line IN (SELECT line FROM known) RETURNING 1
) SELECT count(*) AS n FROM gone`;

/** Makes the statement that stores versions later than the stored ones, and counts the other versions (`n`). */
export const recordVersionsSql = (type: RecordType): string => `WITH recorded AS (
  INSERT INTO record_versions AS v (type, user_id, id, version)
  SELECT '${type.name}', ${versionKey(type)}, s.version FROM ${staged(type.name)} s WHERE s.version IS NOT NULL ORDER BY 2, 3
  ON CONFLICT (type, user_id, id) DO UPDATE SET version = EXCLUDED.version WHERE v.version < EXCLUDED.version
  RETURNING 1
) SELECT (SELECT count(version) FROM ${staged(type.name)}) - (SELECT count(*) FROM recorded) AS n`;
