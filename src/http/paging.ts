import { createHmac, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
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

/** What a list's statement returns: one row, made by {@link pageStatement}. */
export interface PageRow extends Record<string, unknown> {
  /** JSON text of the items, in order. */
  data: string;
  count: number;
  total: number;
  /** Whether a row stands beyond the page in the direction of reading, and behind its start. */
  more: boolean;
  behind: boolean;
  first_key: string | null;
  first_id: number | null;
  last_key: string | null;
  last_id: number | null;
}

const MAC_BYTES = 16;

/** Keyset paging with opaque, signed cursors (contract §7). */
@Injectable()
export class Paging {
  readonly #keys: readonly Buffer[];
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
  answer(list: ListIdentity, place: Place | undefined, limit: number, row: PageRow): Answer {
    const backwards = place?.side === 'before' || place?.side === 'until';
    const hasMore = backwards ? row.behind : row.more;
    const hasPrevious = backwards ? row.more : row.behind;
    // An empty page has no rows to stand on: the way back starts at the place that led here, included.
    const end =
      row.last_id === null
        ? place && { ...place, side: 'from' as const }
        : { side: 'after' as const, key: row.last_key, id: row.last_id };
    const start =
      row.first_id === null
        ? place && { ...place, side: 'until' as const }
        : { side: 'before' as const, key: row.first_key, id: row.first_id };
    const next = hasMore && end ? this.#cursor(list, end) : null;
    const previous = hasPrevious && start ? this.#cursor(list, start) : null;
    const pagination = {
      limit,
      count: row.count,
      total: row.total,
      has_more: hasMore,
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
    return new Answer(`{"data":${row.data},"pagination":${JSON.stringify(pagination)}}`, {
      Link: links.join(', '),
      'X-Total-Count': String(row.total),
    });
  }

  #cursor(list: ListIdentity, place: Place): string {
    const payload = Buffer.from(JSON.stringify([place.side, place.key, place.id]));
    return Buffer.concat([macOf(this.#keys[0]!, list, payload), payload]).toString('base64url');
  }
}

function macOf(key: Buffer, list: ListIdentity, payload: Buffer): Buffer {
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
  /** Columns of `from` that `item` needs, beside the key and the id. */
  readonly select?: string;
  /** FROM with its joins. */
  readonly from: string;
  /** Access first, then the filters. */
  readonly where: string;
  /** SQL of the id that breaks ties. */
  readonly id: string;
  readonly sort: Sort;
  /** SQL of the JSON object of one item, over `page` and the joins below. */
  readonly item: string;
  /** Joins that only the rows of the page need. */
  readonly joins?: string;
  /** SQL of the total; without it the rows are counted. */
  readonly total?: string;
  readonly values: readonly unknown[];
}

/**
 * One statement for one page: the rows of the page as JSON text, where it starts and ends, whether there is more
 * on either side, and the total. It reads one row more than the page has.
 */
export function pageStatement(
  parts: PageParts,
  place: Place | undefined,
  limit: number,
): { text: string; name?: string; values: unknown[] } {
  const { sort, id, from, where } = parts;
  const values = [...parts.values, limit];
  const limitAt = `$${values.length}`;
  const backwards = place?.side === 'before' || place?.side === 'until';
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
    const inside = condition(sort, id, place.side, keyAt, idAt);
    beyond = `AND ${inside}`;
    const opposite = { after: 'until', until: 'after', before: 'from', from: 'before' } as const;
    behind = `EXISTS (SELECT FROM ${from} WHERE ${where} AND ${condition(sort, id, opposite[place.side], keyAt, idAt)})`;
  }
  const order = (reversed: boolean, key: string, tie: string) => {
    const descending = (sort.descending ?? false) !== reversed;
    const nulls = sort.nullable ? ` NULLS ${reversed ? 'FIRST' : 'LAST'}` : '';
    return `${key} ${descending ? 'DESC' : 'ASC'}${nulls}, ${tie} ${reversed ? 'DESC' : 'ASC'}`;
  };
  const forward = order(false, 'page.sort_key', 'page.id');
  const text = `WITH found AS (
  SELECT ${id} AS id, ${sort.key} AS sort_key${parts.select ? `, ${parts.select}` : ''}
  FROM ${from} WHERE ${where} ${beyond}
  ORDER BY ${order(backwards, sort.key, id)} LIMIT ${limitAt}::int + 1
), page AS (SELECT * FROM found ORDER BY ${order(backwards, 'sort_key', 'id')} LIMIT ${limitAt}::int)
SELECT COALESCE(json_agg(${parts.item} ORDER BY ${forward}), '[]')::text AS data,
  count(*)::int AS count,
  (SELECT count(*) FROM found) > ${limitAt}::int AS more,
  ${behind} AS behind,
  (${parts.total ?? `SELECT count(*) FROM ${from} WHERE ${where}`})::float8 AS total,
  (array_agg(${keyText(sort)} ORDER BY ${forward}))[1] AS first_key,
  (array_agg(page.id ORDER BY ${forward}))[1]::float8 AS first_id,
  (array_agg(${keyText(sort)} ORDER BY ${forward}))[count(*)] AS last_key,
  (array_agg(page.id ORDER BY ${forward}))[count(*)]::float8 AS last_id
FROM page ${parts.joins ?? ''}`;
  const name =
    parts.name && `${parts.name}${place ? `:${place.side}${place.key === null ? ':null' : ''}` : ''}`;
  return { text, ...(name ? { name } : {}), values };
}

function keyText(sort: Sort): string {
  return sort.type === 'timestamptz'
    ? `to_char(page.sort_key AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
    : 'page.sort_key::text';
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
