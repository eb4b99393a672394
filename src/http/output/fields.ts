import { HIGHEST_ID } from '../../values/vocabulary.js';
import {
  jsonText,
  type JsonField,
  type JsonKind,
  type JsonSource,
  type ValueSql,
} from '../../database/json-text.js';
import { TIMESTAMP_PATTERN, timestampOf } from '../../values/timestamps.js';
import { nullable, refTo, type JsonSchema, type Model, type Property } from './schema.js';

/**
 * The fields of a response. Each function declares everything about a field: its JSON type, for the OpenAPI document; its TypeScript
 * type, from which that of the response follows ({@link ValueOf}); and, where it comes from the database, what it is read from. A model
 * of such fields becomes either JSON text that PostgreSQL makes ({@link jsonOf}) or columns of a row ({@link columnsOf}).
 */

/** What can be declared of a field besides its type. */
interface FieldOptions {
  /** SQL over the relations of the statement. A field without it is computed in Node, and its model cannot be read by a statement. */
  readonly from?: JsonSource;
  readonly nullable?: boolean;
  readonly description?: string;
  readonly example?: string;
}

interface NumberOptions extends FieldOptions {
  readonly minimum?: number;
  readonly maximum?: number;
}

interface TextOptions extends FieldOptions {
  readonly maxLength?: number;
  readonly pattern?: string;
}

interface ObjectOptions extends Omit<FieldOptions, 'from' | 'example'> {
  /** SQL of its JSON text, where that is stored or computed as a whole; the text `null` where there is none. */
  readonly from?: ValueSql;
  /** Otherwise it is made from the fields of its model: the condition under which there is one. */
  readonly when?: string;
  /** What the fields of its model are read from: FROM and WHERE of a query for one row. */
  readonly lookup?: string;
}

type Nullable<Value, Options> = Options extends { readonly nullable: true } ? Value | null : Value;
interface Field<Value = unknown> extends Property, JsonField {
  /** Only for the compiler. */
  readonly value?: Value;
}

type Fields = Readonly<Record<string, Field>>;
type FieldModel<Own extends Fields = Fields> = Model<Own>;

/** The type of the objects that a model of fields describes. */
export type ValueOf<Described> =
  Described extends Model<infer Own>
    ? { -readonly [Name in keyof Own]: Own[Name] extends Field<infer Value> ? Value : never }
    : never;

function field<Value>(
  kind: JsonKind,
  schema: JsonSchema,
  { from, nullable: orNull = false, ...documentation }: FieldOptions,
): Field<Value> {
  return {
    schema: { ...(orNull ? nullable(schema) : schema), ...documentation },
    kind,
    nullable: orNull,
    from,
  };
}

/** Makes what declares fields of one type, which may be null. */
const declaring =
  <Value, Allowed extends FieldOptions = FieldOptions>(kind: JsonKind, schema: JsonSchema) =>
  <const Options extends Allowed = Allowed>(options: Options = {} as Options) =>
    field<Nullable<Value, Options>>(kind, schema, options);

/** The id of a resource. */
export const idField = declaring<number>('number', { type: 'integer', minimum: 1, maximum: HIGHEST_ID });

/** Any integer that JavaScript represents exactly. */
export const integerField = declaring<number, NumberOptions>('number', { type: 'integer' });

/** Any number; in the database a numeric or double precision. */
export const numberField = declaring<number, NumberOptions>('number', { type: 'number' });

/** A count: an integer from 0. */
export const countField = declaring<number>('number', { type: 'integer', minimum: 0 });

const PERCENTAGE = { type: 'number', minimum: 0, maximum: 100, description: '2 decimals' };
/** A percentage: 0 to 100, with two decimals. */
export const percentageField = declaring<number>('number', PERCENTAGE);

/** Declares true or false; never null. */
export const booleanField = (options: FieldOptions = {}) =>
  field<boolean>('boolean', { type: 'boolean' }, options);

/** Any text; it is escaped. */
export const textField = declaring<string, TextOptions>('text', { type: 'string' });

/** Declares one of a few words, which need no escaping. */
export const enumField = <Word extends string, const Options extends FieldOptions = object>(
  words: readonly Word[],
  options: Options = {} as Options,
) => field<Nullable<Word, Options>>('word', { type: 'string', enum: words }, options);

/** A date and time in UTC; `from` a timestamptz. */
export const timestampField = declaring<string>('timestamp', { type: 'string', pattern: TIMESTAMP_PATTERN });

/** Declares an object of another model. */
export const objectField = <Own extends Fields, const Options extends ObjectOptions = object>(
  model: Model<Own>,
  options: Options = {} as Options,
) => {
  const { name, properties } = model;
  const { when, lookup, from = { name, properties, when, lookup }, ...own } = options as ObjectOptions;
  return field<Nullable<ValueOf<Model<Own>>, Options>>('json', refTo(model), { from, ...own });
};

/** Declares a list of objects; `from` SQL of their JSON texts with commas between them. */
export const objectListField = <Own extends Fields>(model: Model<Own>, options: FieldOptions = {}) =>
  field<ValueOf<Model<Own>>[]>('items', { type: 'array', items: refTo(model) }, options);

/** Declares a list of texts; `from` a text[]. */
export const textListField = (options: FieldOptions = {}) =>
  field<string[]>('texts', { type: 'array', items: { type: 'string' } }, options);

/** Declares a list of some of a few words. */
export const enumListField = <Word extends string>(words: readonly Word[], options: FieldOptions = {}) =>
  field<readonly Word[]>('texts', { type: 'array', items: { type: 'string', enum: words } }, options);

/** Declares what no other function does; it is computed in Node. */
export const fieldOf = <Value>(schema: JsonSchema) => field<Value>('json', schema, {});

/**
 * Writes SQL of the JSON text of an object of the model, its keys in the order in which they are declared.
 *
 * @throws Error where a field does not say what it is read from
 */
export function jsonOf(model: FieldModel): string {
  return jsonText(model);
}

/**
 * Writes SQL of the fields of the model as columns named after them, for a row that {@link readerOf} takes.
 *
 * @throws Error where a field is not a single value in the database
 */
export function columnsOf({ name: of, properties }: FieldModel): string {
  return Object.entries(properties)
    .map(([name, { from }]) => {
      if (typeof from !== 'string') throw new Error(`${of}.${name} is no column`);
      return from.split('.').at(-1) === name ? from : `${from} AS ${name}`;
    })
    .join(', ');
}

/** Makes a function that turns the columns of a row into an object of the model, its keys in the order in which they are declared. */
export function readerOf<Own extends Fields>(
  model: Model<Own>,
): (row: Record<string, unknown>) => ValueOf<Model<Own>> {
  const fields = Object.entries<Field>(model.properties);
  return (row) => {
    const object: Record<string, unknown> = {};
    for (const [name, { kind }] of fields) {
      const value = row[name];
      object[name] = kind === 'timestamp' && value instanceof Date ? timestampOf(value) : value;
    }
    return object as ValueOf<Model<Own>>;
  };
}
