import { createHmac, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import type { Database } from '../database/database.js';
import { Answer } from './answer.js';
import { Problem } from './problems.js';
import { Cursor, WholeNumber } from './query.js';

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
  answer(list: ListIdentity, place: Place | undefined, limit: number, page: PageRow): Answer {
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
    return new Answer(json, {
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
  readonly from: string;
  /** Access first, then the filters. */
  readonly where: string;
  /** SQL of the id that breaks ties. */
  readonly id: string;
  readonly sort: Sort;
  /**
   * SQL of the JSON text of one item. PostgreSQL makes it for the rows of the page alone, after sorting: what only the
   * item needs is best looked up in it, not joined in {@link PageParts.from}.
   */
  readonly item: string;
  /** SQL of the total; without it the rows are counted. */
  readonly total?: string;
  readonly values: readonly unknown[];
}

/** The statement of one page; with a name it is one of the hot path. */
export interface PageStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

export async function readPage(database: Database, { name, text, values }: PageStatement): Promise<PageRow> {
  const [row] = await (name === undefined
    ? database.rows<PageRow>(text, values)
    : database.read<PageRow>({ name, text }, values));
  return row!;
}

/** One statement for one page; see {@link PageRow}. */
export function pageStatement(parts: PageParts, place: Place | undefined, limit: number): PageStatement {
  const { sort, id, from, where } = parts;
  const values = [...parts.values, limit];
  const limitAt = `$${values.length}::int`;
  let beyond = '';
  let behind = 'false';
  if (place) {
    values.push(place.id);
    const idAt = `$${values.length}`;
    let keyAt: string | undefined;
    if (place.key !== null) {
      values.push(place.key);
      keyAt = `$${values.length}::${sort.type}`;
    }
    beyond = `AND ${condition(sort, id, place.side, keyAt, idAt)}`;
    const opposite = { after: 'until', until: 'after', before: 'from', from: 'before' } as const;
    behind = `EXISTS (SELECT FROM ${from} WHERE ${where} AND ${condition(sort, id, opposite[place.side], keyAt, idAt)})`;
  }
  const backwards = place?.side === 'before' || place?.side === 'until';
  const direction = (sort.descending ?? false) !== backwards ? 'DESC' : 'ASC';
  const nulls = sort.nullable ? ` NULLS ${backwards ? 'FIRST' : 'LAST'}` : '';
  // What a cursor needs is made of the two rows that one can stand on.
  const keyOf = (row: string) => keyText({ ...sort, key: `max(key) FILTER (WHERE place = ${row})` });
  const text = `SELECT (${parts.total ?? `SELECT count(*) FROM ${from} WHERE ${where}`}) AS total, ${behind} AS behind, page.*
FROM (
  SELECT count(*) AS found, string_agg(item, ',' ORDER BY place${backwards ? ' DESC' : ''}) FILTER (WHERE place <= ${limitAt}) AS items,
    ${keyOf('1')} AS near_key, max(id) FILTER (WHERE place = 1) AS near_id,
    ${keyOf(limitAt)} AS far_key, max(id) FILTER (WHERE place = ${limitAt}) AS far_id
  FROM (
    SELECT *, row_number() OVER () AS place FROM (
      SELECT ${parts.item} AS item, ${sort.key} AS key, ${id} AS id
      FROM ${from} WHERE ${where} ${beyond}
      ORDER BY ${sort.key} ${direction}${nulls}, ${id} ${backwards ? 'DESC' : 'ASC'} LIMIT ${limitAt} + 1
    ) rows
  ) placed
) page`;
  const name =
    parts.name && `${parts.name}${place ? `:${place.side}${place.key === null ? ':null' : ''}` : ''}`;
  return { text, ...(name ? { name } : {}), values };
}

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
