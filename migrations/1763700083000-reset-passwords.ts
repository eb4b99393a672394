import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Where a member is sent a mail with which they set a new password: no API shows the address. An older program leaves it empty, and knows
 * nothing of it.
 */
export class ResetPasswords1763700083000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE users ADD COLUMN email text CHECK (char_length(email) BETWEEN 3 AND 254);
ALTER TABLE users ADD CONSTRAINT users_erased_email_check CHECK (erased_at IS NULL OR email IS NULL);
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check CHECK (model IN ('Interaction', 'PushedAuthorizationRequest',
  'ReplayDetection', 'UpstreamSignIn', 'PasskeySignIn', 'PasskeyRegistration', 'PasswordReset'));
INSERT INTO compatible_migrations (name) VALUES ('ResetPasswords1763700083000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM oauth_state WHERE model = 'PasswordReset';
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check CHECK (model IN ('Interaction', 'PushedAuthorizationRequest',
  'ReplayDetection', 'UpstreamSignIn', 'PasskeySignIn', 'PasskeyRegistration'));
ALTER TABLE users DROP COLUMN email;
DELETE FROM compatible_migrations WHERE name = 'ResetPasswords1763700083000';
`);
  }
}
