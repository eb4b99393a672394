import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What members changed of their profile through the API, so that the platform's feed can leave it alone (--keep-profile). */
export class RememberEditedFields1763700030000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Columns of this table; a constant default rewrites no row.
ALTER TABLE users ADD COLUMN edited_fields text[] NOT NULL DEFAULT '{}';
ALTER TABLE users ADD CONSTRAINT users_edited_fields_check
  CHECK (edited_fields <@ ARRAY['first_name', 'last_name', 'bio', 'profile_picture']) NOT VALID;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE users DROP COLUMN edited_fields');
  }
}
