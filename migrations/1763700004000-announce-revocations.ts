import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Whatever ends a credential is announced on the channel `revocations`, by whoever does it: the server, the command
 * line, or an admin in psql. The payload names what ended, `<kind>:<id>`, or is `all` where there are many.
 */
export class AnnounceRevocations1763700004000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE FUNCTION announce_revocations(kind text, ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(ids) > 100 THEN
    PERFORM pg_notify('revocations', 'all');
  ELSIF cardinality(ids) > 0 THEN
    PERFORM pg_notify('revocations', kind || ':' || id) FROM unnest(ids) id;
  END IF;
END $$;

CREATE FUNCTION api_keys_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM announce_revocations('key', (SELECT array_agg(id) FROM old_rows));
  RETURN NULL;
END $$;
CREATE TRIGGER api_keys_announce_update AFTER UPDATE ON api_keys REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION api_keys_announce();
CREATE TRIGGER api_keys_announce_delete AFTER DELETE ON api_keys REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION api_keys_announce();

CREATE FUNCTION users_announce_disabled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM announce_revocations('user', ARRAY[NEW.id::text]);
  RETURN NULL;
END $$;
CREATE TRIGGER users_announce_disabled AFTER UPDATE OF disabled_at ON users FOR EACH ROW
  WHEN (OLD.disabled_at IS DISTINCT FROM NEW.disabled_at) EXECUTE FUNCTION users_announce_disabled();
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TRIGGER users_announce_disabled ON users;
DROP TRIGGER api_keys_announce_update ON api_keys;
DROP TRIGGER api_keys_announce_delete ON api_keys;
DROP FUNCTION users_announce_disabled, api_keys_announce, announce_revocations;
`);
  }
}
