import { CountField } from '../http/output/fields.js';
import { Described, Schema } from '../http/output/schema.js';
import { schemaOf } from '../operations/import/fields.js';
import { RECORD_TYPES } from '../operations/import/record-types.js';

/** A line of a feed, for the OpenAPI document; docs/import.md lists the fields of each type of record. */
@Schema('FeedLine')
export class FeedLine {
  @Described({
    type: 'string',
    enum: RECORD_TYPES.map(({ name }) => name),
    description: 'Type of the record, named as the files of an import',
  })
  type: string;

  @Described(
    {
      type: 'string',
      enum: ['put', 'delete'],
      default: 'put',
      description: 'Whether the record is written or deleted',
    },
    { required: false },
  )
  op?: string;

  @Described({
    type: 'object',
    additionalProperties: true,
    description: 'The current record with all its fields; to delete it, only the fields that identify it',
  })
  record: object;

  @Described(
    {
      type: ['integer', 'null'],
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'A number that increases with each change of the record; a line whose version is not higher than the stored one is ignored',
    },
    { required: false },
  )
  version?: number;
}

/** Its forms: what is written of each type, and what is deleted. */
export const FEED_LINE_FORMS = RECORD_TYPES.flatMap(({ name, fields, removal }) => [
  {
    title: `Write one of ${name}`,
    properties: { type: { const: name }, op: { const: 'put' }, record: schemaOf(fields) },
  },
  {
    title: `Delete one of ${name}`,
    required: ['op'],
    properties: {
      type: { const: name },
      op: { const: 'delete' },
      // Other fields are ignored.
      record: { ...schemaOf(removal.fields), additionalProperties: true },
    },
  },
]);

/** The outcome of a feed. */
@Schema('FeedCounts')
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

  @CountField({
    description:
      'Lines without effect: a later line is about the same record, or the same or a later version is stored',
  })
  stale: number;
}
