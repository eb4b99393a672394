import { applyDecorators } from '@nestjs/common';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiProperty,
  ApiSchema,
  getSchemaPath,
} from '@nestjs/swagger';

type Model = new () => object;

@ApiSchema({ name: 'Pagination' })
export class Pagination {
  @ApiProperty({ type: 'integer', minimum: 1, maximum: 100 })
  limit: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Items of this page' })
  count: number;

  @ApiProperty({ type: 'integer', minimum: 0, description: 'Items of all pages, exact' })
  total: number;

  @ApiProperty({ description: 'Whether a next page exists' })
  has_more: boolean;

  @ApiProperty({ type: String, nullable: true })
  next_cursor: string | null;

  @ApiProperty({ type: String, nullable: true })
  prev_cursor: string | null;

  @ApiProperty()
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
