import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Members who are erased (GDPR art. 17) leave their id, which events and the audit trail refer to, and nothing else. An import
 * cannot bring them back by mistake.
 */
export class EraseUsers1763700032000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE users ADD COLUMN erased_at timestamptz;
ALTER TABLE users ADD CONSTRAINT users_erased_check CHECK (erased_at IS NULL OR (disabled_at IS NOT NULL
  AND username = 'erased-' || id
  AND num_nonnulls(password_hash, first_name, last_name, stored_display_name, bio, profile_picture) = 0)) NOT VALID;

-- Of what an erased member did the trail keeps who, what and when. Nothing else is ever changed in it.
DROP TRIGGER auth_events_are_never_changed ON auth_events;
CREATE TRIGGER auth_events_are_never_emptied BEFORE TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_refuse();
CREATE FUNCTION auth_events_refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  erased auth_events := OLD;
BEGIN
  erased.ip := NULL;
  erased.details := '{}';
  IF NEW IS DISTINCT FROM erased OR NOT EXISTS (SELECT FROM users WHERE id = OLD.user_id AND erased_at IS NOT NULL) THEN
    RAISE EXCEPTION 'auth_events: UPDATE is refused, but for what is erased with a member';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER auth_events_are_never_changed BEFORE UPDATE ON auth_events
  FOR EACH ROW EXECUTE FUNCTION auth_events_refuse_change();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_emptied,
  ENABLE ALWAYS TRIGGER auth_events_are_never_changed;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TRIGGER auth_events_are_never_changed ON auth_events;
DROP TRIGGER auth_events_are_never_emptied ON auth_events;
DROP FUNCTION auth_events_refuse_change;
CREATE TRIGGER auth_events_are_never_changed BEFORE UPDATE OR TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_refuse();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_changed;
ALTER TABLE users DROP COLUMN erased_at;
`);
  }
}
