import { createParamDecorator, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { Validator } from 'class-validator/cjs/validation/Validator.js';
import type { Request } from 'express';
import { deprecationHeaders } from '../output/openapi.js';
import { Problem, type ProblemDetail } from '../output/problems.js';
import { isOutsideApi } from '../pipeline/outside-api.js';
import { propertiesOf } from '../../model/json-schema.js';
import type { QueryClass, QueryVariants } from './parameters.js';
import { requestOf, responseOf } from '../pipeline/request-context.js';

const QUERY = 'http:query';

export const validator = new Validator();

export const VALIDATION = {
  forbidUnknownValues: false, // a query without parameters has no rules
  stopAtFirstError: true,
  validationError: { target: false },
} as const;

/** Returns the query as the client sent it, unchecked. */
export function queryOf({ originalUrl }: Request): URLSearchParams {
  return new URLSearchParams(queryTextOf(originalUrl));
}

const readParameters = createParamDecorator((_: unknown, context: ExecutionContext): object => {
  return requestOf<Request & { parameters: object }>(context).parameters;
});

/** Injects the checked query parameters. API routes without this decorator accept no query parameters. @param variants the views, if any */
export const Parameters =
  (variants?: QueryVariants): ParameterDecorator =>
  (controller, name, index) => {
    const handler = (controller as Record<string | symbol, object>)[name!]!;
    Reflect.defineMetadata(QUERY, variants ?? classOfParameter(controller, name!, index), handler);
    readParameters()(controller, name, index);
  };

/** Finds the class of a handler's parameter. @throws Error if TypeScript emitted no class, for example because of `import type` */
export function classOfParameter(
  controller: object,
  handler: string | symbol,
  index: number,
): new () => object {
  const types = Reflect.getMetadata('design:paramtypes', controller, handler) as
    (new () => object)[] | undefined;
  const type = types?.[index];
  if (type === undefined || type === Object)
    throw new Error(`${controller.constructor.name}.${String(handler)}: parameter ${index} needs a class`);
  return type;
}

/** Checks the queries of API routes, and adds deprecation headers. @throws Problem, for example unknown_parameter */
@Injectable()
export class QueryGuard implements CanActivate {
  readonly #known = new Map<object, { accepted: QueryClass | QueryVariants; headers: [string, string][] }>();

  canActivate(context: ExecutionContext): boolean {
    const request = requestOf<Request & { parameters: object }>(context);
    const handler = context.getHandler();
    let known = this.#known.get(handler);
    if (!known) {
      if (isOutsideApi(context.getClass())) return true;
      const accepted = queryOfHandler(handler);
      this.#known.set(handler, (known = { accepted, headers: deprecationHeaders(handler, accepted) }));
    }
    for (const [name, value] of known.headers) responseOf(context).gather(name, value);
    request.parameters = parseQuery(known.accepted, queryTextOf(request.url));
    return true;
  }
}

/** Returns the query class or variants of a handler. */
export function queryOfHandler(handler: object): QueryClass | QueryVariants {
  return (Reflect.getMetadata(QUERY, handler) as QueryClass | QueryVariants | undefined) ?? NoParameters;
}

/** Shared by all handlers without parameters, since {@link withoutQuery} keeps an entry for each class. */
class NoParameters {}

function queryTextOf(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** Names that other APIs use for parameters of lists, and the hint to send for them. */
const USUAL_NAMES = [
  {
    meant: 'cursor',
    names: 'after before offset page pageToken page_token skip start starting_after'.split(' '),
    fix: 'Send `cursor` instead, with the cursor from the previous response.',
  },
  {
    meant: 'limit',
    names: 'count first pageSize page_size perPage per_page size take'.split(' '),
    fix: 'Send `limit` instead.',
  },
];

const withoutQuery = new Map<QueryClass, object>();

/** Sent parameters, each with its name, by name. */
type Sent = Map<string, [name: string, value: string][]>;

/** Reads and checks a query. @param query without the question mark @throws Problem with at most 32 faults */
export function parseQuery(accepted: QueryClass | QueryVariants, query: string): object {
  if (query === '' && typeof accepted !== 'function') accepted = accepted.absent.query;
  if (query === '' && typeof accepted === 'function') {
    const known = withoutQuery.get(accepted);
    if (known) return known;
  }
  const sent: Sent = Map.groupBy(new URLSearchParams(query), ([name]) => name);
  const parameters = check(typeof accepted === 'function' ? accepted : variantOf(accepted, sent), sent);
  if (query === '') withoutQuery.set(accepted as QueryClass, Object.freeze(parameters));
  return parameters;
}

function variantOf(variants: QueryVariants, sent: Sent): QueryClass {
  const { by, absent } = variants;
  const [given, ...more] = sent.get(by) ?? [];
  if (given === undefined) return absent.query;
  if (more.length > 0) throw queryProblem([repeated(by)]);
  const chosen = Object.entries(variants.values).find(([name]) => name === given[1]);
  if (chosen) {
    sent.delete(by);
    return chosen[1].query;
  }
  const allowed = Object.keys(variants.values);
  throw invalidParameter(by, `${by} must be one of ${allowed.join(', ')}.`, allowed);
}

function check(query: QueryClass, sent: Sent): object {
  const known = propertiesOf(query);
  const faults: ProblemDetail[] = [];
  const single: Record<string, string> = {};
  for (const [name, list] of sent) {
    const parameter = known.get(name);
    if (!parameter) {
      const names =
        known.size === 0 ? 'It accepts no parameters.' : `It accepts ${[...known.keys()].join(', ')}.`;
      const usual = USUAL_NAMES.find(({ meant, names }) => names.includes(name) && known.has(meant));
      faults.push({
        parameter: name,
        code: 'unknown_parameter',
        detail: `This route has no parameter ${name.toWellFormed() || 'with an empty name'}. ${names}`,
        ...(usual && { fix: usual.fix }),
      });
    } else if (parameter.schema.type === 'array') single[name] = list.map(([, value]) => value).join();
    else if (list.length > 1) faults.push(repeated(name));
    else single[name] = list[0]![1];
  }
  const parameters = plainToInstance(query, single);
  for (const { property: parameter, constraints, contexts } of validator.validateSync(
    parameters,
    VALIDATION,
  )) {
    const [rule, detail] = Object.entries(constraints!)[0]!;
    const { code, ...facts } = contexts![rule] as { code: string; allowed?: readonly string[] };
    // Other repeated parameters are already in `faults`.
    if (parameter in single || !sent.has(parameter)) faults.push({ parameter, code, detail, ...facts });
  }
  if (faults.length > 0) throw queryProblem(faults);
  return parameters;
}

function repeated(parameter: string): ProblemDetail {
  return { parameter, code: 'invalid_parameter', detail: `${parameter} must be given only once.` };
}

/** Makes the problem for one wrong parameter or argument. @param allowed its values, if there is a fixed set */
export const invalidParameter = (parameter: string, detail: string, allowed?: readonly string[]) =>
  queryProblem([{ parameter, code: 'invalid_parameter', detail, ...(allowed ? { allowed } : {}) }]);

/** Makes the problem for a request's or tool's wrong parameters: the code of the first fault, and at most 32 faults. */
export function queryProblem(faults: readonly ProblemDetail[]): Problem {
  const code = faults[0]!.code as 'unknown_parameter' | 'invalid_parameter' | 'missing_parameter';
  const fix = faults.find((fault): fault is ProblemDetail & { fix: string } => 'fix' in fault)?.fix;
  return new Problem(code, {
    errors: faults.slice(0, 32),
    count: faults.length,
    ...(fix === undefined ? {} : { extensions: { fix } }),
  });
}
