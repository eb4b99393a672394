import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Apps and keys that members registered for themselves, and the last requests of each, which they look for faults in. */
export class KnowDevelopers1763700110000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients
  -- The member who registered it; NULL for one that an admin registered, or that a document describes.
  ADD COLUMN owner_id bigint REFERENCES users (id),
  -- Whoever else disabled it, its owner cannot enable it.
  ADD COLUMN disabled_by_owner boolean NOT NULL DEFAULT false;
CREATE INDEX oauth_clients_owner_id_idx ON oauth_clients (owner_id) WHERE owner_id IS NOT NULL;

ALTER TABLE api_keys
  -- The member made it for themselves.
  ADD COLUMN self_issued boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT api_keys_self_issued_check CHECK (NOT self_issued OR (user_id IS NOT NULL AND expires_at IS NOT NULL));

-- The apps of a member who is disabled are disabled with them, whoever disables them.
CREATE FUNCTION oauth_clients_end_with_owner() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE oauth_clients SET disabled_at = COALESCE(disabled_at, now()), disabled_by_owner = false
    WHERE owner_id = NEW.id AND (disabled_at IS NULL OR disabled_by_owner);
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_clients_end_with_owner AFTER UPDATE OF disabled_at ON users FOR EACH ROW
  WHEN (OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL) EXECUTE FUNCTION oauth_clients_end_with_owner();
ALTER TABLE users ENABLE ALWAYS TRIGGER oauth_clients_end_with_owner;

-- The last requests of apps and keys whose developer is a member. Nothing of the member for whom they were made, and no secret.
CREATE TABLE developer_requests (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client_id text REFERENCES oauth_clients (id) ON DELETE CASCADE,
  key_id text REFERENCES api_keys (id) ON DELETE CASCADE,
  occurred_at timestamptz NOT NULL,
  method text NOT NULL CHECK (octet_length(method) <= 20),
  route text NOT NULL CHECK (octet_length(route) <= 100),
  status smallint NOT NULL,
  -- Code of the problem, or of the OAuth error.
  error text CHECK (octet_length(error) <= 64),
  -- Why, in a word of ours.
  reason text CHECK (octet_length(reason) <= 64),
  -- What of the request it was about, and that as it was sent, without what could be a secret.
  parameter text CHECK (octet_length(parameter) <= 64),
  value text CHECK (octet_length(value) <= 300),
  -- As the response showed it.
  error_id text CHECK (octet_length(error_id) <= 64),
  CONSTRAINT developer_requests_app_check CHECK (num_nonnulls(client_id, key_id) = 1)
);
CREATE INDEX developer_requests_client_id_idx ON developer_requests (client_id, occurred_at DESC, id DESC)
  WHERE client_id IS NOT NULL;
CREATE INDEX developer_requests_key_id_idx ON developer_requests (key_id, occurred_at DESC, id DESC)
  WHERE key_id IS NOT NULL;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Nobody reviewed them, and nothing tells them from those of an admin any more.
UPDATE oauth_clients SET disabled_at = COALESCE(disabled_at, now()) WHERE owner_id IS NOT NULL;
DROP TABLE developer_requests;
DROP TRIGGER oauth_clients_end_with_owner ON users;
DROP FUNCTION oauth_clients_end_with_owner;
ALTER TABLE api_keys DROP COLUMN self_issued;
ALTER TABLE oauth_clients DROP COLUMN disabled_by_owner, DROP COLUMN owner_id;
`);
  }
}
