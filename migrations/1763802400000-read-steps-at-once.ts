import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Reads the session and the app's consent together with the interaction of a sign-in step. */
export class ReadStepsAtOnce1763802400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_state ADD COLUMN client_id text, ADD COLUMN session_uid_key bytea;
INSERT INTO compatible_migrations (name) VALUES ('ReadStepsAtOnce1763802400000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'ReadStepsAtOnce1763802400000';
ALTER TABLE oauth_state DROP COLUMN client_id, DROP COLUMN session_uid_key;
`);
  }
}
