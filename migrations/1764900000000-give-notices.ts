import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Notices to members: records in platform_changes, and pending emails. The previous version returns these records without their subject,
 * and sends no email.
 */
export class GiveNotices1764900000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE platform_changes
  ADD COLUMN notice text,
  ADD COLUMN name text,
  DROP CONSTRAINT platform_changes_type_check,
  ADD CONSTRAINT platform_changes_type_check
    CHECK (type IN ('profile.updated', 'consent.granted', 'consent.revoked', 'member.signed_in', 'notice')) NOT VALID;
CREATE TABLE muted_notices (
  user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  notice text NOT NULL,
  muted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, notice)
);
CREATE TABLE notice_emails (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- No foreign key: triggers write it.
  user_id bigint NOT NULL,
  notice text NOT NULL,
  name text,
  -- One of many that are due together: it waits for all others.
  is_bulk boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  -- While an instance sends it: when any instance may send it again.
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notice_emails_due_idx ON notice_emails (is_bulk, due_at);
CREATE INDEX notice_emails_user_id_idx ON notice_emails (user_id);
CREATE INDEX notice_emails_created_at_idx ON notice_emails (created_at);
ALTER TABLE api_keys ADD COLUMN ending_notified_at timestamptz;
INSERT INTO compatible_migrations (name) VALUES ('GiveNotices1764900000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'GiveNotices1764900000000';
DROP TRIGGER IF EXISTS auth_events_give_notice ON auth_events;
DROP FUNCTION IF EXISTS give_notice_of_event, give_notice CASCADE;
ALTER TABLE api_keys DROP COLUMN ending_notified_at;
DROP TABLE notice_emails;
DROP TABLE muted_notices;
DELETE FROM platform_changes WHERE type = 'notice';
ALTER TABLE platform_changes
  DROP COLUMN name,
  DROP COLUMN notice,
  DROP CONSTRAINT platform_changes_type_check,
  ADD CONSTRAINT platform_changes_type_check
    CHECK (type IN ('profile.updated', 'consent.granted', 'consent.revoked', 'member.signed_in'));
`);
  }
}
