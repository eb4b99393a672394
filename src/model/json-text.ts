/** SQL that builds JSON text, which is faster than `json_build_object`; Node forwards the text unchanged. */

declare const isColumn: unique symbol;
export type ColumnSql = string & { readonly [isColumn]: true };

/** SQL of one value: a column (checked by the compiler) or an expression. */
export type ValueSql = ColumnSql | `${string}::${string}` | `${string} ${string}` | `${string}(${string}`;

export type JsonSource =
  ValueSql | JsonFragment | JsonObject | { readonly local: ValueSql; readonly zone: ValueSql };

/** SQL of a text with several keys and their values, without braces, or with only the opening brace (`opens`). */
export class JsonFragment {
  constructor(
    readonly sql: string,
    readonly opens = false,
  ) {}
}

export interface JsonObject {
  readonly name: string;
  readonly properties: Readonly<Record<string, JsonField>>;
  /** Condition under which the object is present; otherwise it is null. */
  readonly when?: string | undefined;
  /** FROM and WHERE of the row with the values; without a row, the object is null. */
  readonly lookup?: string | undefined;
}

/**
 * How SQL writes a value: `text` is escaped; `word` and `timestamp` are only quoted; `number` and `boolean` are unquoted; `json` is
 * JSON text and never NULL; `items` are JSON texts with commas between them; `texts` is an array of texts.
 */
export type JsonKind = 'text' | 'word' | 'timestamp' | 'number' | 'boolean' | 'json' | 'items' | 'texts';

export interface JsonField {
  readonly kind: JsonKind;
  readonly orNull: boolean;
  /** Undefined if Node computes the value. */
  readonly from: JsonSource | undefined;
}

/** Writes SQL of an object's JSON text. @throws Error if a field has no source, or a fragment with the opening brace is not first */
export function jsonText(of: JsonObject): string {
  const { when, lookup } = of;
  // Merges adjacent constants, since each `||` costs time.
  const object = compilePieces(of).join(' || ').replaceAll(`' || '`, '');
  if (lookup !== undefined) return `COALESCE((SELECT ${object} FROM ${lookup}), 'null')`;
  return when === undefined ? object : `CASE WHEN ${when} THEN ${object} ELSE 'null' END`;
}

/** Writes SQL of the JSON text of a value that needs no escaping (a timestamp, an enum), or of null. */
export function quoted(sql: string): string {
  return `COALESCE('"' || ${sql} || '"', 'null')`;
}

function compilePieces({ name: of, properties }: JsonObject): string[] {
  const pieces: string[] = [];
  const written = new Set<JsonFragment>();
  for (const [name, { kind, orNull, from }] of Object.entries(properties)) {
    const before = pieces.length === 0 ? '{' : ',';
    if (from === undefined) throw new Error(`${of}.${name} has no source`);
    if (from instanceof JsonFragment) {
      if (written.has(from)) continue;
      written.add(from);
      if (from.opens && pieces.length > 0) throw new Error(`${of}.${name}: its fragment must be first`);
      if (!from.opens) pieces.push(`'${before}'`);
      pieces.push(from.sql);
    } else {
      pieces.push(`'${before}"${name}":'`, ...compileValue(kind, orNull, from));
    }
  }
  return [...pieces, `'}'`];
}

function compileValue(kind: JsonKind, orNull: boolean, from: Exclude<JsonSource, JsonFragment>): string[] {
  if (typeof from === 'object' && 'properties' in from) {
    const plain = from.when === undefined && from.lookup === undefined;
    return plain ? compilePieces(from) : [jsonText(from)];
  }
  if (typeof from === 'object') return inQuotes(`local_time(${from.local}, ${from.zone})`, orNull);
  const sql = operand(from);
  const written: Record<JsonKind, string[]> = {
    text: [`json_text(${from})`],
    word: inQuotes(sql, orNull),
    timestamp: inQuotes(`api_time(${from})`, orNull),
    number: [orNull ? `COALESCE(${sql}::text, 'null')` : sql],
    // Faster than a cast, which would allocate the text.
    boolean: [`CASE WHEN ${sql} THEN 'true' ELSE 'false' END`],
    json: [sql],
    items: [`'['`, sql, `']'`],
    texts: [`to_json(${from})::text`],
  };
  return written[kind];
}

function inQuotes(sql: string, orNull: boolean): string[] {
  return orNull ? [quoted(sql)] : [`'"'`, sql, `'"'`];
}

function operand(sql: string): string {
  return /^[\w.]+$/.test(sql) ? sql : `(${sql})`;
}
