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

/** Column → SQL over the staged record `s` and the row that is there, `t`. */
type Values = Readonly<Record<string, string>>;
/** Fills a column of the staging table, by the row and by the record as it was sent. */
type Note = (row: StagedRow, record: object) => boolean;

/** What is particular to one file of the folder, and to its table of the same name: all else follows from the fields. */
interface Declared {
  readonly name: string;
  readonly fields: Fields;
  /** Columns that identify a row; `id` if not given. */
  readonly key?: readonly string[];
  readonly check?: (row: StagedRow) => Fault | undefined;
  readonly notes?: Readonly<Record<string, Note>>;
  /** Queries for (line, code, reason) of staged records `s` that are wrong whatever other lines say of the same record, besides unknown references. */
  readonly references?: readonly string[];
  /** The same of those that other lines or records of the database rule out, besides lines that name the same record. */
  readonly rules?: readonly string[];
  /** Columns of the staging table, each of which identifies a record by itself; its key if not given. */
  readonly identities?: readonly (readonly string[])[];
  /** For records of two members, whoever of them asked: the two rows `s` that each makes, with every name that the values use. */
  readonly sides?: string;
  /** Of the table, if they differ from those of the record. */
  readonly columns?: readonly string[];
  /** What is written with a row that is new or changes, and is no change by itself. */
  readonly besides?: Values;
  /** Columns that stand in unique indexes, or what they hold is computed from them. */
  readonly referred?: readonly string[];
  /** What is copied from a row that it refers to, which the write joins. */
  readonly copies?: Copies;
  /** What else the write needs beside the record. */
  readonly joins?: string;
  /** Run before the write, and release unique values that other rows will take. */
  readonly release?: readonly string[];
  /** Values with `--keep-profile`, instead of the others. */
  readonly kept?: Values;
  /** What `"op": "delete"` does, and in some files `"deleted": true`, if not to delete the row of that key. */
  readonly removal?: Partial<Removal>;
}

interface Removal {
  /** The fields that identify a record; all others in the line are ignored. */
  readonly fields: Fields;
  readonly check?: (row: StagedRow) => Fault | undefined;
  readonly complete?: (row: StagedRow) => void;
  /** Query for the keys of the rows to delete. */
  readonly rows: string;
  /** For rows that are kept when they end, the column that says so. */
  readonly ended?: string;
  readonly ends?: Values;
  /** How rows go that do not go alone. */
  readonly remove?: typeof eraseMembers;
}

/** One file of the folder: its fields, the rules between records, and how the rows get into their table. */
export type RecordType = ReturnType<typeof recordType>;

/** Who brings the records, for the audit trail. */
export type Author = Parameters<typeof eraseMembers>[2];

/** Names the temporary table in which records of the type are staged. */
export const staged = (name: string) => `import_${name}`;

/** Temporary table of the members that this import brings. */
export const NEW_USERS = 'import_new_users';

/** Lists columns of a row. */
export const columnList = (columns: readonly string[], row: string) =>
  columns.map((column) => `${row}.${column}`).join(', ');

/** Quotes the code of a fault for SQL: only codes that exist compile. */
export const code = (name: FaultCode) => `'${name}'`;

/** A record that another line may contradict: where lines were settled, not one that deletes. */
const EXCLUSIVE = 'NOT (deleted AND counts IS TRUE)';

/** The same as an earlier line in these columns, or what is computed from them. @param reason SQL, in which that line is `d.first` */
export const twice = (name: string, same: readonly string[], reason: string) =>
  `SELECT s.line, ${code('duplicate')}, ${reason} FROM ${staged(name)} s
  JOIN (SELECT ${same.map((sql, i) => `${sql} AS same_${i}`).join(', ')}, min(line) AS first FROM ${staged(name)}
    WHERE ${EXCLUSIVE} GROUP BY ${same.map((_, i) => i + 1).join(', ')} HAVING count(*) > 1) d
    ON (${same.map((_, i) => `d.same_${i}`).join(', ')}) = (${same.join(', ')}) WHERE s.line > d.first AND ${EXCLUSIVE}`;

/** `column` names a row of `table` that is neither in the folder nor in the database. */
const missing = (name: string, column: string, table: string) =>
  `SELECT s.line, ${code('unknown_reference')}, '${column}: there is no such record in ${table}: ' || s.${column} FROM ${staged(name)} s
  WHERE NOT s.deleted AND s.${column} IS NOT NULL
    AND NOT EXISTS (SELECT FROM ${staged(table)} r WHERE r.id = s.${column} AND NOT r.deleted)
    AND NOT EXISTS (SELECT FROM ${table} r WHERE r.id = s.${column})`;

/** `column` names a member who was erased, or is by another line, an earlier one where lines were settled: nothing of them comes back. */
export const erased = (name: string, column: string) =>
  `SELECT s.line, ${code('member_erased')}, '${column}: the member ' || r.id || ' was erased' FROM ${staged(name)} s
  JOIN users r ON r.id = s.${column} WHERE NOT s.deleted AND r.erased_at IS NOT NULL
  UNION ALL SELECT s.line, ${code('member_erased')}, '${column}: line ' || r.line || ' deletes the member ' || r.id FROM ${staged(name)} s
  JOIN ${staged('users')} r ON r.id = s.${column} AND r.deleted AND (r.line < s.line OR s.counts IS NULL)
  WHERE NOT s.deleted`;

/** The SQL of a value, by what its absence means. */
const VALUES: Readonly<Record<Absence | 'null', (column: string) => string>> = {
  null: (column) => `s.${column}`,
  'as it was; null for a new member': (column) =>
    `CASE WHEN s.says_${column} THEN s.${column} ELSE t.${column} END`,
  'the time of the import': (column) => `COALESCE(s.${column}, t.${column}, now())`,
  'the time of the import that changes it': (column) => `COALESCE(s.${column}, now())`,
};

/** Derives whatever follows from the fields. */
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
    if (absent === 'as it was; null for a new member')
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
    /** What is compared with `t` instead of the value, to tell whether anything changes. */
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
        `'${id}: the same${identity.length > 1 ? ' pair' : ''} already stands in line ' || d.first`,
      ),
      ...(declared.rules ?? []),
    ],
    /** Rows of the table for the staged records: `s`. */
    source: sides ?? `(SELECT * FROM ${staged(name)} WHERE NOT deleted) s`,
    rowsPerRecord: sides === undefined ? 1 : 2,
    /** Columns of the staging table that identify a record permanently, and under which its version is stored. */
    version,
  };
}

/** PostgreSQL, appendix A: somebody else changed the same rows first, or what they refer to. */
const LOST_RACE = /^(23503|23505|23P01|40001|40P01)$/;

/** Tells whether somebody else changed the same rows first: in another transaction, the same may succeed. */
export const isLostRace = (error: unknown): boolean =>
  LOST_RACE.test(String((error as { code?: unknown }).code));

/** The type as it is written with `--keep-profile`. */
export const keepingProfile = (type: RecordType): RecordType => ({
  ...type,
  values: { ...type.values, ...type.kept },
});

/** Condition on a staged row `s` and the stored one, `t`: whether writing it changes anything, in these columns. */
export function differs({ values, compared }: RecordType, only?: readonly string[]): string {
  const wanted = { ...values, ...compared };
  const columns = only ?? Object.keys(wanted);
  return `(${columns.map((column) => wanted[column]!).join(', ')}) IS DISTINCT FROM (${columnList(columns, 't')})`;
}

/**
 * Changes existing rows, locked by key: {@link RecordType.referred} columns first, since a statement that could write one blocks whoever
 * refers to the row, as INSERT … ON CONFLICT DO UPDATE does. @param changesReferred whether any such column changes
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

/** Locks referenced rows, after members whose {@link RecordType.referred} columns change: by id, so that feeds never block each other. */
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
    // By the id of a connection alone, nobody is named.
    ...(sides ? [{ table: 'users', sql: `SELECT user_id FROM (${removal.rows}) r` }] : []),
  ]);
  const referred = [...Map.groupBy(ids, ({ table }) => table)].map(
    ([table, some]) =>
      // An array: its rows are looked up one by one, however many PostgreSQL takes the staged lines to be.
      `SELECT id FROM ${table} WHERE id = ANY (ARRAY(${some.map(({ sql }) => sql).join(' UNION ALL ')})) ORDER BY id FOR KEY SHARE`,
  );
  return [...changed, ...referred].map((lock) => `SELECT count(*) FROM (${lock}) locked`);
}

/** Writes the rows that are new. */
export const insertSql = (
  type: RecordType,
): string => `INSERT INTO ${type.name} (${Object.keys(type.values).join(', ')})
SELECT ${Object.values(type.values).join(', ')} FROM ${withPresent(type)} ${type.joins ?? ''}
WHERE t.${type.key[0]!} IS NULL ORDER BY ${columnList(type.key, 's')} ${type.joins ? 'FOR KEY SHARE OF o' : ''}`;

/** Staged rows `s` with the stored rows, `t`. */
export const withPresent = ({ source, name, key }: RecordType): string =>
  `${source} LEFT JOIN ${name} t ON (${columnList(key, 't')}) = (${columnList(key, 's')})`;

/** SQL of the member and the id under which the version of a staged record `s` is stored; 0 if it belongs to no member. */
const versionKey = ({ version }: RecordType): string =>
  version.length > 1 ? columnList(version, 's') : `0, ${columnList(version, 's')}`;

/** Removes records whose stored version is not older, and counts them (`n`). Locks the versions in order, looked up one by one. */
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

/** One conditional write: of two at the same moment, the later version wins, whichever comes first. `n`: how many lost. */
export const recordVersionsSql = (type: RecordType): string => `WITH recorded AS (
  INSERT INTO record_versions AS v (type, user_id, id, version)
  SELECT '${type.name}', ${versionKey(type)}, s.version FROM ${staged(type.name)} s WHERE s.version IS NOT NULL ORDER BY 2, 3
  ON CONFLICT (type, user_id, id) DO UPDATE SET version = EXCLUDED.version WHERE v.version < EXCLUDED.version
  RETURNING 1
) SELECT (SELECT count(version) FROM ${staged(type.name)}) - (SELECT count(*) FROM recorded) AS n`;
