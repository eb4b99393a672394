import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What another system calls a member, such as the subject of the platform's own OpenID provider: the platform's login is matched with
 * members by it. An older program leaves it empty, and knows nothing of it.
 */
export class KnowExternalIds1763700080000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE users ADD COLUMN external_id text CHECK (char_length(external_id) BETWEEN 1 AND 255);
ALTER TABLE users ADD CONSTRAINT users_external_id_key UNIQUE (external_id);
ALTER TABLE users ADD CONSTRAINT users_erased_external_id_check CHECK (erased_at IS NULL OR external_id IS NULL);
INSERT INTO compatible_migrations (name) VALUES ('KnowExternalIds1763700080000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE users DROP COLUMN external_id;
DELETE FROM compatible_migrations WHERE name = 'KnowExternalIds1763700080000';
`);
  }
}
