import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Reviews of the apps that members register, and the members who test an app before its approval. */
export class ReviewApps1764910000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients
  ADD COLUMN application jsonb,
  ADD COLUMN applied_at timestamptz,
  ADD COLUMN approved_at timestamptz,
  ADD COLUMN rejection text,
  ADD COLUMN pending_changes jsonb;
CREATE TABLE app_testers (
  client_id text NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  username text NOT NULL,
  user_id bigint REFERENCES users (id) ON DELETE CASCADE,
  invited_at timestamptz NOT NULL DEFAULT now(),
  accepted_at timestamptz,
  PRIMARY KEY (client_id, username)
);
CREATE INDEX app_testers_user_id_idx ON app_testers (user_id);
INSERT INTO compatible_migrations (name) VALUES ('ReviewApps1764910000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'ReviewApps1764910000000';
DROP TABLE app_testers;
ALTER TABLE oauth_clients
  DROP COLUMN pending_changes,
  DROP COLUMN rejection,
  DROP COLUMN approved_at,
  DROP COLUMN applied_at,
  DROP COLUMN application;
`);
  }
}
