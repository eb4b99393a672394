import { ApiProperty, ApiSchema } from '../http/output/swagger.js';
import { CountField } from '../http/output/fields.js';
import { RECORD_TYPES } from '../operations/import/record-types.js';

/** A line of a feed, for the OpenAPI document: what a record may hold stands in docs/import.md, by type. */
@ApiSchema({ name: 'FeedLine' })
export class FeedLine {
  @ApiProperty({
    enum: RECORD_TYPES.map(({ name }) => name),
    description: 'What the record is, as the files of an import are called',
  })
  type: string;

  @ApiProperty({
    enum: ['put', 'delete'],
    default: 'put',
    required: false,
    description: 'What becomes of it',
  })
  op?: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'The record as it is now, with all its fields; to delete it, what names it',
  })
  record: object;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    required: false,
    description:
      'A number that grows with each change of the record: what is not newer than what is there is ignored',
  })
  version?: number;
}

/** What became of the lines of a feed. */
@ApiSchema({ name: 'FeedCounts' })
export class FeedCounts {
  @CountField({ description: 'Lines of the feed' })
  received: number;

  @CountField({ description: 'Records that were not there' })
  created: number;

  @CountField({ description: 'Records that were changed' })
  updated: number;

  @CountField({ description: 'Records that were deleted' })
  deleted: number;

  @CountField({ description: 'Records that were so already' })
  unchanged: number;

  @CountField({ description: 'Records that are here in the same or a later version, and were ignored' })
  stale: number;
}
