import type { Columns } from '../../model/column.js';
import {
  declarationOf,
  tableNameOf,
  type AnyRow,
  type ExportedRows,
  type MemberTableDeclaration,
} from '../../model/declarations.js';
import { ENTITIES } from './tables.js';

interface MemberColumn {
  readonly name: string;
  readonly type: string;
  readonly isKey: boolean;
  readonly default: string;
  /** The entity that this column references. */
  readonly reference: { readonly to: object; readonly cascades: boolean } | undefined;
}

export interface MemberTable extends Required<Omit<MemberTableDeclaration<AnyRow>, 'table' | 'only'>> {
  readonly entity: object;
  readonly name: string;
  readonly only?: string;
  readonly columns: readonly MemberColumn[];
}

/** All tables with `@OfMember`: referencing tables before referenced tables; tables without references (such as logs) last. */
export const MEMBER_TABLES: readonly MemberTable[] = referringFirst(ENTITIES.flatMap(tableOf));

function tableOf(entity: object): MemberTable[] {
  const declaration = declarationOf(entity);
  if (!declaration) return [];
  const { table, owner = ['user_id'], erase = 'delete', secrets = [], ...rest } = declaration;
  const { columns = {} } = entity as { columns?: Columns };
  return [
    {
      ...rest,
      owner,
      erase,
      secrets,
      entity,
      name: table ?? tableNameOf(entity),
      columns: Object.entries(columns).map(([name, { options, reference }]) => ({
        name,
        type: String(options.type),
        isKey: options.primary === true,
        default: typeof options.default === 'function' ? (options.default as () => string)() : 'NULL',
        reference: reference && { to: reference.to(), cascades: reference.onDelete === 'CASCADE' },
      })),
    },
  ];
}

function referringFirst(tables: readonly MemberTable[]): MemberTable[] {
  const ordered: MemberTable[] = [];
  const visit = (table: MemberTable): void => {
    if (ordered.includes(table)) return;
    for (const other of tables)
      if (other !== table && other.columns.some(({ reference }) => reference?.to === table.entity))
        visit(other);
    ordered.push(table);
  };
  for (const table of tables) visit(table);
  // Logs have no references, and come last: triggers may write to them during erasure.
  const refers = ({ columns }: MemberTable) => columns.some(({ reference }) => reference);
  return [...ordered.filter(refers), ...ordered.filter((table) => !refers(table))];
}

/** Returns the table with `@OfMember` that the owner column references; undefined for `users`. */
function throughOf(table: MemberTable, owner: string): { to: MemberTable; cascades: boolean } | undefined {
  const { reference } = table.columns.find(({ name }) => name === owner) ?? {};
  const to = MEMBER_TABLES.find(({ entity }) => entity === reference?.to);
  return reference && to && to.name !== 'users' ? { to, cascades: reference.cascades } : undefined;
}

/** Returns the owner columns that contain members' ids; the others reference another table with `@OfMember`. */
export const memberColumnsOf = (table: MemberTable) =>
  table.owner.filter((column) => !throughOf(table, column));

/** SQL: whether a row `alias` belongs to one of the members. @param isOne SQL: whether a column contains one of their ids */
export function areTheirs(table: MemberTable, alias: string, isOne: (column: string) => string): string {
  const ways = table.owner.map((owner) => {
    const to = throughOf(table, owner)?.to;
    return to
      ? // With an array, PostgreSQL can use an index; with a subquery next to OR, it cannot.
        `${alias}.${owner} = ANY (ARRAY(SELECT r.id FROM ${to.name} r WHERE ${areTheirs(to, 'r', isOne)}))`
      : isOne(`${alias}.${owner}`);
  });
  return [...(table.only === undefined ? [] : [table.only]), `(${ways.join(' OR ')})`].join(' AND ');
}

export const ERASED = 'SELECT id FROM users WHERE erased_at IS NOT NULL';

/** Deletes or clears the rows of members ($1, an array) in a table. */
export interface Erasure {
  readonly table: string;
  readonly statement: string;
  /** Finds rows with remaining data of erased members. */
  readonly left: string;
}

const clearing = (columns: readonly string[]) => columns.map((column) => `${column} = DEFAULT`).join(', ');

const users = MEMBER_TABLES.find(({ name }) => name === 'users')!;
/** SQL: assignments that clear personal columns of a row in `users`; an erasure also replaces the username. */
export const CLEARED_OF_USERS = clearing((users.erase as { clear: readonly string[] }).clear);

/** Erasures of all tables except `users` and kept tables, referencing tables first. Rows that a foreign key deletes need none. */
export const ERASURES: readonly Erasure[] = MEMBER_TABLES.flatMap((table) => {
  const { name, erase, owner } = table;
  if (table === users || (erase !== 'delete' && 'keep' in erase)) return [];
  if (erase === 'delete' && owner.every((column) => throughOf(table, column)?.cascades)) return [];
  const theirs = areTheirs(table, 't', (column) => `${column} = ANY ($1::bigint[])`);
  const left = `SELECT FROM ${name} t WHERE ${areTheirs(table, 't', (column) => `${column} IN (${ERASED})`)}`;
  if (erase === 'delete') return [{ table: name, statement: `DELETE FROM ${name} t WHERE ${theirs}`, left }];
  const defaults = erase.clear.map((column) => table.columns.find((other) => other.name === column)!.default);
  return [
    {
      table: name,
      statement: `UPDATE ${name} t SET ${clearing(erase.clear)} WHERE ${theirs}`,
      left: `${left} AND (${erase.clear.map((column) => `t.${column}`).join(', ')}) IS DISTINCT FROM (${defaults.join(', ')})`,
    },
  ];
});

function shownAs({ name, type }: MemberColumn, called: string): string {
  const forms: Record<string, string> = {
    timestamptz: `api_time(t.${name})`,
    inet: `host(t.${name})`,
    date: `to_char(t.${name}, 'YYYY-MM-DD')`,
    bytea: `encode(t.${name}, 'base64')`,
  };
  return `${forms[type] ?? `t.${name}`} AS ${called}`;
}

/** Rows of a member ($1), in the order of a unique key. */
export interface MemberRows {
  readonly name: string;
  /** SQL of an exported row; `from` ends with a condition, so `AND` can follow. */
  readonly item: string;
  readonly from: string;
  readonly key: readonly (readonly [column: string, type: string])[];
  readonly descending?: boolean;
}

/** Parts of the data export, each with the rows of one table. */
export const EXPORTED_ROWS: readonly MemberRows[] = MEMBER_TABLES.flatMap((table) =>
  'as' in table.export ? [rowsOf(table, table.export)] : [],
);

function rowsOf(table: MemberTable, part: ExportedRows<AnyRow>): MemberRows {
  const { as, without = [], called = {}, also, where, newestBy } = part;
  const members = memberColumnsOf(table);
  const left = new Set([...members, ...table.secrets, ...without]);
  const shown = table.columns.filter(({ name }) => !left.has(name));
  const isKey = (column: MemberColumn) =>
    newestBy ? newestBy.includes(column.name) : column.isKey && !members.includes(column.name);
  return {
    name: as,
    item: [
      ...shown.map((column) => shownAs(column, called[column.name] ?? column.name)),
      ...(also ? [also] : []),
    ].join(', '),
    from: `${table.name} t WHERE ${areTheirs(table, 't', (column) => `${column} = $1`)}${where ? ` AND ${where}` : ''}`,
    key: table.columns.filter(isKey).map(({ name, type }) => [`t.${name}`, type] as const),
    descending: newestBy !== undefined,
  };
}
