import { HIGHEST_ID } from '../../values/vocabulary.js';
import { applyDecorators, SetMetadata } from '@nestjs/common';
import { booleanField, countField, integerField, textField } from './fields.js';
import type { ProblemCode } from './problems.js';
import { Model, refTo, type JsonSchema } from './schema.js';

export const Pagination = new Model('Pagination', {
  limit: integerField({ minimum: 1, maximum: 100, description: 'Maximum number of items per page' }),
  count: countField({ description: 'Number of items on this page' }),
  total: countField({ description: 'Exact number of items on all pages together' }),
  has_more: booleanField({ description: 'Whether there is a next page' }),
  next_cursor: textField({ nullable: true, description: 'Cursor of the next page; null on the last page' }),
  prev_cursor: textField({
    nullable: true,
    description: 'Cursor of the previous page; null on the first page',
  }),
  sort: textField({ description: 'Sort order of the list' }),
});

/** Makes the JSON Schema of a page of a list of `item`. */
export function pageOf(item: Model) {
  return {
    type: 'object',
    required: ['data', 'pagination'],
    additionalProperties: false,
    properties: {
      data: { type: 'array', items: refTo(item) },
      pagination: refTo(Pagination),
    },
  };
}

/** Schema of an id in a path. Anything but such a number is not found, never a bad request. */
export const ID = { type: 'integer', format: 'int64', minimum: 1, maximum: HIGHEST_ID } as const;

/** What the decorators of a route say about it, for the OpenAPI documents. */
export interface Operation {
  readonly summary: string;
  readonly description?: string | undefined;
  /** JSON Schema of the response on success. */
  readonly response: JsonSchema;
}

const OPERATION = 'http:operation';
const PATH_PARAMETERS = 'http:path-parameters';

/**
 * Documents a route: what it does, in a few words and in whole sentences, and the response on success. Headers, and the problems
 * that all routes share, are added.
 */
export const RespondsWith = (
  summary: string,
  answer: Model | JsonSchema,
  description?: string,
): MethodDecorator => {
  const response = answer instanceof Model ? refTo(answer) : answer;
  return SetMetadata(OPERATION, { summary, description, response } satisfies Operation);
};

/** Documents a route that answers with a page of a list of `item`. */
export const RespondsWithPage = (summary: string, item: Model, description?: string) =>
  RespondsWith(summary, pageOf(item), description);

/** Finds what {@link RespondsWith} says about the handler. */
export function operationOf(handler: object): Operation | undefined {
  return Reflect.getMetadata(OPERATION, handler) as Operation | undefined;
}

/** Documents a parameter in the route's path. */
export const PathParameter = (name: string, description: string, schema: JsonSchema): MethodDecorator =>
  SetMetadata(PATH_PARAMETERS, [{ name, required: true, in: 'path', description, schema }]);

/** Lists what {@link PathParameter} says about the handler. */
export function pathParametersOf(handler: object): readonly JsonSchema[] {
  return (Reflect.getMetadata(PATH_PARAMETERS, handler) as readonly JsonSchema[] | undefined) ?? [];
}

/** What a route does for one value of the parameter that decides it. */
export interface Variant {
  /** The name of the call for generated clients, as `operationId` is that of a route. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly item: Model;
  /** Whether it answers with a page of a list of such items. */
  readonly isList: boolean;
}

const VARIANTS = 'http:variants';

/**
 * Documents a route where one parameter decides what it does ({@link Parameters} with variants): each value of the parameter, ''
 * where it is absent. OpenAPI cannot express that, so the document says it in `x-variants`, besides one schema of all.
 */
export function RespondsWithVariants(
  summary: string,
  description: string,
  variants: Readonly<Record<string, Variant>>,
): MethodDecorator {
  const all = Object.values(variants);
  const schemas = new Map(
    all.map((variant) => {
      const schema = schemaOf(variant);
      return [JSON.stringify(schema), schema];
    }),
  );
  return applyDecorators(
    RespondsWith(summary, { oneOf: [...schemas.values()] }, description),
    SetMetadata(VARIANTS, variants),
  );
}

/** Finds what {@link RespondsWithVariants} says about the handler. */
export function variantsOf(handler: object): Readonly<Record<string, Variant>> | undefined {
  return Reflect.getMetadata(VARIANTS, handler) as Readonly<Record<string, Variant>> | undefined;
}

/** Makes the JSON Schema of a variant's response. */
export function schemaOf({ item, isList }: Variant): JsonSchema {
  return isList ? pageOf(item) : refTo(item);
}

const PROBLEM_CODES = 'http:problems';

/** Declares which problems a route can answer besides those that its access and its query imply. */
export const RespondsWithProblems =
  (...codes: readonly ProblemCode[]): MethodDecorator =>
  (_controller, _name, { value: handler }) =>
    Reflect.defineMetadata(PROBLEM_CODES, [...problemsOf(handler as object), ...codes], handler as object);

/** Lists the codes that {@link RespondsWithProblems} declares for the handler. */
export function problemsOf(handler: object): readonly ProblemCode[] {
  return (Reflect.getMetadata(PROBLEM_CODES, handler) as readonly ProblemCode[] | undefined) ?? [];
}
