import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiOperation, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import { BooleanField, CountField, IntegerField, TextField } from './fields.js';
import type { Model } from './fields.js';
import type { ProblemCode } from './problems.js';

@ApiSchema({ name: 'Pagination' })
export class Pagination {
  @IntegerField({ minimum: 1, maximum: 100 })
  limit: number;

  @CountField({ description: 'Items of this page' })
  count: number;

  @CountField({ description: 'Items of all pages, exact' })
  total: number;

  @BooleanField({ description: 'Whether a next page exists' })
  has_more: boolean;

  @TextField({ nullable: true })
  next_cursor: string | null;

  @TextField({ nullable: true })
  prev_cursor: string | null;

  @TextField()
  sort: string;
}

/** JSON Schema of a page of a list of `item`. */
export function pageOf(item: Model) {
  return {
    type: 'object',
    required: ['data', 'pagination'],
    additionalProperties: false,
    properties: {
      data: { type: 'array', items: { $ref: getSchemaPath(item) } },
      pagination: { $ref: getSchemaPath(Pagination) },
    },
  };
}

/** Documents a route: what it does, and what its success looks like. Headers, and the problems that all routes share, are added. */
export function RespondsWith(
  summary: string,
  answer: Model | { readonly schema: Record<string, unknown>; readonly models: readonly Model[] },
): MethodDecorator {
  return applyDecorators(
    ApiOperation({ summary }),
    typeof answer === 'function'
      ? ApiOkResponse({ type: answer })
      : applyDecorators(
          ApiExtraModels(Pagination, ...answer.models),
          ApiOkResponse({ schema: answer.schema }),
        ),
  );
}

/** Documents a route that answers a page of a list of `item`. */
export const RespondsWithPage = (summary: string, item: Model) =>
  RespondsWith(summary, { schema: pageOf(item), models: [item] });

const PROBLEM_CODES = 'http:problems';

/** Says which problems a route can answer beside those that its access and its query imply. */
export const RespondsWithProblems =
  (...codes: readonly ProblemCode[]): MethodDecorator =>
  (_controller, _name, { value: handler }) =>
    Reflect.defineMetadata(PROBLEM_CODES, [...problemsOf(handler as object), ...codes], handler as object);

/** The codes that {@link RespondsWithProblems} says of the handler. */
export function problemsOf(handler: object): readonly ProblemCode[] {
  return (Reflect.getMetadata(PROBLEM_CODES, handler) as readonly ProblemCode[] | undefined) ?? [];
}
