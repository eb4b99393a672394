import { Entity, PrimaryColumn } from 'typeorm';

/** A migration over which older programs may go on working: see `readSchema`. */
@Entity('compatible_migrations')
export class CompatibleMigration {
  @PrimaryColumn('text')
  name: string;
}
