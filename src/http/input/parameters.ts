import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
// Imports single files: the package's index also loads unused rules, which slows down the startup.
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

/** A class whose properties are a query's parameters, declared with the decorators of this file. */
export type QueryClass = new () => object;

/** Views of a resource: the parameter `by` of the resource's route selects a view, and each view also has a separate route. */
export interface QueryVariants {
  readonly by: string;
  readonly description: string;
  readonly absent: View;
  readonly values: Readonly<Record<string, View>>;
}

/** A view's parameters except `by`, and the name of the handler of the view's route in the same controller. */
interface View {
  readonly query: QueryClass;
  readonly handler: string;
}

interface Parameter {
  /** Converts the text; for an invalid text, returns a value that the rules reject. */
  readonly read?: (text: string) => unknown;
  readonly schema: JsonSchema;
  /** The response reports only one broken rule per parameter. */
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

/** Marks a parameter as deprecated; `sunset` is at least 12 months after `since`. Must precede the parameter's other decorator. */
export const DeprecatedParameter =
  (since: string, sunset: string): PropertyDecorator =>
  (target, name) => {
    const { schema, required } = propertiesIn(target).get(name as string)!;
    Described({ ...schema, ...deprecation(since, sunset) }, { required })(target, name);
  };

/** Any character that PostgreSQL can store: not U+0000 or an unpaired surrogate. Requires the flag `u`. */
const STORABLE = '[^\\0\\p{Surrogate}]';

/** Options of a rule; a violation causes `invalid_parameter`. */
const must = (rule: string, allowed?: readonly string[]) => ({
  message: `$property must ${rule}.`,
  context: { code: 'invalid_parameter', ...(allowed ? { allowed } : {}) },
});

/** Declares a whole number from `minimum` to `maximum`: rejects other numbers instead of clamping them. */
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

/** Documents only the repeated parameter, since OpenAPI can declare only one format of a list. */
const LIST = { type: 'array', style: 'form', explode: true };

/** Declares values of an enum, separated by commas or repeated; the array contains each value once, in the enum's order. */
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

/** Declares 1 to 50 non-empty texts in the format of {@link ListOf}. */
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

/** The space that results from an unescaped `+` before the zone offset. */
const SPACE_BEFORE_ZONE = /(?<=:\d\d(?:\.\d{1,9})?) (?=\d\d:\d\d$)/;

/** Declares a time for {@link parseTimestamp}; the value is RFC 3339 in UTC with microseconds. */
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

/** Declares a search text of `minimum` to `maximum` code points. */
export const Search = (minimum: number, maximum: number, description: string) => {
  const rule = must(`have ${minimum} to ${maximum} characters, none of them U+0000`);
  return parameter({
    rules: [Matches(new RegExp(`^${STORABLE}{${minimum},${maximum}}$`, 'u'), rule)],
    schema: { type: 'string', minLength: minimum, maxLength: maximum, description },
  });
};

/** Declares a cursor, as any text: {@link SignedCursors} checks it. */
export const Cursor = (description = '`next_cursor` or `prev_cursor` from a response to the same query') =>
  parameter({
    rules: [IsString(must('be a text'))],
    schema: { type: 'string', minLength: 1, pattern: CURSOR_PATTERN, description },
  });

/** Declares a country code in either case; the value is in upper case. */
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

/** Declares a required integer of at most 400 digits. The value remains a text, since it can be too large for a number. */
export const RequiredInteger = (description: string) =>
  parameter({
    rules: [
      IsNotEmpty({ message: '$property is required.', context: { code: 'missing_parameter' } }),
      Matches(/^-?\d{1,400}$/, must('be an integer')),
    ],
    schema: { ...integer(), description },
    required: true,
  });
