import { Entity } from 'typeorm';
import { jsonb, row, anyText, timestamptz } from '../../../model/column.js';

/** A migration with which older versions can run: see `readSchema`. */
@Entity('compatible_migrations')
export class CompatibleMigration extends row({
  name: anyText.primary,
}) {}

/** An applied state of schema/: see `applyRepeatable`. */
@Entity('schema_versions')
export class SchemaVersion extends row({
  digest: anyText.primary,
  /** Statements of schema/ by the created object's name, as in a DROP statement. */
  objects: jsonb.as<Readonly<Record<string, string>>>(),
  applied_at: timestamptz.sqlDefault('clock_timestamp()'),
}) {}
