import { Entity } from 'typeorm';
import { row, text } from '../columns.js';

/** A migration that older programs are compatible with: see `readSchema`. */
@Entity('compatible_migrations')
export class CompatibleMigration extends row({
  name: text.primary,
}) {}
