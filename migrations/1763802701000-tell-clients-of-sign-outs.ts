import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Back-Channel Logout (OpenID Connect): the clients' URIs, the clients of each session, and the pending notices. The previous version
 * deletes a session's row to renew it, which would notify clients: set the URIs only after it has stopped.
 */
export class TellClientsOfSignOuts1763802701000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients ADD COLUMN backchannel_logout_uri text CHECK (char_length(backchannel_logout_uri) BETWEEN 1 AND 2000);
CREATE INDEX oauth_clients_backchannel_logout_idx ON oauth_clients (id) WHERE backchannel_logout_uri IS NOT NULL;
-- By client: how it knows the session (sid).
ALTER TABLE oauth_sessions ADD COLUMN clients jsonb NOT NULL DEFAULT '{}';
CREATE TABLE oauth_logouts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client_id text NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  -- No foreign key: a session also ends with its member.
  user_id bigint NOT NULL,
  sid text NOT NULL,
  ended_at timestamptz NOT NULL DEFAULT now(),
  -- Started attempts.
  attempts integer NOT NULL DEFAULT 0,
  -- While an instance sends it: when any instance may send it again.
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX oauth_logouts_due_idx ON oauth_logouts (client_id, due_at);
CREATE INDEX oauth_logouts_user_idx ON oauth_logouts (user_id);
CREATE INDEX oauth_logouts_ended_at_idx ON oauth_logouts (ended_at);
INSERT INTO compatible_migrations (name) VALUES ('TellClientsOfSignOuts1763802701000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'TellClientsOfSignOuts1763802701000';
DROP FUNCTION IF EXISTS tell_clients CASCADE;
DROP TABLE oauth_logouts;
ALTER TABLE oauth_sessions DROP COLUMN clients;
ALTER TABLE oauth_clients DROP COLUMN backchannel_logout_uri;
`);
  }
}
