import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Messages to apps about their access, and the notices that an app's access ends. The previous version does not know these message types. */
export class TellAppsOfAccess1765060000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_grants ADD COLUMN ending_notified_at timestamptz, ADD COLUMN ending_told_at timestamptz;
ALTER TABLE api_keys ADD COLUMN ending_told_at timestamptz, ADD COLUMN ended_told_at timestamptz;
ALTER TABLE webhook_deliveries ADD COLUMN details jsonb;
CREATE TABLE access_changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- No foreign keys: triggers write it.
  user_id bigint NOT NULL,
  client_id text NOT NULL,
  -- Of a grant that ended.
  reason text,
  ended_at timestamptz,
  scopes text[],
  access_ends_at timestamptz
);
CREATE INDEX access_changes_user_id_idx ON access_changes (user_id, client_id);
INSERT INTO compatible_migrations (name) VALUES ('TellAppsOfAccess1765060000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'TellAppsOfAccess1765060000000';
DROP FUNCTION IF EXISTS note_changed_access, note_new_access, note_ended_access CASCADE;
DROP TABLE access_changes;
DELETE FROM webhook_deliveries WHERE details IS NOT NULL;
ALTER TABLE webhook_deliveries DROP COLUMN details;
ALTER TABLE api_keys DROP COLUMN ending_told_at, DROP COLUMN ended_told_at;
ALTER TABLE oauth_grants DROP COLUMN ending_notified_at, DROP COLUMN ending_told_at;
`);
  }
}
