import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Sign-ins with the platform's own login: what is kept until its answer comes, and which browser sessions came of which session there,
 * so that it can end them (OpenID Connect Back-Channel Logout 1.0). An older program stores neither.
 */
export class KnowUpstreamSessions1763700081000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check
  CHECK (model IN ('Interaction', 'PushedAuthorizationRequest', 'ReplayDetection', 'UpstreamSignIn'));
-- HMACs of sub and sid, as the platform's own login calls the member and the session.
ALTER TABLE oauth_sessions ADD COLUMN upstream_subject_key bytea CHECK (octet_length(upstream_subject_key) = 32);
ALTER TABLE oauth_sessions ADD COLUMN upstream_session_key bytea CHECK (octet_length(upstream_session_key) = 32);
CREATE INDEX oauth_sessions_upstream_subject_key_idx ON oauth_sessions (upstream_subject_key) WHERE upstream_subject_key IS NOT NULL;
CREATE INDEX oauth_sessions_upstream_session_key_idx ON oauth_sessions (upstream_session_key) WHERE upstream_session_key IS NOT NULL;
INSERT INTO compatible_migrations (name) VALUES ('KnowUpstreamSessions1763700081000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM oauth_state WHERE model = 'UpstreamSignIn';
ALTER TABLE oauth_state DROP CONSTRAINT oauth_state_model_check;
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check
  CHECK (model IN ('Interaction', 'PushedAuthorizationRequest', 'ReplayDetection'));
ALTER TABLE oauth_sessions DROP COLUMN upstream_subject_key, DROP COLUMN upstream_session_key;
DELETE FROM compatible_migrations WHERE name = 'KnowUpstreamSessions1763700081000';
`);
  }
}
