import {
  jsonText,
  type ColumnSql,
  type JsonField,
  type JsonFragment,
  type JsonKind,
  type JsonSource,
  type ValueSql,
} from './json-text.js';
import type { Field, FieldType } from './field.js';
import { formatTimestamp } from '../values/timestamps.js';
import {
  CURSOR_PATTERN,
  deprecation,
  integer,
  nullable,
  refTo,
  returned,
  wordOf,
  type JsonSchema,
  type Model,
  type Property,
} from './json-schema.js';

/**
 * A response field: its JSON Schema, its TypeScript type ({@link ValueOf}), and SQL of its value. For a model with such fields,
 * {@link writeJson} writes SQL of a JSON text, and {@link writeColumns} SQL of columns.
 */
export class ResponseField<Value = unknown> implements Property, JsonField {
  /** Exists only for the compiler. */
  declare readonly value: Value;

  /** @param from SQL of the value; {@link IN_NODE} if Node computes it */
  constructor(
    readonly kind: JsonKind,
    readonly schema: JsonSchema,
    readonly from: JsonSource | undefined,
    readonly orNull = false,
    readonly required = true,
  ) {}

  get nullable(): ResponseField<Value | null> {
    return new ResponseField(this.kind, nullable(this.schema), this.from, true);
  }

  /** This field, but responses can omit it. */
  get optional(): ResponseField<Value | undefined> {
    return new ResponseField(this.kind, this.schema, this.from, this.orNull, false);
  }

  with({ description = this.schema.description, ...facts }: JsonSchema): ResponseField<Value> {
    const { description: _, ...schema } = this.schema;
    const said = { ...schema, ...facts, ...(description !== undefined && { description }) };
    return new ResponseField(this.kind, said, this.from, this.orNull, this.required);
  }

  /** This field, deprecated: it ends at least 12 months after the announcement. */
  deprecated(since: string, sunset: string): ResponseField<Value> {
    const schema = { ...this.schema, ...deprecation(since, sunset) };
    return new ResponseField(this.kind, schema, this.from, this.orNull, this.required);
  }
}

/** Source of a field that Node computes; {@link writeJson} and {@link writeColumns} reject its model. */
export const IN_NODE = undefined;

type Facts<Rules = object> = string | (Rules & { readonly description?: string; readonly example?: string });

interface NumberRules {
  readonly minimum?: number;
  readonly maximum?: number;
}

interface TextRules {
  readonly maxLength?: number;
  readonly pattern?: string;
}

/** Source of an object whose fields have their own sources. */
type ObjectSource =
  /** The fields come from the surrounding statement; the object is null unless this condition holds. */
  | { readonly when: string }
  /** FROM and WHERE of a query for one row. */
  | { readonly lookup: string };

type Fields = Readonly<Record<string, ResponseField>>;

export type ValueOf<Described> =
  Described extends Model<infer Own>
    ? { -readonly [Name in keyof Own]: Own[Name] extends ResponseField<infer Value> ? Value : never }
    : never;

const KINDS = {
  id: 'number',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  timestamp: 'timestamp',
  enum: 'word',
  text: 'text',
  texts: 'texts',
} as const satisfies Record<FieldType['kind'], JsonKind>;

/** Makes response fields from a table's fields. @param from the table's alias, or stored text that contains the fields */
export function relation<Of extends Readonly<Record<string, Field>>, From extends string | JsonFragment>(
  { fields }: { readonly fields: Of },
  from: From,
) {
  const shown = Object.entries(fields).map(([name, { type, isNullable, description }]) => {
    const schema = { ...returned(type), ...(description !== undefined && { description }) };
    const source = typeof from === 'string' ? (`${from}.${name}` as ColumnSql) : (from as JsonFragment);
    return [
      name,
      new ResponseField(KINDS[type.kind], isNullable ? nullable(schema) : schema, source, isNullable),
    ] as const;
  });
  return Object.fromEntries(shown) as unknown as {
    readonly [Name in keyof Of]: ResponseField<Of[Name]['value']> & {
      readonly from: From extends string ? ColumnSql : From;
    };
  };
}

function field<Value>(kind: JsonKind, schema: JsonSchema, from?: JsonSource, facts: Facts = {}) {
  const said = typeof facts === 'string' ? { description: facts } : facts;
  return new ResponseField<Value>(kind, { ...schema, ...said }, from);
}

const declaring =
  <Value, Rules = object>(kind: JsonKind, schema: JsonSchema) =>
  (from?: JsonSource, facts?: Facts<Rules>) =>
    field<Value>(kind, schema, from, facts);

export const idField = declaring<number>('number', returned({ kind: 'id' }));

/** Any integer that JavaScript represents exactly; an `int32` if its `maximum` is at most 2,147,483,647. */
export const integerField = (from?: JsonSource, facts: Exclude<Facts<NumberRules>, string> = {}) =>
  field<number>('number', integer(facts.maximum), from, facts);

/** Without a format, some generated clients use 32 bits, or texts for decimals. */
const NUMBER = { type: 'number', format: 'double' };

/** Any number; `from`: SQL of a numeric or double precision. */
export const numberField = declaring<number, NumberRules>('number', NUMBER);

/** A count, 0 or more; `int64`, since PostgreSQL counts in bigint. */
export const countField = declaring<number>('number', { ...integer(), minimum: 0 });

const PERCENTAGE = { ...NUMBER, minimum: 0, maximum: 100, description: '2 decimals' };
export const percentageField = declaring<number>('number', PERCENTAGE);

export const booleanField = declaring<boolean>('boolean', returned({ kind: 'boolean' }));

/** Any text, which PostgreSQL escapes. */
export const textField = declaring<string, TextRules>('text', { type: 'string' });

/** Declares a cursor, which Node computes. */
export const cursorField = (description: string) =>
  textField(IN_NODE, { pattern: CURSOR_PATTERN, description });

/** Declares a text that is one of these values, none of which needs escaping. */
export const enumField = <Word extends string>(words: readonly Word[], from?: JsonSource, facts?: Facts) =>
  field<Word>('word', wordOf(words), from, facts);

/** A date and time, in UTC unless `from` names a time zone; `from`: SQL of a timestamptz. */
export const timestampField = declaring<string>('timestamp', returned({ kind: 'timestamp' }));

/** Declares an object of another model; `from`: SQL of its JSON text (`null` if absent), or {@link ObjectSource}. */
export const objectField = <Own extends Fields>(
  model: Model<Own>,
  from?: ValueSql | ObjectSource,
  facts?: Facts,
) => {
  const source =
    typeof from === 'object' ? { name: model.name, properties: model.properties, ...from } : from;
  return field<ValueOf<Model<Own>>>('json', refTo(model), source, facts);
};

/** Declares a list of objects; `from`: SQL of their JSON texts with commas between them. */
export const objectListField = <Own extends Fields>(model: Model<Own>, from?: ValueSql, facts?: Facts) =>
  field<ValueOf<Model<Own>>[]>('items', { type: 'array', items: refTo(model) }, from, facts);

/** A list of texts; `from`: SQL of a text[]. */
export const textListField = declaring<string[]>('texts', returned({ kind: 'texts' }));

/** Declares a list of values from an enum. */
export const enumListField = <Word extends string>(words: readonly Word[], from?: ValueSql, facts?: Facts) =>
  field<readonly Word[]>('texts', { type: 'array', items: wordOf(words) }, from, facts);

/** Declares a field with this schema, which Node computes. */
export const declareField = <Value>(schema: JsonSchema, facts?: Facts) =>
  field<Value>('json', schema, IN_NODE, facts);

/** Writes SQL that returns a model's object as JSON text. @throws Error if a field has no source */
export function writeJson(model: Model<Fields>): string {
  return jsonText(model);
}

/** Writes SQL of the model's fields as columns, for {@link makeReader}. @throws Error if a field is not a single value in the database */
export function writeColumns({ name: of, properties }: Model<Fields>): string {
  return Object.entries(properties)
    .map(([name, { from }]) => {
      if (typeof from !== 'string') throw new Error(`${of}.${name} is not a column`);
      return from.split('.').at(-1) === name ? from : `${from} AS ${name}`;
    })
    .join(', ');
}

/** Makes a function that converts a row's columns into an object of the model, with keys in declaration order. */
export function makeReader<Own extends Fields>(
  model: Model<Own>,
): (row: Record<string, unknown>) => ValueOf<Model<Own>> {
  const fields = Object.entries<ResponseField>(model.properties);
  return (row) => {
    const object: Record<string, unknown> = {};
    for (const [name, { kind }] of fields) {
      const value = row[name];
      object[name] = kind === 'timestamp' && value instanceof Date ? formatTimestamp(value) : value;
    }
    return object as ValueOf<Model<Own>>;
  };
}
