import { countField, declareField, IN_NODE, type ValueOf } from '../model/response.js';
import { Model } from '../model/json-schema.js';
import { describeFields } from '../import/fields.js';
import { RECORD_TYPES } from '../import/record-types.js';

/** A line of a feed, for the OpenAPI document; docs/operators/import.md lists the fields of each type. */
export const FeedLine = new Model('FeedLine', {
  type: declareField({
    type: 'string',
    enum: RECORD_TYPES.map(({ name }) => name),
    description: 'Type of the record: the name of its import file',
  }),
  op: declareField({
    type: 'string',
    enum: ['put', 'delete'],
    default: 'put',
    description: 'Whether the record is written or deleted',
  }).optional,
  record: declareField({
    type: 'object',
    additionalProperties: true,
    description: 'The current record with all its fields; to delete it, only the fields that identify it',
  }),
  version: declareField({
    type: ['integer', 'null'],
    format: 'int64',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description:
      'A number that increases with each change of the record; the server ignores a line unless its version is higher than the stored one',
  }).optional,
});

/** Forms of a line: for each type, a line that writes, and a line that deletes. */
export const FEED_LINE_FORMS = RECORD_TYPES.flatMap(({ name, fields, removal }) => [
  {
    title: `Write one of ${name}`,
    properties: { type: { const: name }, op: { const: 'put' }, record: describeFields(fields) },
  },
  {
    title: `Delete one of ${name}`,
    required: ['op'],
    properties: {
      type: { const: name },
      op: { const: 'delete' },
      // In a deletion, the server ignores other fields.
      record: { ...describeFields(removal.fields), additionalProperties: true },
    },
  },
]);

export const FeedCounts = new Model('FeedCounts', {
  received: countField(IN_NODE, 'Lines in the feed'),
  created: countField(IN_NODE, 'Records that were created'),
  updated: countField(IN_NODE, 'Records that were changed'),
  deleted: countField(IN_NODE, 'Records that were deleted'),
  unchanged: countField(IN_NODE, 'Records that already had these values'),
  stale: countField(
    IN_NODE,
    'Lines without effect: a later line changes the same record, or the same or a later version is stored',
  ),
});
export type FeedCounts = ValueOf<typeof FeedCounts>;
