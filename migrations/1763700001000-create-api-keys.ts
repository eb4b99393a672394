import type { MigrationInterface, QueryRunner } from 'typeorm';

/** API keys with their use, and the audit trail. */
export class CreateApiKeys1763700001000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE api_keys (
  id text PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{12}$'),
  user_id bigint NOT NULL REFERENCES users (id),
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  environment text NOT NULL CHECK (environment IN ('live', 'test')),
  scopes text[] NOT NULL,
  -- HMAC-SHA-256 of the whole key; pepper_id tells with which pepper.
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  pepper_id bytea NOT NULL CHECK (octet_length(pepper_id) = 4),
  last_four text NOT NULL CHECK (char_length(last_four) = 4),
  allowed_cidrs cidr[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  -- NULL only where an admin gave a reason for a key without an end.
  expires_at timestamptz,
  no_expiry_reason text CHECK (char_length(no_expiry_reason) BETWEEN 1 AND 500),
  revoked_at timestamptz,
  revocation_reason text CHECK (char_length(revocation_reason) BETWEEN 1 AND 500),
  replaced_by text REFERENCES api_keys (id),
  CONSTRAINT api_keys_expiry_check CHECK ((expires_at IS NULL) = (no_expiry_reason IS NOT NULL) OR replaced_by IS NOT NULL),
  CONSTRAINT api_keys_revocation_check CHECK ((revoked_at IS NULL) = (revocation_reason IS NULL))
);
CREATE INDEX api_keys_user_id_idx ON api_keys (user_id, created_at);
CREATE INDEX api_keys_created_at_idx ON api_keys (created_at);

-- Written in batches, apart from api_keys, so that use never rewrites a credential's row.
CREATE TABLE api_key_usage (
  key_id text PRIMARY KEY REFERENCES api_keys (id),
  last_used_at timestamptz,
  last_used_ip inet,
  uses_count bigint NOT NULL DEFAULT 0,
  -- When the key was first seen in a browser, and on which page's origin.
  exposed_at timestamptz,
  exposed_origin text CHECK (char_length(exposed_origin) <= 300)
) WITH (fillfactor = 70);

CREATE TABLE auth_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  occurred_at timestamptz NOT NULL DEFAULT now(),
  type text NOT NULL CHECK (type ~ '^[a-z_]+\\.[a-z_]+$'),
  -- Who did it: 'user', 'client', 'admin' (the command line) or 'system'.
  actor text NOT NULL CHECK (actor IN ('user', 'client', 'admin', 'system')),
  user_id bigint,
  client_id text,
  key_id text,
  ip inet,
  error_id text,
  details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX auth_events_occurred_at_idx ON auth_events (occurred_at DESC, id DESC);
CREATE INDEX auth_events_user_id_idx ON auth_events (user_id, occurred_at DESC);

CREATE FUNCTION auth_events_are_insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'auth_events is insert only';
END $$;
CREATE TRIGGER auth_events_are_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_are_insert_only();
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TABLE auth_events, api_key_usage, api_keys;
DROP FUNCTION auth_events_are_insert_only;
`);
  }
}
