import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Passkeys (WebAuthn), and a password that its member has switched off: the hash stays, and opens nothing. An older program knows
 * neither: until it is gone it takes such a password still.
 */
export class KnowPasskeys1763700082000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE users ADD COLUMN password_off_at timestamptz;
CREATE TABLE passkeys (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
  user_handle bytea NOT NULL CHECK (octet_length(user_handle) BETWEEN 1 AND 64),
  public_key bytea NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 2048),
  sign_count bigint NOT NULL CHECK (sign_count BETWEEN 0 AND 4294967295),
  transports text[] NOT NULL DEFAULT '{}' CHECK (cardinality(transports) <= 10),
  backup_eligible boolean NOT NULL,
  backed_up boolean NOT NULL,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz
);
CREATE INDEX passkeys_user_id_idx ON passkeys (user_id, id);
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check CHECK (model IN ('Interaction', 'PushedAuthorizationRequest',
  'ReplayDetection', 'UpstreamSignIn', 'PasskeySignIn', 'PasskeyRegistration'));
INSERT INTO compatible_migrations (name) VALUES ('KnowPasskeys1763700082000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM oauth_state WHERE model IN ('PasskeySignIn', 'PasskeyRegistration');
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check
  CHECK (model IN ('Interaction', 'PushedAuthorizationRequest', 'ReplayDetection', 'UpstreamSignIn'));
DROP TABLE passkeys;
ALTER TABLE users DROP COLUMN password_off_at;
DELETE FROM compatible_migrations WHERE name = 'KnowPasskeys1763700082000';
`);
  }
}
