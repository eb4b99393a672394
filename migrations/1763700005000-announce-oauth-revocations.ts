import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Ended grants and disabled clients are announced on the channel `revocations`, whoever ends them. */
export class AnnounceOauthRevocations1763700005000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE FUNCTION oauth_grants_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Expired ones end nothing: no credential of theirs is remembered.
  PERFORM announce_revocations('grant', (SELECT array_agg(id) FROM old_rows WHERE expires_at > now()));
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_grants_announce AFTER DELETE ON oauth_grants REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION oauth_grants_announce();

CREATE FUNCTION oauth_clients_announce_disabled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM announce_revocations('client', ARRAY[NEW.id]);
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_clients_announce_disabled AFTER UPDATE OF disabled_at ON oauth_clients FOR EACH ROW
  WHEN (OLD.disabled_at IS DISTINCT FROM NEW.disabled_at) EXECUTE FUNCTION oauth_clients_announce_disabled();
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TRIGGER oauth_clients_announce_disabled ON oauth_clients;
DROP TRIGGER oauth_grants_announce ON oauth_grants;
DROP FUNCTION oauth_clients_announce_disabled, oauth_grants_announce;
`);
  }
}
