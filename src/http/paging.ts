import { createHmac, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import type { Database } from '../database/database.js';
import { JsonResponse } from './output/json-response.js';
import { Problem } from './output/problems.js';
import { Cursor, WholeNumber } from './input/query.js';

/** What every list takes. */
export class PageQuery {
  @WholeNumber(1, 100, 'How many items at most')
  limit = 20;

  @Cursor()
  cursor?: string;
}

/**
 * How one sort orders its rows. Nulls stand last in both directions, and ties are broken by ascending id: so
 * has every row one place, whatever happens to the others.
 */
export interface Sort {
  /** SQL of the value. */
  readonly key: string;
  /** SQL type of the value, for the cursor's text to be cast to. */
  readonly type: 'timestamptz' | 'text' | 'numeric' | 'bigint';
  readonly descending?: boolean;
  readonly nullable?: boolean;
}

/** A place in a list: at a row that was there, whose key and id it keeps. */
interface Place {
  /** Which rows are meant: after or before the place; `from` and `until` include it. */
  readonly side: 'after' | 'before' | 'from' | 'until';
  /** The key as PostgreSQL wrote it, to the microsecond. */
  readonly key: string | null;
  readonly id: number;
}

/** What makes a list this list: a cursor is good for no other. */
export interface ListIdentity {
  readonly userId: number;
  readonly path: string;
  /** As in the query, such as `-starts_at`. */
  readonly sort: string;
  /** The validated filters. */
  readonly filters: Readonly<Record<string, unknown>>;
  /** A list that takes neither limit nor sort. */
  readonly fixed?: boolean;
}

/** The filters of a validated query: what is left of it without limit, cursor and sort. */
export function filtersOf(query: PageQuery & { sort: string }): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).filter(
      ([name, value]) => !['limit', 'cursor', 'sort'].includes(name) && value !== undefined,
    ),
  );
}

/**
 * What a list's statement returns, made by {@link pageStatement}: one row. The rows of the page are counted in the
 * direction of reading.
 */
export interface PageRow extends Record<string, unknown> {
  /** JSON texts of the items in the list's order, with commas between them; null without any. */
  items: string | null;
  /** How many rows were found: one more than the page holds where there are more. */
  found: number;
  /** Key and id of the page's first row, */
  near_key: string | null;
  near_id: number | null;
  /** and of its last one where the page is full. */
  far_key: string | null;
  far_id: number | null;
  total: number;
  /** Whether a row stands behind the place where reading began. */
  behind: boolean;
}

const MAC_BYTES = 16;

/** Keyset paging with opaque, signed cursors (contract §7). */
@Injectable()
export class Paging {
  readonly #keys: readonly KeyObject[];
  readonly #publicUrl: string;

  constructor(@Inject(CONFIG) config: Config) {
    this.#keys = config.secrets.derive('cursor');
    this.#publicUrl = config.publicUrl;
  }

  /** @throws Problem invalid_cursor where the cursor is not of this list, or not ours */
  place(list: ListIdentity, cursor: string | undefined): Place | undefined {
    if (cursor === undefined) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    const canonical = bytes.toString('base64url') === cursor;
    const payload = bytes.subarray(MAC_BYTES);
    const mac = bytes.subarray(0, MAC_BYTES);
    const genuine =
      canonical &&
      mac.length === MAC_BYTES &&
      this.#keys.some((key) => timingSafeEqual(macOf(key, list, payload), mac));
    if (!genuine) {
      throw new Problem('invalid_cursor', {
        errors: [{ parameter: 'cursor', code: 'invalid_cursor', detail: 'cursor is not one of this list.' }],
      });
    }
    const [side, key, id] = JSON.parse(payload.toString('utf8')) as [Place['side'], string | null, number];
    return { side, key, id };
  }

  /** The list as it is answered: `data`, `pagination`, and the headers Link and X-Total-Count. */
  answer(list: ListIdentity, place: Place | undefined, limit: number, page: PageRow): JsonResponse {
    const { items, found, total, behind, near_key, near_id, far_key, far_id } = page;
    const forwards = place === undefined || place.side === 'after' || place.side === 'from';
    const beyond = found > limit;
    const onward = beyond
      ? this.#cursor(list, { side: forwards ? 'after' : 'before', key: far_key, id: far_id! })
      : null;
    let back: string | null = null;
    if (behind) {
      // An empty page has no row to stand on: the way back starts at the place that led here, included.
      back =
        near_id === null
          ? this.#cursor(list, { ...place!, side: forwards ? 'until' : 'from' })
          : this.#cursor(list, { side: forwards ? 'before' : 'after', key: near_key, id: near_id });
    }
    const [next, previous] = forwards ? [onward, back] : [back, onward];
    const pagination = {
      limit,
      count: Math.min(found, limit),
      total,
      has_more: next !== null,
      next_cursor: next,
      prev_cursor: previous,
      sort: list.sort,
    };
    const query = queryText(list, limit);
    const link = (rel: string, cursor?: string) =>
      `<${this.#publicUrl}${list.path}?${query}${cursor === undefined ? '' : `&cursor=${cursor}`}>; rel="${rel}"`;
    const links = [link('first')];
    if (previous !== null) links.push(link('prev', previous));
    if (next !== null) links.push(link('next', next));
    // Encoded apart: joined as text, the items would be copied once more.
    const json = Buffer.concat([
      Buffer.from('{"data":['),
      Buffer.from(items ?? ''),
      Buffer.from(`],"pagination":${JSON.stringify(pagination)}}`),
    ]);
    return new JsonResponse(json, {
      Link: links.join(', '),
      'X-Total-Count': String(total),
    });
  }

  #cursor(list: ListIdentity, place: Place): string {
    const payload = Buffer.from(JSON.stringify([place.side, place.key, place.id]));
    return Buffer.concat([macOf(this.#keys[0]!, list, payload), payload]).toString('base64url');
  }
}

function macOf(key: KeyObject, list: ListIdentity, payload: Buffer): Buffer {
  const identity = JSON.stringify([list.userId, list.path, list.sort, list.filters]);
  return createHmac('sha256', key)
    .update(identity)
    .update('\0')
    .update(payload)
    .digest()
    .subarray(0, MAC_BYTES);
}

function queryText(list: ListIdentity, limit: number): string {
  const query = new URLSearchParams(list.fixed ? {} : { limit: String(limit), sort: list.sort });
  for (const [name, value] of Object.entries(list.filters)) query.set(name, String(value));
  return query.toString();
}

/** What a list is made of; every text is SQL of ours, values stand in `values`. */
export interface PageParts {
  /** For a prepared statement; only where the text never varies. */
  readonly name?: string;
  /** The rows of the list: those of the member. */
  readonly rows: string;
  /** What else the item shows, as the rest of a FROM: one row for each. */
  readonly shown?: string;
  /** Whose they are; enough, with the id, to find one of them by an index. */
  readonly own: string;
  /** What else the filters or the sort look at, as the rest of a FROM. */
  readonly joined?: string;
  /** Access first, then the filters. */
  readonly where: string;
  /** SQL of the id that breaks ties. */
  readonly id: string;
  readonly sort: Sort;
  /** SQL of the JSON text of one item, over `rows` and `shown`; PostgreSQL makes it for the rows of the page alone. */
  readonly item: string;
  /**
   * SQL of the total, for a list that one index gives in its order: then no more is read than the page. Without it all rows
   * that match are gone through once, for the total and the page alike.
   */
  readonly total?: string;
  /** Whether {@link PageParts.rows} are few for everybody: a catalogue, not what members gather. */
  readonly few?: boolean;
  readonly values: readonly unknown[];
}

/** The statement of one page. */
export interface PageStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  /** Whether it takes as long as the member has rows. */
  readonly long: boolean;
}

export async function readPage(
  database: Database,
  { name, text, values, long }: PageStatement,
): Promise<PageRow> {
  const [row] = await (long
    ? database.long<PageRow>({ name, text }, values)
    : name === undefined
      ? database.rows<PageRow>(text, values)
      : database.read<PageRow>({ name, text }, values));
  return row!;
}

/** One statement for one page; see {@link PageRow}. */
export function pageStatement(parts: PageParts, place: Place | undefined, limit: number): PageStatement {
  const { sort, id, rows, shown = '', own, joined = '', where, total, few = false } = parts;
  const from = `${rows} ${joined}`;
  const values = [...parts.values, limit];
  const limitAt = `$${values.length}::int`;
  const sides = place && { here: place.side, there: OPPOSITE[place.side] };
  let keyAt: string | undefined;
  let idAt = '';
  if (place) {
    values.push(place.id);
    idAt = `$${values.length}`;
    if (place.key !== null) {
      values.push(place.key);
      keyAt = `$${values.length}::${sort.type}`;
    }
  }
  const backwards = place?.side === 'before' || place?.side === 'until';
  const direction = (sort.descending ?? false) !== backwards ? 'DESC' : 'ASC';
  const nulls = sort.nullable ? ` NULLS ${backwards ? 'FIRST' : 'LAST'}` : '';
  const order = (key: string, tie: string) =>
    `ORDER BY ${key} ${direction}${nulls}, ${tie} ${backwards ? 'DESC' : 'ASC'} LIMIT ${limitAt} + 1`;
  // What a cursor needs is made of the two rows that one can stand on.
  const keyOf = (row: string) => keyText({ ...sort, key: `max(key) FILTER (WHERE place = ${row})` });
  const page = (placed: string) => `(
  SELECT count(*) AS found, string_agg(item, ',' ORDER BY place${backwards ? ' DESC' : ''}) FILTER (WHERE place <= ${limitAt}) AS items,
    ${keyOf('1')} AS near_key, max(id) FILTER (WHERE place = 1) AS near_id,
    ${keyOf(limitAt)} AS far_key, max(id) FILTER (WHERE place = ${limitAt}) AS far_id
  FROM (${placed}) placed
) page`;

  let text: string;
  if (total === undefined && !few) {
    const onSide = (side: Place['side']) => condition({ ...sort, key: 'key' }, 'id', side, keyAt, idAt);
    const { beyond, behind } = sides
      ? {
          beyond: `WHERE ${onSide(sides.here)}`,
          behind: `EXISTS (SELECT FROM matching WHERE ${onSide(sides.there)})`,
        }
      : { beyond: '', behind: 'false' };
    // OFFSET 0: each of the page's rows is looked up by its id, however many PostgreSQL believes that there are.
    text = `WITH matching AS MATERIALIZED (SELECT ${sort.key} AS key, ${id} AS id FROM ${from} WHERE ${where})
SELECT (SELECT count(*) FROM matching) AS total, ${behind} AS behind, page.*
FROM ${page(`
    SELECT found.*, shown.item FROM (
      SELECT *, row_number() OVER () AS place FROM (SELECT * FROM matching ${beyond} ${order('key', 'id')}) rows
    ) found CROSS JOIN LATERAL (SELECT ${parts.item} AS item FROM ${rows} ${shown} WHERE ${own} AND ${id} = found.id OFFSET 0) shown
  `)}`;
  } else {
    const onSide = (side: Place['side']) => condition(sort, id, side, keyAt, idAt);
    const { beyond, behind } = sides
      ? {
          beyond: `AND ${onSide(sides.here)}`,
          // Ordered, so that the index is entered at the place, and not the table gone through for any such row.
          behind: `COALESCE((SELECT true FROM ${from} WHERE ${where} AND ${onSide(sides.there)}
  ORDER BY ${sort.key} ${direction} LIMIT 1), false)`,
        }
      : { beyond: '', behind: 'false' };
    text = `SELECT (${total ?? `SELECT count(*) FROM ${from} WHERE ${where}`}) AS total, ${behind} AS behind, page.*
FROM ${page(`
    SELECT *, row_number() OVER () AS place FROM (
      SELECT ${parts.item} AS item, ${sort.key} AS key, ${id} AS id
      FROM ${from} ${shown} WHERE ${where} ${beyond} ${order(sort.key, id)}
    ) rows
  `)}`;
  }
  const name =
    parts.name && `${parts.name}${place ? `:${place.side}${place.key === null ? ':null' : ''}` : ''}`;
  return { text, ...(name ? { name } : {}), values, long: total === undefined && !few };
}

const OPPOSITE = { after: 'until', until: 'after', before: 'from', from: 'before' } as const;

function keyText(sort: Sort): string {
  return sort.type === 'timestamptz'
    ? `to_char(${sort.key} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
    : `(${sort.key})::text`;
}

/** The rows on one side of a place. Written so that an index on (…, key, id) can be entered at the key. */
function condition(
  sort: Sort,
  id: string,
  side: Place['side'],
  keyAt: string | undefined,
  idAt: string,
): string {
  const after = side === 'after' || side === 'from';
  const tie = `${id} ${after ? '>' : '<'}${side === 'from' || side === 'until' ? '=' : ''} ${idAt}`;
  if (keyAt === undefined) {
    // The place is among the nulls, which stand last.
    return after ? `(${sort.key} IS NULL AND ${tie})` : `(${sort.key} IS NOT NULL OR ${tie})`;
  }
  const further = after === (sort.descending ?? false) ? '<' : '>';
  const strictly = `(${sort.key} ${further}= ${keyAt} AND (${sort.key} ${further} ${keyAt} OR ${tie}))`;
  return sort.nullable && after ? `(${strictly} OR ${sort.key} IS NULL)` : strictly;
}
