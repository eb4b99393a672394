import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What feeds need to be sent again, and to cross one another, without undoing anything. */
export class KeepRecordVersions1763700076000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Versions that came with records of feeds, also of records that are gone, so that a message that comes late brings none back.
CREATE TABLE record_versions (
  type text NOT NULL,
  -- Of records that are a member's; 0 for others.
  user_id bigint NOT NULL,
  id bigint NOT NULL,
  version bigint NOT NULL CHECK (version BETWEEN 0 AND 9007199254740991),
  PRIMARY KEY (type, user_id, id)
) WITH (fillfactor = 80);

-- What was answered to requests with an Idempotency-Key, for a day.
CREATE TABLE idempotent_responses (
  key_id text NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
  idempotency_key text NOT NULL CHECK (idempotency_key ~ '^[!-~]{1,200}$'),
  -- SHA-256.
  body_hash bytea NOT NULL CHECK (octet_length(body_hash) = 32),
  response jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (key_id, idempotency_key)
);
CREATE INDEX idempotent_responses_created_at_idx ON idempotent_responses (created_at);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE idempotent_responses, record_versions');
  }
}
