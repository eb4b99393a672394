import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The changes whose webhook messages are created in slices. The previous version leaves these changes to this version. */
export class TellCrowdsInSlices1765060002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE change_places ADD COLUMN unfinished jsonb;
INSERT INTO compatible_migrations (name) VALUES ('TellCrowdsInSlices1765060002000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'TellCrowdsInSlices1765060002000';
ALTER TABLE change_places DROP COLUMN unfinished;
`);
  }
}
