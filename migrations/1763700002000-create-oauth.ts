import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The authorization server: clients, consents, grants with their tokens, browser sessions, transient state, keys. */
export class CreateOauth1763700002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE oauth_clients (
  id text PRIMARY KEY CHECK (id ~ '^[\\x21-\\x7e]{1,100}$'),
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  type text NOT NULL CHECK (type IN ('web', 'native')),
  redirect_uris text[] NOT NULL CHECK (cardinality(redirect_uris) BETWEEN 1 AND 50),
  post_logout_redirect_uris text[] NOT NULL DEFAULT '{}' CHECK (cardinality(post_logout_redirect_uris) <= 50),
  -- Origins whose pages may call the token endpoint.
  allowed_origins text[] NOT NULL DEFAULT '{}' CHECK (cardinality(allowed_origins) <= 50),
  -- What it may ask of the API.
  scopes text[] NOT NULL,
  -- Public keys of a confidential client (private_key_jwt); NULL for a public one.
  jwks jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  disabled_at timestamptz
);

-- What a member answered when this client asked last; unticked scopes are remembered as rejected.
CREATE TABLE oauth_consents (
  user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  client_id text NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  granted text[] NOT NULL,
  rejected text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, client_id)
);
CREATE INDEX oauth_consents_client_id_idx ON oauth_consents (client_id);

-- One sign-in of one member in one client on one device: a family of tokens. Deleting the row revokes them all.
CREATE TABLE oauth_grants (
  id text PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  client_id text NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX oauth_grants_user_id_idx ON oauth_grants (user_id, client_id);
CREATE INDEX oauth_grants_client_id_idx ON oauth_grants (client_id);
CREATE INDEX oauth_grants_expires_at_idx ON oauth_grants (expires_at);

-- Written in batches, apart from oauth_grants, so that use never waits for a refresh or a revocation.
CREATE TABLE oauth_grant_usage (
  grant_id text PRIMARY KEY REFERENCES oauth_grants (id) ON DELETE CASCADE,
  last_used_at timestamptz NOT NULL
) WITH (fillfactor = 70);

-- Authorization codes, access and refresh tokens. The key is an HMAC of the secret, which is stored nowhere.
CREATE TABLE oauth_tokens (
  key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
  model text NOT NULL CHECK (model IN ('AuthorizationCode', 'AccessToken', 'RefreshToken')),
  -- A token that is minted after its grant was revoked cannot be stored.
  grant_id text NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  consumed_at timestamptz,
  expires_at timestamptz NOT NULL,
  -- The answer to the refresh that consumed this token, under a key that only the token itself gives.
  successor bytea
) WITH (fillfactor = 90);
CREATE INDEX oauth_tokens_grant_id_idx ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_expires_at_idx ON oauth_tokens (expires_at);

-- Browser sessions. Their id changes at every sign-in, their uid does not.
CREATE TABLE oauth_sessions (
  uid_key bytea PRIMARY KEY CHECK (octet_length(uid_key) = 32),
  key bytea NOT NULL UNIQUE CHECK (octet_length(key) = 32),
  -- How forms and logs name the session: it opens nothing.
  public_id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
  user_id bigint REFERENCES users (id) ON DELETE CASCADE,
  payload bytea NOT NULL,
  signed_in_at timestamptz,
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  user_agent text CHECK (char_length(user_agent) <= 300),
  ip inet
) WITH (fillfactor = 80);
CREATE INDEX oauth_sessions_user_id_idx ON oauth_sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX oauth_sessions_expires_at_idx ON oauth_sessions (expires_at);

-- What lives for minutes: interactions, pushed authorization requests, ids of proofs that were used.
CREATE TABLE oauth_state (
  key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
  model text NOT NULL CHECK (model IN ('Interaction', 'PushedAuthorizationRequest', 'ReplayDetection')),
  -- Encrypted; NULL where only the key matters.
  payload bytea,
  consumed_at timestamptz,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 90);
CREATE INDEX oauth_state_expires_at_idx ON oauth_state (expires_at);

CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  -- next: published before it signs; current: signs; previous: published until what it signed has expired; retired.
  status text NOT NULL CHECK (status IN ('next', 'current', 'previous', 'retired')),
  alg text NOT NULL CHECK (alg = 'ES256'),
  public_jwk jsonb NOT NULL,
  -- Encrypted; deleted when the key signs no longer.
  private_jwk bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  activated_at timestamptz,
  retired_at timestamptz,
  CONSTRAINT signing_keys_private_check CHECK ((private_jwk IS NULL) = (status = 'retired'))
);
CREATE UNIQUE INDEX signing_keys_status_key ON signing_keys (status) WHERE status <> 'retired';

-- A disabled member is signed out everywhere, whoever disables them and however.
CREATE FUNCTION end_access_of_disabled_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM oauth_grants WHERE user_id = NEW.id;
  DELETE FROM oauth_sessions WHERE user_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER end_access_of_disabled_user AFTER UPDATE OF disabled_at ON users
  FOR EACH ROW WHEN (OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL)
  EXECUTE FUNCTION end_access_of_disabled_user();
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TRIGGER end_access_of_disabled_user ON users;
DROP FUNCTION end_access_of_disabled_user;
DROP TABLE signing_keys, oauth_state, oauth_sessions, oauth_tokens, oauth_grant_usage, oauth_grants, oauth_consents, oauth_clients;
`);
  }
}
