import { Entity, PrimaryColumn } from 'typeorm';

/** A migration that older programs are compatible with: see `readSchema`. */
@Entity('compatible_migrations')
export class CompatibleMigration {
  @PrimaryColumn('text')
  name: string;
}
