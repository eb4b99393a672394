import { Entity } from 'typeorm';
import { jsonb, row, text, timestamptz } from '../columns.js';

/** A state of schema/ that was applied: see `applyRepeatable`. */
@Entity('schema_versions')
export class SchemaVersion extends row({
  digest: text.primary,
  /** Each statement by what DROP calls what it makes. */
  objects: jsonb.as<Readonly<Record<string, string>>>(),
  applied_at: timestamptz.sqlDefault('clock_timestamp()'),
}) {}
