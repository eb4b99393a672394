import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
// Each from its own file: the package's index loads all its rules, phone numbers too, which is a tenth of a start (docs/contributors/performance.md).
import { ArrayMaxSize } from 'class-validator/cjs/decorator/array/ArrayMaxSize.js';
import { IsIn } from 'class-validator/cjs/decorator/common/IsIn.js';
import { IsNotEmpty } from 'class-validator/cjs/decorator/common/IsNotEmpty.js';
import { IsOptional } from 'class-validator/cjs/decorator/common/IsOptional.js';
import { Max } from 'class-validator/cjs/decorator/number/Max.js';
import { Min } from 'class-validator/cjs/decorator/number/Min.js';
import { Matches } from 'class-validator/cjs/decorator/string/Matches.js';
import { IsBoolean } from 'class-validator/cjs/decorator/typechecker/IsBoolean.js';
import { IsInt } from 'class-validator/cjs/decorator/typechecker/IsInt.js';
import { IsString } from 'class-validator/cjs/decorator/typechecker/IsString.js';
import { MOMENT_PATTERN, parseTimestamp } from '../../values/timestamps.js';
import { COUNTRY_CODE_PATTERN } from '../../values/vocabulary.js';
import {
  CURSOR_PATTERN,
  deprecation,
  Described,
  integer,
  propertiesIn,
  wordOf,
  type JsonSchema,
} from '../../model/json-schema.js';

/** The parameters of a query: a class whose properties have the decorators of this file. */
export type QueryClass = new () => object;

/** Views of a resource: its route has the value of one parameter decide which of them it responds with, and each is a route of its own, too. */
export interface QueryVariants {
  readonly by: string;
  readonly description: string;
  readonly absent: View;
  readonly values: Readonly<Record<string, View>>;
}

/** The parameters of a view, besides the deciding one, and the handler of its own route, in the same controller. */
interface View {
  readonly query: QueryClass;
  readonly handler: string;
}

interface Parameter {
  /** Reads the text; returns something that the rules refuse where it cannot. */
  readonly read?: (text: string) => unknown;
  readonly schema: JsonSchema;
  /** The first broken one is the one that is reported. */
  readonly rules: readonly PropertyDecorator[];
  readonly required?: boolean;
}

function parameter({ read, schema, rules, required = false }: Parameter): PropertyDecorator {
  return applyDecorators(
    Described(schema, { required }),
    ...(read
      ? [Transform(({ value }) => (typeof value === 'string' ? read(value) : value), { toClassOnly: true })]
      : []),
    ...(required ? [] : [IsOptional()]),
    ...rules,
  );
}

/** Declares, above the parameter's own decorator, that it ends on a date, at least 12 months after its announcement. */
export const DeprecatedParameter =
  (since: string, sunset: string): PropertyDecorator =>
  (target, name) => {
    const { schema, required } = propertiesIn(target).get(name as string)!;
    Described({ ...schema, ...deprecation(since, sunset) }, { required })(target, name);
  };

/** SQL cannot store the others: U+0000, and halves of surrogate pairs. With the flag u, of regular expressions that count code points. */
const STORABLE = '[^\\0\\p{Surrogate}]';

/** Options of a rule whose breach is `invalid_parameter`. */
const must = (rule: string, allowed?: readonly string[]) => ({
  message: `$property must ${rule}.`,
  context: { code: 'invalid_parameter', ...(allowed ? { allowed } : {}) },
});

/** Declares a whole number from `minimum` to `maximum`; refused outside, never clamped. */
export const WholeNumber = (minimum: number, maximum: number, description: string) => {
  const rule = must(`be a whole number from ${minimum} to ${maximum}`);
  return parameter({
    read: (text) => (/^\d{1,16}$/.test(text) ? Number(text) : text),
    rules: [IsInt(rule), Min(minimum, rule), Max(maximum, rule)],
    schema: { ...integer(maximum), minimum, maximum, description },
  });
};

/** Declares one value of an enum. */
export const OneOf = (values: readonly string[], description: string) =>
  parameter({
    rules: [IsIn(values, must(`be one of ${values.join(', ')}`, values))],
    schema: { type: 'string', enum: [...values], description },
  });

/** How a list is written. OpenAPI knows one form only: it names the one that generated clients send unasked. */
const LIST = { type: 'array', style: 'form', explode: true };

/** Declares values of an enum, separated by commas or repeated; read as an array without repetitions, in the enum's order. */
export const ListOf = (values: readonly string[], description: string) =>
  parameter({
    read: (text) => {
      const chosen = [...new Set(text.split(','))];
      return chosen.toSorted((one, other) => values.indexOf(one) - values.indexOf(other));
    },
    rules: [IsIn(values, { ...must(`be one or more of ${values.join(', ')}`, values), each: true })],
    schema: {
      ...LIST,
      items: wordOf(values),
      description,
    },
  });

/** Declares free texts (a category, say), written as {@link ListOf} is; no enum, since they are data. */
export const ListOfTexts = (description: string) => {
  const rule = must('be a list of 1 to 50 texts, none of them empty');
  return parameter({
    read: (text) => [...new Set(text.split(','))].toSorted(),
    rules: [ArrayMaxSize(50, rule), Matches(new RegExp(`^${STORABLE}+$`, 'u'), { ...rule, each: true })],
    schema: { ...LIST, items: { type: 'string' }, description },
  });
};

/** Declares `true` or `false`. */
export const Flag = (description: string) =>
  parameter({
    read: (text) => (text === 'true' ? true : text === 'false' ? false : text),
    rules: [IsBoolean(must('be true or false', ['true', 'false']))],
    schema: { type: 'boolean', description },
  });

/** A `+` that its sender did not escape. */
const SPACE_BEFORE_ZONE = /(?<=:\d\d(?:\.\d{1,9})?) (?=\d\d:\d\d$)/;

/** Declares a moment, as {@link parseTimestamp} reads it; what is read is RFC 3339 in UTC with microseconds. */
export const DateTime = (description: string) =>
  parameter({
    read: (text) => parseTimestamp(text.replace(SPACE_BEFORE_ZONE, '+')) ?? false,
    rules: [IsString(must('be YYYY-MM-DD HH:MM:SS (UTC), RFC 3339, or a date'))],
    schema: {
      type: 'string',
      pattern: MOMENT_PATTERN,
      examples: ['2026-01-31 18:00:00', '2026-01-31T18:00:00Z', '2026-01-31'],
      description,
    },
  });

/** Declares a substring to look for, of `minimum` to `maximum` code points. */
export const Search = (minimum: number, maximum: number, description: string) => {
  const rule = must(`have ${minimum} to ${maximum} characters, none of them U+0000`);
  return parameter({
    rules: [Matches(new RegExp(`^${STORABLE}{${minimum},${maximum}}$`, 'u'), rule)],
    schema: { type: 'string', minLength: minimum, maxLength: maximum, description },
  });
};

/** Declares any text: whether it is a cursor of this list is decided where the list is known. */
export const Cursor = (description = '`next_cursor` or `prev_cursor` from a response to the same query') =>
  parameter({
    rules: [IsString(must('be a text'))],
    schema: { type: 'string', minLength: 1, pattern: CURSOR_PATTERN, description },
  });

/** Declares the code of a country, in either case; what is read is in upper case. */
export const CountryCode = (description: string) =>
  parameter({
    read: (text) => text.toUpperCase(),
    rules: [Matches(new RegExp(COUNTRY_CODE_PATTERN), must('be two letters (ISO 3166-1 alpha-2)'))],
    schema: {
      type: 'string',
      pattern: '^[A-Za-z]{2}$',
      examples: ['DE'],
      description: `${description} (ISO 3166-1 alpha-2)`,
    },
  });

/** Declares any integer in decimal digits; what is read is its text, since it may be beyond every id. */
export const RequiredInteger = (description: string) =>
  parameter({
    rules: [
      IsNotEmpty({ message: '$property is needed.', context: { code: 'missing_parameter' } }),
      Matches(/^-?\d{1,400}$/, must('be an integer')),
    ],
    schema: { ...integer(), description },
    required: true,
  });
