import { applyDecorators } from '@nestjs/common';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiSchema,
  getSchemaPath,
} from '@nestjs/swagger';
import { BooleanField, CountField, IntegerField, TextField } from './fields.js';
import type { Model } from './fields.js';

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

/** JSON Schema of a list of `item` with its pagination. */
export function listOf(item: Model) {
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

/** Documents a route: what it does, and what its success looks like. Errors and headers are added for all. */
export function Answers(
  summary: string,
  answer: Model | { readonly schema: Record<string, unknown>; readonly models: readonly Model[] },
  { body }: { body?: Model } = {},
): MethodDecorator {
  return applyDecorators(
    ApiOperation({ summary }),
    typeof answer === 'function'
      ? ApiOkResponse({ type: answer })
      : applyDecorators(
          ApiExtraModels(Pagination, ...answer.models),
          ApiOkResponse({ schema: answer.schema }),
        ),
    ...(body ? [ApiBody({ type: body })] : []),
  );
}

/** Documents a route that answers a list of `item`. */
export const AnswersList = (summary: string, item: Model) =>
  Answers(summary, { schema: listOf(item), models: [item] });
