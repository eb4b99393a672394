import { isPasswordHash } from '../../accounts/passwords.js';
import { isHttpUrl } from '../../http/body.js';
import { parseMoment } from '../../http/moments.js';
import { isStorable } from '../../http/query.js';

/** Why a value cannot be imported; follows the field's name. */
export class Fault {
  constructor(readonly text: string) {}
}

/** One field of a record: how its JSON value becomes a column of the staging table. */
export interface Field {
  /** SQL type of the column. */
  readonly type: string;
  /** The column, where it is not named as the field. */
  readonly column?: string;
  readonly required?: boolean;
  /** What an absent field or null stands for; null unless said. */
  readonly fallback?: unknown;
  /** Of a value that is there and not null. */
  readonly read: (value: unknown) => unknown;
}

/** An object whose fields become columns of their own, `<prefix>_<field>`; null where it is absent. */
export interface Group {
  readonly prefix: string;
  readonly fields: Fields;
}

export type Fields = Readonly<Record<string, Field | Group>>;

export const required = (field: Field): Field => ({ ...field, required: true });
export const orElse = (fallback: unknown, field: Field): Field => ({ ...field, fallback });
export const into = (column: string, field: Field): Field => ({ ...field, column });

/** From 1 to 2^53 − 1. */
export const id: Field = {
  type: 'bigint',
  read: (value) =>
    Number.isSafeInteger(value) && (value as number) >= 1
      ? value
      : new Fault('must be an integer from 1 to 9007199254740991'),
};

/** An integer within bounds, at most those of SQL's integer. */
export const integer = (minimum: number, maximum = 2_147_483_647): Field => ({
  type: 'integer',
  read: (value) =>
    Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum
      ? value
      : new Fault(`must be an integer from ${minimum} to ${maximum}`),
});

export const degrees = (most: number): Field => ({
  type: 'double precision',
  read: (value) =>
    typeof value === 'number' && Math.abs(value) <= most
      ? value
      : new Fault(`must be a number from -${most} to ${most}`),
});

export const flag: Field = {
  type: 'boolean',
  read: (value) => (typeof value === 'boolean' ? value : new Fault('must be true or false')),
};

/** Text of `shortest` to `longest` Unicode code points. */
export const text = (shortest: number, longest: number): Field => ({
  type: 'text',
  read: (value) => {
    if (typeof value !== 'string') return new Fault('must be a string');
    if (!isStorable(value)) return new Fault('must not contain U+0000 or half of a surrogate pair');
    // Code units are never fewer than code points: only a text that may be too long is taken apart.
    const length = value.length <= longest && value.length > shortest ? value.length : [...value].length;
    if (length < shortest || length > longest)
      return new Fault(
        shortest === 0
          ? `must have at most ${longest} characters, it has ${length}`
          : `must have ${shortest} to ${longest} characters, it has ${length}`,
      );
    return value;
  },
});

const checked = (field: Field, allowed: (value: string) => boolean, rule: string): Field => ({
  ...field,
  read: (value) => {
    const read = field.read(value);
    return read instanceof Fault || allowed(read as string) ? read : new Fault(rule);
  },
});

/** Absolute http or https URL. */
export const url = checked(
  text(1, 2048),
  isHttpUrl,
  'must be an absolute http or https URL without user and password',
);

export const passwordHash = checked(
  text(1, 500),
  isPasswordHash,
  'must be an argon2 or bcrypt hash of reasonable cost',
);

export const countryCode = checked(
  text(2, 2),
  (value) => /^[A-Z]{2}$/.test(value),
  'must be two capital letters (ISO 3166-1)',
);

export const oneOf = (...values: readonly string[]): Field => ({
  type: 'text',
  read: (value) =>
    values.includes(value as string) ? value : new Fault(`must be one of ${values.join(', ')}`),
});

/** In the API's form (UTC) or RFC 3339; read as RFC 3339 with microseconds in UTC, so that text compares as time. */
export const moment: Field = {
  type: 'timestamptz',
  read: (value) =>
    (typeof value === 'string' && value.length > 'YYYY-MM-DD'.length && parseMoment(value)) ||
    new Fault('must be a time: YYYY-MM-DD HH:MM:SS in UTC, or RFC 3339'),
};

export const tags: Field = {
  type: 'text[]',
  fallback: [],
  read: (value) => {
    const tag = text(1, 100);
    if (!Array.isArray(value) || value.length > 100)
      return new Fault('must be a list of at most 100 strings');
    const fault = value.map((item) => tag.read(item)).find((read) => read instanceof Fault);
    return fault ? new Fault(`has an item that ${fault.text}`) : value;
  },
};

/** A row of the staging table, or everything that is wrong with the record. */
export function readRecord(
  fields: Fields,
  value: unknown,
): { row: Record<string, unknown>; faults: readonly string[] } {
  const row: Record<string, unknown> = {};
  const faults: string[] = [];
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    readFields(fields, value as Record<string, unknown>, row, faults, '', '');
  else faults.push('must be a JSON object');
  return { row, faults };
}

function readFields(
  fields: Fields,
  record: Record<string, unknown>,
  row: Record<string, unknown>,
  faults: string[],
  path: string,
  prefix: string,
): void {
  for (const name of Object.keys(record)) {
    if (!Object.hasOwn(fields, name)) faults.push(`${path}${name.toWellFormed()}: is not a field here`);
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = record[name] ?? null;
    if ('fields' in field) {
      if (typeof value !== 'object' || Array.isArray(value)) faults.push(`${path}${name}: must be an object`);
      else
        readFields(
          field.fields,
          (value ?? {}) as Record<string, unknown>,
          row,
          faults,
          `${path}${name}.`,
          `${prefix}${field.prefix}_`,
        );
      continue;
    }
    const read =
      value === null
        ? field.required
          ? new Fault('is needed')
          : (field.fallback ?? null)
        : field.read(value);
    if (read instanceof Fault) faults.push(`${path}${name}: ${read.text}`);
    else row[prefix + (field.column ?? name)] = read;
  }
}

/** Columns of the staging table with their SQL types. */
export function stagingColumns(fields: Fields, prefix = ''): [column: string, type: string][] {
  return Object.entries(fields).flatMap(([name, field]) =>
    'fields' in field
      ? stagingColumns(field.fields, `${prefix}${field.prefix}_`)
      : [[prefix + (field.column ?? name), field.type] as [string, string]],
  );
}
