import { HIGHEST_ID } from '../../values/vocabulary.js';
import { jsonText } from '../../database/json-text.js';
import type { JsonKey, JsonKind, JsonObject, JsonSource } from '../../database/json-text.js';
import { TIMESTAMP_PATTERN, timestampOf } from '../../values/timestamps.js';
import { Described, nullable, refTo } from './schema.js';
import type { JsonSchema, Model } from './schema.js';

/**
 * The fields of a response. Each decorator declares everything about a field: its JSON type, for the OpenAPI document; its TypeScript
 * type, which the compiler compares with the property's; and, where it comes from the database, what it is read from. A class of such
 * fields becomes either JSON text that PostgreSQL makes ({@link jsonOf}) or columns of a row ({@link columnsOf}).
 */

/** What can be declared of a field besides its type. */
export interface FieldOptions {
  /** SQL over the relations of the statement. A field without it is computed in Node, and its class cannot be read by a statement. */
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
  readonly from?: string;
  /** Otherwise it is made from the fields of its class: the condition under which there is one. */
  readonly when?: string;
  /** What the fields of its class are read from: FROM and WHERE of a query for one row. */
  readonly lookup?: string;
}

type Nullable<Value, Options> = Options extends { readonly nullable: true } ? Value | null : Value;
type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

/** Decorates a property whose type is `Value`, no wider and no narrower; anything else does not compile. */
type FieldDecorator<Value> = <Target extends object, Name extends keyof Target & string>(
  target: Target,
  name: Name & (Same<Target[Name], Value> extends true ? unknown : never),
) => void;

interface Field {
  readonly name: string;
  readonly kind: JsonKind;
  readonly nullable: boolean;
  readonly from: JsonSource | undefined;
  /** For an object that is made from the fields of its class. */
  readonly object?: {
    readonly model: Model;
    readonly when?: string | undefined;
    readonly lookup?: string | undefined;
  };
}

const FIELDS = 'http:fields';

function field<Value>(
  kind: JsonKind,
  schema: JsonSchema,
  { from, nullable: orNull = false, ...documentation }: FieldOptions,
  object?: Field['object'],
): FieldDecorator<Value> {
  return (target, name) => {
    Described({ ...(orNull ? nullable(schema) : schema), ...documentation })(target, name);
    const fields = new Map(fieldsOf(target));
    fields.set(name, { name, kind, nullable: orNull, from, ...(object ? { object } : {}) });
    Reflect.defineMetadata(FIELDS, fields, target);
  };
}

function fieldsOf(prototype: object): ReadonlyMap<string, Field> {
  return (
    (Reflect.getMetadata(FIELDS, prototype) as ReadonlyMap<string, Field> | undefined) ??
    new Map<string, Field>()
  );
}

/** Lists the names of the fields of the class, in the order in which they are declared. */
export function fieldNames(model: Model): readonly string[] {
  return [...fieldsOf(model.prototype as object).keys()];
}

/** Declares the id of a resource. */
export const IdField = (options: FieldOptions = {}) =>
  field<number>('number', { type: 'integer', minimum: 1, maximum: HIGHEST_ID }, options);

/** Declares any integer that JavaScript represents exactly. */
export const IntegerField = <const Options extends NumberOptions>(options: Options) =>
  field<Nullable<number, Options>>('number', { type: 'integer' }, options);

/** Declares any number; in the database a numeric or double precision. */
export const NumberField = <const Options extends NumberOptions>(options: Options) =>
  field<Nullable<number, Options>>('number', { type: 'number' }, options);

/** Declares a count: an integer from 0. */
export const CountField = <const Options extends FieldOptions = object>(options: Options = {} as Options) =>
  field<Nullable<number, Options>>('number', { type: 'integer', minimum: 0 }, options);

/** Declares a percentage: 0 to 100, with two decimals. */
export const PercentageField = <const Options extends FieldOptions = object>(
  options: Options = {} as Options,
) =>
  field<Nullable<number, Options>>(
    'number',
    { type: 'number', minimum: 0, maximum: 100, description: '2 decimals' },
    options,
  );

/** Declares true or false; never null. */
export const BooleanField = (options: FieldOptions = {}) =>
  field<boolean>('boolean', { type: 'boolean' }, options);

/** Declares any text; it is escaped. */
export const TextField = <const Options extends TextOptions = object>(options: Options = {} as Options) =>
  field<Nullable<string, Options>>('text', { type: 'string' }, options);

/** Declares one of a few words, which need no escaping. */
export const EnumField = <Word extends string, const Options extends FieldOptions = object>(
  words: readonly Word[],
  options: Options = {} as Options,
) => field<Nullable<Word, Options>>('word', { type: 'string', enum: words }, options);

/** Declares a date and time in UTC; `from` a timestamptz. */
export const TimestampField = <const Options extends FieldOptions = object>(
  options: Options = {} as Options,
) => field<Nullable<string, Options>>('timestamp', { type: 'string', pattern: TIMESTAMP_PATTERN }, options);

/** Declares an object of another class. */
export const ObjectField = <Instance extends object, const Options extends ObjectOptions = object>(
  model: Model<Instance>,
  options: Options = {} as Options,
) => {
  const { when, lookup, ...own } = options as ObjectOptions;
  return field<Nullable<Instance, Options>>('json', refTo(model), own, { model, when, lookup });
};

/** Declares a list of objects; `from` SQL of their JSON texts with commas between them. */
export const ObjectListField = <Instance extends object>(
  model: Model<Instance>,
  options: FieldOptions = {},
) => field<Instance[]>('items', { type: 'array', items: refTo(model) }, options);

/** Declares a list of texts; `from` a text[]. */
export const TextListField = (options: FieldOptions = {}) =>
  field<string[]>('texts', { type: 'array', items: { type: 'string' } }, options);

/** Declares a list of some of a few words. */
export const EnumListField = <Word extends string>(words: readonly Word[], options: FieldOptions = {}) =>
  field<readonly Word[]>('texts', { type: 'array', items: { type: 'string', enum: words } }, options);

/**
 * Writes SQL of the JSON text of an object of the class, its keys in the order in which they are declared.
 *
 * @throws Error where a field does not say what it is read from
 */
export function jsonOf(model: Model): string {
  return jsonText(objectOf(model));
}

function objectOf(model: Model): JsonObject {
  const keys = [...fieldsOf(model.prototype as object).values()].map(({ object, from, ...key }): JsonKey => {
    if (from !== undefined) return { ...key, from };
    if (!object) throw new Error(`${model.name}.${key.name} does not say what it is read from`);
    const { when, lookup } = object;
    return { ...key, from: { ...objectOf(object.model), when, lookup } };
  });
  return { keys };
}

/**
 * Writes SQL of the fields of the class as columns named after them, for a row that {@link readerOf} takes.
 *
 * @throws Error where a field is not a single value in the database
 */
export function columnsOf(model: Model): string {
  return [...fieldsOf(model.prototype as object).values()]
    .map(({ name, from }) => {
      if (typeof from !== 'string') throw new Error(`${model.name}.${name} is no column`);
      return from.split('.').at(-1) === name ? from : `${from} AS ${name}`;
    })
    .join(', ');
}

/** Makes a function that turns the columns of a row into an object of the class, its keys in the order in which they are declared. */
export function readerOf<Instance extends object>(
  model: Model<Instance>,
): (row: Record<string, unknown>) => Instance {
  const fields = [...fieldsOf(model.prototype as object).values()];
  return (row) => {
    const object: Record<string, unknown> = {};
    for (const { name, kind } of fields) {
      const value = row[name];
      object[name] = kind === 'timestamp' && value instanceof Date ? timestampOf(value) : value;
    }
    return object as Instance;
  };
}
