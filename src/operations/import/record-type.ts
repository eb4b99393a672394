import type { EntityManager } from 'typeorm';
import type { NewAuthEvent } from '../../audit/audit.js';
import { columnsOf, type FaultCode, type Fields, type LineFault } from './fields.js';

type Row = Record<string, unknown>;
/** Column → SQL over the staged record `s` and the row that is there, `t`. */
type Values = Readonly<Record<string, string>>;
/** Columns that {@link Declared.notes} fill. */
type Notes = Readonly<Record<string, (row: Row, record: Row) => boolean>>;

/** What is particular to one file of the folder, and to its table of the same name: all else follows from the fields. */
interface Declared {
  readonly name: string;
  readonly fields: Fields;
  /** Columns that identify a row; `id` if not given. */
  readonly key?: readonly string[];
  /** What is wrong between the fields of one record. */
  readonly check?: (row: Row) => LineFault | undefined;
  /** Further columns of the staging table. */
  readonly notes?: Notes;
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
  /** Values that are not as the record has them. */
  readonly values?: Values;
  /** What is written with a row that is new or changes, and is no change by itself. */
  readonly besides?: Values;
  /** What is compared with `t` instead of the value, to tell whether anything changes. */
  readonly compared?: Values;
  /** Columns that stand in unique indexes, or what they hold is computed from them. */
  readonly referred?: readonly string[];
  /** What is copied from a row that it refers to, which the write joins. */
  readonly copies?: Copies;
  /** What else the write needs beside the record. */
  readonly joins?: string;
  /** Runs before the write, and releases unique values that other rows will take. */
  readonly release?: string;
  /** Values with `--keep-profile`, instead of the others. */
  readonly kept?: Values;
  /** What `"op": "delete"` does, and in some files `"deleted": true`, if not to delete the row of that key. */
  readonly removal?: Partial<Removal>;
}

/** Columns that rows copy from another, so that a list needs one table. */
export interface Copies {
  readonly from: 'users' | 'events';
  /** The column that has the id of that row. */
  readonly by: string;
  /** Column → SQL over that row, `o`. */
  readonly columns: Values;
}

interface Removal {
  /** The fields that identify a record; all others in the line are ignored. */
  readonly fields: Fields;
  readonly check?: (row: Row) => LineFault | undefined;
  readonly complete?: (row: Row) => void;
  /** Query for the keys of the rows to delete. */
  readonly rows: string;
  /** For rows that are kept when they end, the column that says so. */
  readonly ended?: string;
  /** What ending them writes. */
  readonly ends?: Values;
  /** How rows go that do not go alone. @param ids of the rows, in order */
  readonly remove?: (manager: EntityManager, ids: number[], by: Author) => Promise<unknown>;
}

/** One file of the folder: its fields, the rules between records, and how the rows get into their table. */
export type RecordType = ReturnType<typeof recordType>;

/** Who brings the records, for the audit trail. */
export interface Author {
  readonly actor: NewAuthEvent['actor'];
  readonly keyId?: string;
}

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
export const EXCLUSIVE = 'NOT (deleted AND counts IS TRUE)';

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
const VALUES = {
  null: (column: string) => `s.${column}`,
  'as it was': (column: string) => `CASE WHEN s.says_${column} THEN s.${column} ELSE t.${column} END`,
  'as it was, at first now': (column: string) => `COALESCE(s.${column}, t.${column}, now())`,
};

/** Derives whatever follows from the fields. */
export function recordType(declared: Declared) {
  const { name, fields, key = ['id'], copies, sides } = declared;
  const besides = { ...copies?.columns, ...declared.besides };
  const all = columnsOf(fields).filter(([column]) => column !== 'deleted');
  const fieldOf = Object.fromEntries(all);
  const { columns = Object.keys(fieldOf) } = declared;
  const references = all.flatMap(([column, { refersTo }]) => (refersTo ? [{ column, ...refersTo }] : []));
  const version = 'id' in fields ? ['id'] : key;
  const identity = Object.keys(fields).filter((field) => version.includes(field));
  const id = identity.join(', ');
  const { ended } = declared.removal ?? {};
  const notes: Notes = {
    ...declared.notes,
    ...Object.fromEntries(
      all
        .filter(([, { absentIs }]) => absentIs === 'as it was')
        .map(([column]) => [`says_${column}`, (_: Row, record: Row) => Object.hasOwn(record, column)]),
    ),
  };
  const values: Values = {
    ...Object.fromEntries(
      columns.map((column) => [column, VALUES[fieldOf[column]?.absentIs ?? 'null'](column)]),
    ),
    ...declared.values,
    ...besides,
  };
  const compared: Values = {
    ...Object.fromEntries(Object.keys(besides).map((column) => [column, `t.${column}`])),
    ...declared.compared,
  };
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
    values,
    compared,
    removal,
    joins: copies && `JOIN ${copies.from} o ON o.id = s.${copies.by} ${declared.joins ?? ''}`,
    identities: declared.identities ?? [identity],
    /** Columns with ids of records of other types. */
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
