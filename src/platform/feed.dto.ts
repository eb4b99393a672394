import { ApiProperty, ApiSchema } from '../http/output/swagger.js';
import { CountField } from '../http/output/fields.js';
import { RECORD_TYPES } from '../operations/import/record-types.js';

/** A line of a feed, for the OpenAPI document; docs/import.md lists the fields of each type of record. */
@ApiSchema({ name: 'FeedLine' })
export class FeedLine {
  @ApiProperty({
    enum: RECORD_TYPES.map(({ name }) => name),
    description: 'Type of the record, named as the files of an import',
  })
  type: string;

  @ApiProperty({
    enum: ['put', 'delete'],
    default: 'put',
    required: false,
    description: 'Whether the record is written or deleted',
  })
  op?: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'The current record with all its fields; to delete it, only the fields that identify it',
  })
  record: object;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    required: false,
    description:
      'A number that increases with each change of the record; a line whose version is not higher than the stored one is ignored',
  })
  version?: number;
}

/** The outcome of a feed. */
@ApiSchema({ name: 'FeedCounts' })
export class FeedCounts {
  @CountField({ description: 'Lines in the feed' })
  received: number;

  @CountField({ description: 'Records that were created' })
  created: number;

  @CountField({ description: 'Records that were changed' })
  updated: number;

  @CountField({ description: 'Records that were deleted' })
  deleted: number;

  @CountField({ description: 'Records that already had these values' })
  unchanged: number;

  @CountField({ description: 'Records ignored because the same or a later version is already stored' })
  stale: number;
}
