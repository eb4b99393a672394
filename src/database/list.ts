import type { Reads } from './database.js';
import type { ValueSql } from '../model/json-text.js';

/** The order of a list. Nulls are last in both directions and ids break ties, so every row has exactly one position. */
interface Sort {
  readonly key: ValueSql;
  readonly type: 'timestamptz' | 'text' | 'numeric' | 'bigint';
  readonly descending?: boolean;
  readonly nullable?: boolean;
}

export interface CursorPosition {
  /** The side of the position whose rows to read; `from` and `until` include the position. */
  readonly side: 'after' | 'before' | 'from' | 'until';
  /** The row's sort key as text, with microseconds for a time; null if the row has no key. */
  readonly key: string | null;
  readonly id: number;
}

export interface ListQuery {
  readonly limit: number;
  readonly sort: string;
  readonly cursor?: string;
}

type FilterNames<Query> = Exclude<keyof Query, keyof ListQuery>;

/** Returns the filters that a query sets: its parameters except limit, sort and cursor. */
export function filtersOf(query: ListQuery): Readonly<Record<string, unknown>> {
  const isFilter = (name: string) => !['limit', 'sort', 'cursor'].includes(name);
  return Object.fromEntries(
    Object.entries(query).filter(([name, value]) => isFilter(name) && value !== undefined),
  );
}

/** A filter's condition: SQL with a placeholder, or SQL per value (null: no restriction), or a default with its own condition. */
export type Filter<Value> =
  | ((placeholder: string) => string)
  | (Value extends string | boolean ? Readonly<Record<`${Value}`, string | null>> : never)
  | UsualFilter;

interface UsualFilter {
  /** The default, in the form of a query parameter. */
  readonly usual: string;
  readonly sql: string;
  readonly otherwise: (placeholder: string) => string;
}

/** A sort in either direction. If its key cannot be null, PostgreSQL can read the rows in the order of an index. */
export type SortOf<Query> = Pick<Sort, 'key' | 'type'> & {
  readonly nullable?: boolean | ((query: Query) => boolean);
};

type SortKey<Name> = Name extends `-${infer Key}` ? Key : Name;

/** The definition of a list. In its SQL, `$1` is the member's id. */
export interface ListDeclaration<Query extends ListQuery> {
  /** The list's unique name, a part of its prepared statements' names. */
  readonly name: string;
  /** SQL of one item's JSON text, from the tables of `rows` and `shown`. */
  readonly item: string;
  /** Tables that contain the list's rows, as the start of a FROM. */
  readonly rows: string;
  /** Condition on the row's owner, or `true`. With a condition on the id, PostgreSQL can find a row by an index. */
  readonly own: string;
  /** Condition on the rows that the member may see. */
  readonly access: string;
  /** More tables for items, as the rest of a FROM; they must keep one row per item. */
  readonly shown?: string;
  /** More tables for filters and sorts, as the rest of a FROM; joined only if its alias is used. */
  readonly joined?: { readonly alias: string; readonly sql: string };
  readonly id: string;
  readonly sorts: Readonly<Record<SortKey<Query['sort']> & string, SortOf<Query>>>;
  readonly filters: { readonly [Name in FilterNames<Query>]-?: Filter<NonNullable<Query[Name]>> };
  /** SQL of a stored total, for statements without `joined` and without {@link Conditions.given}. Otherwise, the rows are counted. */
  readonly total?: string;
  readonly few?: boolean;
}

/** The only result row of a page query; “first” and “last” refer to the direction of reading. */
interface PageRow {
  /** JSON texts of the items in the list's order, separated by commas; UTF-8 bytes from a pipelined read; null if there are none. */
  items: Buffer | string | null;
  /** Number of rows found: one more than the page size if more rows follow. */
  found: number;
  /** Key and id of the page's first row. */
  near_key: string | null;
  near_id: number | null;
  /** Key and id of the page's last row if the page is full. */
  far_key: string | null;
  far_id: number | null;
  /** Null if more than {@link FEW} rows satisfy {@link Conditions.always}, so the page was not read. */
  total: number | null;
  /** Whether the list has rows before this page, in the direction of reading. */
  behind: boolean;
}

interface PageStatement {
  /** Name of the prepared statement; undefined if sessions must not keep the statement. */
  readonly name: string | undefined;
  readonly text: string;
  /** The statement without the limit of {@link FEW} rows; undefined if `text` has no such limit. */
  readonly long: string | undefined;
}

/** Maximum number of rows that a pipelined read scans to count them, since it must be short. */
const FEW = 200;

/** Maximum prepared statements with filters per list: planning is slower than running, but each prepared statement needs memory. */
const MAX_FILTERED = 32;

/** The parts of a request's WHERE: SQL that is constant in the code, and the request's values. */
interface Conditions {
  /** Access, then conditions of filters with their usual value. */
  readonly always: readonly string[];
  readonly given: readonly string[];
  readonly values: readonly unknown[];
}

export class List<Query extends ListQuery> {
  /** Built statements by sort, side and conditions; with filters, at most {@link MAX_FILTERED}. */
  readonly #statements = new Map<string, PageStatement>();
  #filtered = 0;

  constructor(private readonly declaration: ListDeclaration<Query>) {}

  /** Reads one page. @param position where the page begins or ends; undefined for the first page */
  async page(
    database: Reads,
    userId: number,
    query: Query,
    position: CursorPosition | undefined,
  ): Promise<PageRow & { total: number }> {
    const conditions = this.#conditions(userId, query);
    const { name, text, long } = this.#statement(query, conditions, position);
    const values = [...conditions.values, query.limit];
    if (position) values.push(position.id);
    if (position && position.key !== null) values.push(position.key);
    const [row] = await (name === undefined
      ? database.rows<PageRow>(text, values)
      : database.read<PageRow>({ name, text, bytes: 'items' }, values));
    if (isWhole(row!)) return row;
    const [whole] = await database.long<PageRow & { total: number }>({ text: long! }, values);
    return whole!;
  }

  /** Reads the JSON texts of the given items, except items that the member may not see. */
  async items(database: Reads, userId: number, ids: readonly number[]): Promise<Map<number, string>> {
    const { name, item, rows, shown = '', access, id } = this.declaration;
    const text = `SELECT ${id} AS id, ${item} AS json FROM ${rows} ${shown} WHERE ${access} AND ${id} = ANY ($2::bigint[])`;
    const found = await database.long<{ id: number; json: string }>({ name: `items-${name}`, text }, [
      userId,
      ids,
    ]);
    return new Map(found.map((row) => [row.id, row.json]));
  }

  #conditions(userId: number, query: Query): Conditions {
    const always = [this.declaration.access];
    const given: string[] = [];
    const values: unknown[] = [userId];
    const compare = (value: unknown, sql: (placeholder: string) => string) =>
      given.push(`(${sql(`$${values.push(value)}`)})`);
    for (const [name, filter] of Object.entries(this.declaration.filters) as [keyof Query, AnyFilter][]) {
      const value = query[name];
      if (value === undefined) continue;
      if (typeof filter === 'function') compare(value, filter);
      else if (hasUsual(filter) && filter.usual === String(value)) always.push(filter.sql);
      else if (hasUsual(filter)) compare(value, filter.otherwise);
      else if (filter[String(value)]) given.push(`(${filter[String(value)]})`);
    }
    return { always, given, values };
  }

  #statement(query: Query, conditions: Conditions, position: CursorPosition | undefined): PageStatement {
    const from = position ? `:${position.side}${position.key === null ? ':null' : ''}` : '';
    const key = [query.sort + from, ...conditions.always.slice(1), ...conditions.given].join();
    const known = this.#statements.get(key);
    if (known) return known;
    const isKept = conditions.given.length === 0 || this.#filtered++ < MAX_FILTERED;
    const name = isKept ? `list-${this.declaration.name}:${this.#statements.size}` : undefined;
    const statement = {
      name,
      ...pageStatement(this.declaration, this.#sort(query), conditions, position),
    };
    if (isKept) this.#statements.set(key, statement);
    return statement;
  }

  #sort(query: Query): Sort {
    const descending = query.sort.startsWith('-');
    const key = (descending ? query.sort.slice(1) : query.sort) as keyof typeof this.declaration.sorts;
    const { nullable = false, ...sort } = this.declaration.sorts[key];
    return { ...sort, descending, nullable: typeof nullable === 'function' ? nullable(query) : nullable };
  }
}

type AnyFilter = Filter<string> | UsualFilter;

const isWhole = (row: PageRow): row is PageRow & { total: number } => row.total !== null;

function hasUsual(filter: AnyFilter): filter is UsualFilter {
  return typeof filter === 'object' && typeof filter.otherwise === 'function';
}

/** Builds the statement of one page; see {@link PageRow}. Values: the conditions' values, the limit, the position's id and key. */
function pageStatement<Query extends ListQuery>(
  declaration: ListDeclaration<Query>,
  sort: Sort,
  { always, given, values }: Conditions,
  position: CursorPosition | undefined,
): Omit<PageStatement, 'name'> {
  const { rows, shown = '', own, id, item, few = false } = declaration;
  const where = [...always, ...given].join(' AND ');
  const joined =
    declaration.joined && new RegExp(`\\b${declaration.joined.alias}\\.`).test(`${where} ${sort.key}`);
  const from = `${rows} ${joined ? declaration.joined.sql : ''}`;
  const total = given.length === 0 && !joined ? declaration.total : undefined;
  const limitAt = `$${values.length + 1}::int`;
  const idAt = `$${values.length + 2}`;
  const keyAt = position && position.key !== null ? `$${values.length + 3}::${sort.type}` : undefined;
  const backwards = position?.side === 'before' || position?.side === 'until';
  const direction = (sort.descending ?? false) !== backwards ? 'DESC' : 'ASC';
  const nulls = sort.nullable ? ` NULLS ${backwards ? 'FIRST' : 'LAST'}` : '';
  const order = (key: string, tie: string) =>
    `ORDER BY ${key} ${direction}${nulls}, ${tie} ${backwards ? 'DESC' : 'ASC'} LIMIT ${limitAt} + 1`;
  // Cursors need only the page's first and last row.
  const keyOf = (row: string) => {
    const key = `max(key) FILTER (WHERE place = ${row})`;
    return sort.type === 'timestamptz'
      ? `to_char(${key} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
      : `(${key})::text`;
  };
  const page = (placed: string) => `(
  SELECT count(*) AS found, string_agg(item, ',' ORDER BY place${backwards ? ' DESC' : ''}) FILTER (WHERE place <= ${limitAt}) AS items,
    ${keyOf('1')} AS near_key, max(id) FILTER (WHERE place = 1) AS near_id,
    ${keyOf(limitAt)} AS far_key, max(id) FILTER (WHERE place = ${limitAt}) AS far_id
  FROM (${placed}) placed
) page`;

  if (total === undefined && !few) {
    const at = (side: CursorPosition['side']) => onSide({ ...sort, key: 'key' }, 'id', side, keyAt, idAt);
    const beyond = position ? `WHERE ${at(position.side)}` : '';
    const behind = position ? `EXISTS (SELECT FROM matching WHERE ${at(OPPOSITE[position.side])})` : 'false';
    const counted = '(SELECT count(*) FROM matching)';
    const isFew = '(SELECT is_few FROM few)';
    // OFFSET 0 forces lookups by id, regardless of PostgreSQL's row estimates.
    const of = (before: string, condition: string, total: string) => `WITH ${before}matching AS MATERIALIZED (
  SELECT ${sort.key} AS key, ${id} AS id FROM ${from} WHERE ${where}${condition}
)
SELECT ${total} AS total, ${behind} AS behind, page.*
FROM ${page(`
    SELECT found.*, shown.item FROM (
      SELECT *, row_number() OVER () AS place FROM (SELECT * FROM matching ${beyond} ${order('key', 'id')}) rows
    ) found CROSS JOIN LATERAL (SELECT ${item} AS item FROM ${rows} ${shown} WHERE ${own} AND ${id} = found.id OFFSET 0) shown
  `)}`;
    const before = `few AS MATERIALIZED (
  SELECT NOT EXISTS (SELECT FROM ${rows} WHERE ${always.join(' AND ')} OFFSET ${FEW}) AS is_few
), `;
    return {
      text: of(before, ` AND ${isFew}`, `CASE WHEN ${isFew} THEN ${counted} END`),
      long: of('', '', counted),
    };
  }
  const at = (side: CursorPosition['side']) => onSide(sort, id, side, keyAt, idAt);
  const beyond = position ? `AND ${at(position.side)}` : '';
  // Ordered, so that the index scan starts at the position.
  const behind = position
    ? `COALESCE((SELECT true FROM ${from} WHERE ${where} AND ${at(OPPOSITE[position.side])}
  ORDER BY ${sort.key} ${direction} LIMIT 1), false)`
    : 'false';
  const text = `SELECT (${total ?? `SELECT count(*) FROM ${from} WHERE ${where}`}) AS total, ${behind} AS behind, page.*
FROM ${page(`
    SELECT *, row_number() OVER () AS place FROM (
      SELECT ${item} AS item, ${sort.key} AS key, ${id} AS id
      FROM ${from} ${shown} WHERE ${where} ${beyond} ${order(sort.key, id)}
    ) rows
  `)}`;
  return { text, long: undefined };
}

const OPPOSITE = { after: 'until', until: 'after', before: 'from', from: 'before' } as const;

/** Condition for the rows on one side of a position, for an index on (…, key, id). @param keyAt the key's placeholder; undefined for null */
function onSide(
  sort: Omit<Sort, 'key'> & { readonly key: string },
  id: string,
  side: CursorPosition['side'],
  keyAt: string | undefined,
  idAt: string,
): string {
  const after = side === 'after' || side === 'from';
  const tie = `${id} ${after ? '>' : '<'}${side === 'from' || side === 'until' ? '=' : ''} ${idAt}`;
  if (keyAt === undefined) {
    // Null keys are last.
    return after ? `(${sort.key} IS NULL AND ${tie})` : `(${sort.key} IS NOT NULL OR ${tie})`;
  }
  const further = after === (sort.descending ?? false) ? '<' : '>';
  const strictly = `(${sort.key} ${further}= ${keyAt} AND (${sort.key} ${further} ${keyAt} OR ${tie}))`;
  return sort.nullable && after ? `(${strictly} OR ${sort.key} IS NULL)` : strictly;
}
