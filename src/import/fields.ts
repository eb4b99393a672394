import { isPasswordHash } from '../accounts/passwords/passwords.js';
import type { Columns } from '../model/column.js';
import { tableNameOf } from '../model/declarations.js';
import type { FieldType, Field as TableField } from '../model/field.js';
import { isEmailAddress, isHttpUrl, isStorable, USERNAME_RULE } from '../values/string-rules.js';
import { MOMENT_PATTERN, parseTimestamp } from '../values/timestamps.js';
import {
  COUNTRY_CODE_PATTERN,
  MAX_ID,
  LENGTHS,
  MAX_TAGS,
  TAG_LENGTH,
  type Length,
} from '../values/vocabulary.js';
import { isTimeZone } from './time-zones.js';

/** Machine-readable kind of a fault in a line or record. */
export type FaultCode =
  | 'invalid_type'
  | 'invalid_length'
  | 'invalid_characters'
  | 'invalid_value'
  | 'missing'
  | 'unknown_field'
  | 'inconsistent'
  | 'invalid_line'
  | 'duplicate'
  | 'unknown_reference'
  | 'taken'
  | 'member_erased';

export class Fault {
  /** @param path to the value: names, joined by dots; empty for the whole line or record */
  constructor(
    readonly text: string,
    readonly code: FaultCode = 'invalid_value',
    readonly path = '',
  ) {}

  toString(): string {
    return this.path === '' ? this.text : `${this.path}: ${this.text}`;
  }
}

/** Makes the fault for contradictory fields of one record. */
export const inconsistent = (path: string, text: string) => new Fault(text, 'inconsistent', path);

const shownName = (name: string) =>
  (name.length > 100 ? `${name.slice(0, 100)}…` : name).toWellFormed().replaceAll('\0', '\u{fffd}');

export type StagedRow = Record<string, unknown>;

/** The column's value if the record omits the field, worded as in docs/operators/import.md. */
export type Absence =
  'unchanged; null for a new member' | 'the time of the import' | 'the time of the import that changes it';

/** A field of a record, and the staging table column for its value. */
interface Field {
  readonly type: string;
  /** Name of the column, if it differs from the field's name. */
  readonly column?: string;
  readonly required?: boolean;
  /** The value if the field is absent or null; default: null. */
  readonly fallback?: unknown;
  /** The value that SQL writes if the field is absent; a time also replaces null. */
  readonly absent?: Absence;
  /** For another record's id: that record's table, and whether the id must not be an erased member's. */
  readonly refersTo?: { readonly table: string; readonly alive: boolean };
  /** Rule for a value; follows "must be". */
  readonly rule: string;
  /** The rule as JSON Schema, as far as possible. */
  readonly schema: JsonSchema;
  readonly read: (value: unknown) => unknown;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The fields of a nested object become columns `<name>_<field>`; an absent object counts as empty. */
export interface Fields {
  readonly [name: string]: Field | { readonly fields: Fields };
}

/** Makes the field required. */
export const required = (field: Field): Field => ({ ...field, required: true });
/** Sets the value to use if the field is absent or null. */
export const orElse = (fallback: unknown, field: Field): Field => ({ ...field, fallback });
/** Keeps the value of an existing row's column if the field is absent. */
export const keeping = (field: Field): Field => ({ ...field, absent: 'unchanged; null for a new member' });

const plain = (
  type: string,
  rule: string,
  schema: JsonSchema,
  allowed: (value: unknown) => boolean,
): Field => ({
  type,
  rule,
  schema,
  read: (value) => (allowed(value) ? value : new Fault(`must be ${rule}`)),
});

const integer = (minimum: number, maximum = 2_147_483_647): Field =>
  plain(
    'integer',
    `an integer from ${minimum} to ${maximum}`,
    { type: 'integer', format: maximum < 2 ** 31 ? 'int32' : 'int64', minimum, maximum },
    (value) => Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  );

export const id: Field = { ...integer(1, MAX_ID), type: 'bigint' };
/** The id of a record in another table. */
export const idOf = (table: string): Field => ({ ...id, refersTo: { table, alive: false } });
/** The id of a member who must not be erased. */
export const idOfMember: Field = { ...id, refersTo: { table: 'users', alive: true } };

const degrees = (most: number): Field =>
  plain(
    'double precision',
    `a number from -${most} to ${most}`,
    { type: 'number', minimum: -most, maximum: most },
    (value) => typeof value === 'number' && Math.abs(value) <= most,
  );

export const flag: Field = plain(
  'boolean',
  'true or false',
  { type: 'boolean' },
  (value) => typeof value === 'boolean',
);

/** Accepts one of these values. */
export const oneOf = (values: readonly string[]): Field =>
  plain('text', `one of ${values.join(', ')}`, { type: 'string', enum: values }, (value) =>
    values.includes(value as string),
  );

const text = ([shortest, longest]: Length): Field => ({
  type: 'text',
  rule:
    shortest === 0
      ? `a text of at most ${longest} characters`
      : `a text of ${shortest} to ${longest} characters`,
  schema: { type: 'string', minLength: shortest, maxLength: longest },
  read: (value) => {
    if (typeof value !== 'string') return new Fault('must be a string', 'invalid_type');
    if (!isStorable(value))
      return new Fault('must not contain U+0000 or half of a surrogate pair', 'invalid_characters');
    // Avoids splitting most texts: a text has at least as many code units as code points.
    const length = value.length <= longest && value.length > shortest ? value.length : [...value].length;
    if (length >= shortest && length <= longest) return value;
    const limits = shortest === 0 ? `at most ${longest}` : `${shortest} to ${longest}`;
    return new Fault(`must have ${limits} characters, but has ${length}`, 'invalid_length');
  },
});

/** A record rule checks {@link USERNAME_RULE} later, since a member may keep an existing name. */
export const username: Field = {
  ...text(LENGTHS.users.username),
  rule: `a text of ${LENGTHS.users.username.join(' to ')} characters; must ${USERNAME_RULE}`,
};

const textThat = (longest: number, rule: string, allowed: (value: string) => boolean): Field => {
  const { read, schema } = text([1, longest]);
  return {
    type: 'text',
    rule,
    schema,
    read: (value) => {
      const taken = read(value);
      return taken instanceof Fault || allowed(taken as string) ? taken : new Fault(`must be ${rule}`);
    },
  };
};

/** Accepts an absolute http or https URL of at most this many code points, without user and password. */
export const url = ([, longest]: Length): Field =>
  textThat(
    longest,
    `an absolute http or https URL of at most ${longest} characters, without user and password`,
    isHttpUrl,
  );
export const email = textThat(LENGTHS.users.email[1], 'an email address', isEmailAddress);

export const passwordHash = textThat(
  LENGTHS.users.password_hash[1],
  'an argon2 or bcrypt hash of reasonable cost',
  isPasswordHash,
);
const COUNTRY_CODE = new RegExp(COUNTRY_CODE_PATTERN);
export const countryCode = textThat(100, 'two capital letters (ISO 3166-1)', (value) =>
  COUNTRY_CODE.test(value),
);
export const timeZone = textThat(100, 'an IANA time zone', isTimeZone);

/** First and last day of an imported time: local times in all zones are then also within the years 1 to 9999. */
const [FIRST_DAY, LAST_DAY] = ['0001-01-02', '9999-12-30'] as const;

/** A time, converted to RFC 3339 in UTC with microseconds, so that texts sort like times. */
export const moment: Field = {
  type: 'timestamptz',
  rule: `a time from ${FIRST_DAY} to ${LAST_DAY}: YYYY-MM-DD HH:MM:SS in UTC, or RFC 3339`,
  schema: { type: 'string', pattern: MOMENT_PATTERN },
  read: (value) => {
    const time =
      typeof value === 'string' && value.length > 'YYYY-MM-DD'.length ? parseTimestamp(value) : undefined;
    const day = time?.slice(0, FIRST_DAY.length) ?? '';
    return day >= FIRST_DAY && day <= LAST_DAY ? time : new Fault(`must be ${moment.rule}`);
  },
};

const tags: Field = {
  type: 'text[]',
  fallback: [],
  rule: `a list of at most ${MAX_TAGS} strings, of ${TAG_LENGTH.join(' to ')} characters each`,
  schema: { type: 'array', items: text(TAG_LENGTH).schema, maxItems: MAX_TAGS },
  read: (value) => {
    const tag = text(TAG_LENGTH);
    if (!Array.isArray(value) || value.length > MAX_TAGS) return new Fault(`must be ${tags.rule}`);
    const fault = value.map((item) => tag.read(item)).find((read) => read instanceof Fault);
    return fault ? new Fault(`has an item that ${fault.text}`, fault.code) : value;
  },
};

function fieldOf(type: FieldType): Field {
  if (type.kind === 'integer') return integer(type.minimum, type.maximum);
  if (type.kind === 'number') return degrees(type.maximum);
  if (type.kind === 'enum') return oneOf(type.words);
  if (type.kind === 'text') return text(type.length!);
  return { id, boolean: flag, timestamp: moment, texts: tags }[type.kind];
}

interface Table<Name extends string> {
  readonly columns: Columns;
  readonly fields: Readonly<Record<Name, TableField>>;
}

/** Derives a record field from a table column: values, reference, default, and whether it is required. */
export function column<Name extends string>({ columns, fields }: Table<Name>, name: Name): Field {
  const { type, isNullable } = fields[name];
  const { reference, options } = columns[name]!;
  const field = reference ? idOf(tableNameOf(reference.to())) : fieldOf(type);
  if (typeof options.default === 'function')
    return type.kind === 'timestamp' ? { ...field, absent: 'the time of the import' } : field;
  if (options.default !== undefined) return { ...field, fallback: options.default as unknown };
  return isNullable ? field : required(field);
}

/** Derives record fields from the columns with these names. */
export const columns = <Name extends string>(table: Table<Name>, ...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, column(table, name)])) as Readonly<Record<Name, Field>>;

/** Tells whether the value is a JSON object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Converts a record into a staging row, and lists its faults. @param path of a nested object, with a final dot */
export function readRecord(
  fields: Fields,
  value: unknown,
  path = '',
): { row: StagedRow; faults: readonly Fault[] } {
  if (!isObject(value)) {
    const text = path === '' ? 'must be a JSON object' : 'must be an object';
    return { row: {}, faults: [new Fault(text, 'invalid_type', path.slice(0, -1))] };
  }
  const row: StagedRow = {};
  const faults = unknownNames(value, fields, path);
  for (const [name, field] of Object.entries(fields)) {
    const given = value[name] ?? null;
    if ('fields' in field) {
      const inner = readRecord(field.fields, given ?? {}, `${path}${name}.`);
      Object.assign(row, inner.row);
      faults.push(...inner.faults);
      continue;
    }
    let read = given === null ? (field.fallback ?? null) : field.read(given);
    if (given === null && field.required) read = new Fault('is required', 'missing');
    if (read instanceof Fault) faults.push(new Fault(read.text, read.code, path + name));
    else row[path.replaceAll('.', '_') + (field.column ?? name)] = read;
  }
  return { row, faults };
}

/** Makes a fault for each name in the object that `known` lacks. */
export function unknownNames(value: object, known: object, path = ''): Fault[] {
  return Object.keys(value)
    .filter((name) => !Object.hasOwn(known, name))
    .map((name) => new Fault('is not a field here', 'unknown_field', path + shownName(name)));
}

/** Lists all fields, including nested ones, with the names of their columns. */
export function columnsOf(fields: Fields, prefix = ''): [column: string, field: Field][] {
  return Object.entries(fields).flatMap(([name, field]): [string, Field][] =>
    'fields' in field
      ? columnsOf(field.fields, `${prefix}${name}_`)
      : [[prefix + (field.column ?? name), field]],
  );
}

/** Builds the JSON Schema of a record with these fields. */
export function describeFields(fields: Fields): JsonSchema {
  const required: string[] = [];
  const properties: Record<string, JsonSchema> = {};
  for (const [name, field] of Object.entries(fields)) {
    const isRequired = 'required' in field && field.required === true;
    const schema = 'fields' in field ? describeFields(field.fields) : field.schema;
    if (isRequired) required.push(name);
    properties[name] = isRequired ? schema : { anyOf: [schema, { type: 'null' }] };
  }
  return { type: 'object', additionalProperties: false, required, properties };
}
