import { applyDecorators, createParamDecorator, Injectable, SetMetadata } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { plainToInstance, Transform } from 'class-transformer';
import { ValidateBy, validateSync } from 'class-validator';
import type { Request } from 'express';
import { parseTimestamp } from '../../values/timestamps.js';
import { Problem } from '../output/problems.js';
import { isOutsideApi } from '../pipeline/outside-api.js';
import type { ProblemDetail } from '../output/problems.js';
import { isStorable } from '../../values/string-rules.js';

/**
 * Query parameters: a class whose properties are the parameters, each with one of the decorators below, which
 * read it, check it and document it. A route without {@link AcceptsQuery} takes no parameter at all.
 */
export type QueryClass = new () => object;

/** Several shapes of query behind one path, chosen by the value of one parameter. */
export interface QueryVariants {
  readonly by: string;
  /** Where the parameter is absent. */
  readonly absent: QueryClass;
  readonly values: Readonly<Record<string, QueryClass>>;
}

const QUERY = 'http:query';
const PARAMETERS = 'http:parameters';
/** Those of them that are lists. */
const LISTS = 'http:lists';

export const AcceptsQuery = (query: QueryClass | QueryVariants) => SetMetadata(QUERY, query);

/** The validated query of the request. */
export const Parameters = createParamDecorator((_: unknown, context: ExecutionContext): object => {
  return context.switchToHttp().getRequest<Request & { parameters: object }>().parameters;
});

/** Reads and checks the query of every route: 400 `unknown_parameter`, `invalid_parameter`, `missing_parameter`. */
@Injectable()
export class QueryGuard implements CanActivate {
  /** Read once per handler. */
  readonly #accepted = new Map<object, QueryClass | QueryVariants>();

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request & { parameters: object }>();
    const handler = context.getHandler();
    let accepted = this.#accepted.get(handler);
    if (!accepted) {
      if (isOutsideApi(context.getClass())) return true;
      this.#accepted.set(handler, (accepted = queryOfHandler(handler) ?? NoParameters));
    }
    request.parameters = parseQuery(accepted, queryOf(request.url));
    return true;
  }
}

/** What the handler accepts, for the documentation. */
export function queryOfHandler(handler: object): QueryClass | QueryVariants | undefined {
  return Reflect.getMetadata(QUERY, handler) as QueryClass | QueryVariants | undefined;
}

/** Names of the parameters of a query class, in the order in which they are declared. */
export function parameterNames(query: QueryClass): readonly string[] {
  return namesIn(PARAMETERS, query.prototype as object);
}

function namesIn(which: typeof PARAMETERS | typeof LISTS, query: object): readonly string[] {
  return (Reflect.getMetadata(which, query) as string[] | undefined) ?? [];
}

class NoParameters {}

function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

const withoutQuery = new Map<QueryClass, object>();

/** @throws Problem with one entry for every parameter that is wrong */
export function parseQuery(accepted: QueryClass | QueryVariants, query: string): object {
  if (query === '' && typeof accepted !== 'function') accepted = accepted.absent;
  if (query === '' && typeof accepted === 'function') {
    const known = withoutQuery.get(accepted);
    if (known) return known;
  }
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query)) {
    const list = values.get(name);
    if (list) list.push(value);
    else values.set(name, [value]);
  }
  const { parameters, faults } = check(
    typeof accepted === 'function' ? accepted : variantOf(accepted, values),
    values,
  );
  if (faults.length > 0) throw queryProblem(faults);
  if (query === '') withoutQuery.set(accepted as QueryClass, Object.freeze(parameters));
  return parameters;
}

function variantOf(variants: QueryVariants, values: Map<string, string[]>): QueryClass {
  const given = values.get(variants.by);
  if (given === undefined) return variants.absent;
  const chosen = Object.entries(variants.values).find(([name]) => given.length === 1 && name === given[0]);
  if (chosen) return chosen[1];
  throw queryProblem([
    given.length > 1
      ? repeated(variants.by)
      : invalid(
          variants.by,
          `${variants.by} must be one of the allowed values.`,
          Object.keys(variants.values),
        ),
  ]);
}

function check(
  query: QueryClass,
  values: Map<string, string[]>,
): { parameters: object; faults: ProblemDetail[] } {
  const known = parameterNames(query);
  const lists = namesIn(LISTS, query.prototype as object);
  const faults: ProblemDetail[] = [];
  const single: Record<string, string> = {};
  for (const [name, list] of values) {
    if (!known.includes(name)) {
      const names = known.length === 0 ? 'There are none here.' : `There are: ${known.join(', ')}.`;
      faults.push({
        parameter: name,
        code: 'unknown_parameter',
        detail: `There is no parameter of this name. ${names}`,
      });
    } else if (lists.includes(name)) single[name] = list.join(',');
    else if (list.length > 1) faults.push(repeated(name));
    else single[name] = list[0]!;
  }
  const parameters = plainToInstance(query, single);
  for (const { property, value } of validateSync(parameters, { forbidUnknownValues: false })) {
    // A repeated one has its fault already.
    if (property in single || !values.has(property)) faults.push(faultOf(property, value));
  }
  return { parameters, faults };
}

/** What a reader gives in place of a value that it cannot take. */
class Unreadable {
  constructor(
    readonly rule: string,
    readonly allowed?: readonly string[],
  ) {}
}

function faultOf(name: string, value: unknown): ProblemDetail {
  if (value instanceof Unreadable) return invalid(name, `${name} ${value.rule}.`, value.allowed);
  return { parameter: name, code: 'missing_parameter', detail: `${name} is needed.` };
}

function invalid(parameter: string, detail: string, allowed?: readonly string[]): ProblemDetail {
  return { parameter, code: 'invalid_parameter', detail, ...(allowed ? { allowed } : {}) };
}

function repeated(parameter: string): ProblemDetail {
  return invalid(parameter, `${parameter} must stand there only once.`);
}

function queryProblem(faults: readonly ProblemDetail[]): Problem {
  const code = faults[0]!.code as 'unknown_parameter' | 'invalid_parameter' | 'missing_parameter';
  const detail = faults.length === 1 ? faults[0]!.detail : `${faults.length} query parameters are wrong.`;
  return new Problem(code, { detail, errors: faults.slice(0, 32) });
}

type Schema = Record<string, unknown>;

/** The common form of the decorators below: how to read a text, and its JSON Schema. */
function parameter(
  read: (text: string) => unknown,
  schema: Schema,
  { required = false } = {},
): PropertyDecorator {
  const documented = { ...schema, required } as Parameters_<typeof ApiProperty>;
  return applyDecorators(
    (target: object, name: string | symbol) => {
      for (const which of schema.type === 'array' ? ([PARAMETERS, LISTS] as const) : ([PARAMETERS] as const))
        Reflect.defineMetadata(which, [...namesIn(which, target), name as string], target);
    },
    Transform(({ value }) => (typeof value === 'string' ? read(value) : value), { toClassOnly: true }),
    ValidateBy({
      name: required ? 'required' : 'readable',
      validator: {
        validate: (value) =>
          !(value instanceof Unreadable) && !(required && (value === undefined || value === '')),
      },
    }),
    required ? ApiProperty(documented) : ApiPropertyOptional(documented),
  );
}
type Parameters_<F extends (...parameters: never[]) => unknown> = Exclude<
  globalThis.Parameters<F>[0],
  undefined
>;

/** Whole number from `minimum` to `maximum`; refused outside, never clamped. */
export const WholeNumber = (minimum: number, maximum: number, description: string) =>
  parameter(
    (text) => {
      const value = Number(text);
      if (/^\d{1,9}$/.test(text) && value >= minimum && value <= maximum) return value;
      return new Unreadable(`must be a whole number from ${minimum} to ${maximum}`);
    },
    { type: 'integer', minimum, maximum, description },
  );

/** One value of an enum. */
export const OneOf = (values: readonly string[], description: string, fallback?: string) =>
  parameter(
    (text) => (values.includes(text) ? text : new Unreadable('must be one of the allowed values', values)),
    {
      type: 'string',
      enum: [...values],
      ...(fallback === undefined ? {} : { default: fallback }),
      description,
    },
  );

/** How a list is written. OpenAPI knows one form only: it names the one that generated clients send unasked. */
const LIST = { type: 'array', style: 'form', explode: true };
const LIST_FORMS = 'for several, repeat the parameter or separate them by commas';

/**
 * Values of an enum, separated by commas, or repeated, or both; what is read is an array without repetitions, in the
 * enum's order.
 */
export const ListOf = (values: readonly string[], description: string) =>
  parameter(
    (text) => {
      const chosen = new Set(text.split(','));
      if ([...chosen].every((value) => values.includes(value)))
        return values.filter((value) => chosen.has(value));
      return new Unreadable('must be a list of the allowed values', values);
    },
    {
      ...LIST,
      items: { type: 'string', enum: [...values] },
      description: `${description}; ${LIST_FORMS}`,
    },
  );

/** Free texts (a category, say), written as {@link ListOf} is; no enum, since they are data. */
export const ListOfTexts = (description: string) =>
  parameter(
    (text) => {
      const chosen = [...new Set(text.split(','))];
      if (chosen.every((value) => value !== '' && isStorable(value)) && chosen.length <= 50)
        return chosen.toSorted();
      return new Unreadable('must be a list of 1 to 50 texts, none of them empty');
    },
    { ...LIST, items: { type: 'string' }, description: `${description}; ${LIST_FORMS}` },
  );

export const Flag = (description: string) =>
  parameter(
    (text) =>
      text === 'true'
        ? true
        : text === 'false'
          ? false
          : new Unreadable('must be true or false', ['true', 'false']),
    { type: 'boolean', description },
  );

/** A moment, as {@link parseTimestamp} reads it. */
export const Moment = (description: string) =>
  parameter(
    (text) =>
      parseTimestamp(text) ??
      new Unreadable('must be YYYY-MM-DD HH:MM:SS (UTC), RFC 3339 with its + written as %2B, or a date'),
    { type: 'string', examples: ['2026-01-31 18:00:00', '2026-01-31T18:00:00Z', '2026-01-31'], description },
  );

/** A substring to look for, of `minimum` to `maximum` code points. */
export const Search = (minimum: number, maximum: number, description: string) =>
  parameter(
    (text) => {
      const length = [...text].length;
      if (length >= minimum && length <= maximum && isStorable(text)) return text;
      return new Unreadable(`must have ${minimum} to ${maximum} characters, none of them U+0000`);
    },
    { type: 'string', minLength: minimum, maxLength: maximum, description },
  );

/** Any text: whether it is a cursor of this very list is decided where the list is known. */
export const Cursor = () =>
  parameter((text) => text, {
    type: 'string',
    description: '`next_cursor` or `prev_cursor` of an answer to the same query',
  });

/** Any integer in decimal digits; what is read is its text, since it may be beyond every id. */
export const RequiredInteger = (description: string) =>
  parameter(
    (text) => (text === '' || /^-?\d{1,400}$/.test(text) ? text : new Unreadable('must be an integer')),
    { type: 'integer', description },
    { required: true },
  );
