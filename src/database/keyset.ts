import type { ValueSql } from './json-text.js';
/**
 * How one sort orders its rows. Nulls come last in both directions, and ties are broken by ascending id, so every row has exactly
 * one position, whatever happens to the others.
 */
export interface Sort {
  /** SQL of the value. */
  readonly key: ValueSql;
  /** SQL type of the value, for the cursor's text to be cast to. */
  readonly type: 'timestamptz' | 'text' | 'numeric' | 'bigint';
  readonly descending?: boolean;
  readonly nullable?: boolean;
}

/** A position in a list: the key and id of a row that was there. */
export interface CursorPosition {
  /** Which rows: after or before the position; `from` and `until` include it. */
  readonly side: 'after' | 'before' | 'from' | 'until';
  /** The key as PostgreSQL wrote it, to the microsecond. */
  readonly key: string | null;
  readonly id: number;
}

/** The side on which the other rows are. */
export const OPPOSITE = { after: 'until', until: 'after', before: 'from', from: 'before' } as const;

/** SQL of a key's text in a cursor. */
export function keyText(sort: Sort): string {
  return sort.type === 'timestamptz'
    ? `to_char(${sort.key} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
    : `(${sort.key})::text`;
}

/**
 * SQL of the rows on one side of a position, written so that a scan of an index on (…, key, id) can begin at the key.
 *
 * @param keyAt placeholder of the position's key; undefined if the position is among the nulls
 * @param idAt placeholder of its id
 */
export function onSide(
  sort: Omit<Sort, 'key'> & { readonly key: string },
  id: string,
  side: CursorPosition['side'],
  keyAt: string | undefined,
  idAt: string,
): string {
  const after = side === 'after' || side === 'from';
  const tie = `${id} ${after ? '>' : '<'}${side === 'from' || side === 'until' ? '=' : ''} ${idAt}`;
  if (keyAt === undefined) {
    // The position is among the nulls, which come last.
    return after ? `(${sort.key} IS NULL AND ${tie})` : `(${sort.key} IS NOT NULL OR ${tie})`;
  }
  const further = after === (sort.descending ?? false) ? '<' : '>';
  const strictly = `(${sort.key} ${further}= ${keyAt} AND (${sort.key} ${further} ${keyAt} OR ${tie}))`;
  return sort.nullable && after ? `(${strictly} OR ${sort.key} IS NULL)` : strictly;
}
