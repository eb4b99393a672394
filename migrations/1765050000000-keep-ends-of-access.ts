import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The last refresh tokens of ended access, so that their apps get the reason. A trigger writes them, also if the previous version ends
 * access.
 */
export class KeepEndsOfAccess1765050000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE ended_refresh_tokens (
  key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
  -- No foreign key: a trigger writes it, also while the app is deleted.
  client_id text NOT NULL,
  ended_at timestamptz NOT NULL,
  reason text NOT NULL
);
CREATE INDEX ended_refresh_tokens_ended_at_idx ON ended_refresh_tokens (ended_at);
INSERT INTO compatible_migrations (name) VALUES ('KeepEndsOfAccess1765050000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'KeepEndsOfAccess1765050000000';
DROP FUNCTION IF EXISTS keep_end_of_access, keep_end_of_unused_access CASCADE;
DROP TABLE ended_refresh_tokens;
`);
  }
}
