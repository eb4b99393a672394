import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A narrower consent narrows all its grants and notifies the instances. A consent stores the origins that may get codes; NULL means the
 * origins that the app had at the time of consent.
 */
export class NarrowGrants1763800500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_consents ADD COLUMN redirect_origins text[];

-- A grant is stored while its consent is locked FOR SHARE: here it is found, or waits and sees the narrower consent.
CREATE FUNCTION narrow_grants() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  changed text[];
BEGIN
  WITH narrowed AS (
    UPDATE oauth_grants g SET payload = jsonb_set(g.payload, '{resources}', (
      SELECT jsonb_object_agg(key, array_to_string(
        ARRAY(SELECT scope FROM unnest(string_to_array(value, ' ')) scope WHERE scope = ANY (NEW.granted)), ' '))
      FROM jsonb_each_text(g.payload->'resources')))
    WHERE g.user_id = NEW.user_id AND g.client_id = NEW.client_id AND EXISTS (
      SELECT FROM jsonb_each_text(g.payload->'resources') WHERE NOT string_to_array(value, ' ') <@ NEW.granted)
    RETURNING g.id
  ) SELECT array_agg(id) INTO changed FROM narrowed;
  PERFORM announce_revocations('grant', changed);
  RETURN NULL;
END $$;
CREATE TRIGGER narrow_grants AFTER UPDATE OF granted ON oauth_consents FOR EACH ROW
  WHEN (NOT OLD.granted <@ NEW.granted) EXECUTE FUNCTION narrow_grants();
ALTER TABLE oauth_consents ENABLE ALWAYS TRIGGER narrow_grants;

INSERT INTO compatible_migrations (name) VALUES ('NarrowGrants1763800500000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'NarrowGrants1763800500000';
DROP TRIGGER narrow_grants ON oauth_consents;
DROP FUNCTION narrow_grants;
ALTER TABLE oauth_consents DROP COLUMN redirect_origins`);
  }
}
