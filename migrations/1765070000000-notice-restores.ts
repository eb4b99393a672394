import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Two more positions: by `identity`, the server notices that its database was restored, and `restored` says when. */
export class NoticeRestores1765070000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE change_places DROP CONSTRAINT change_places_name_check, ADD CONSTRAINT change_places_name_check
  CHECK (name IN ('coalesced', 'swept', 'told', 'platform_swept', 'restored', 'identity'));
INSERT INTO compatible_migrations (name) VALUES ('NoticeRestores1765070000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'NoticeRestores1765070000000';
DELETE FROM change_places WHERE name IN ('restored', 'identity');
ALTER TABLE change_places DROP CONSTRAINT change_places_name_check, ADD CONSTRAINT change_places_name_check
  CHECK (name IN ('coalesced', 'swept', 'told', 'platform_swept'));
`);
  }
}
