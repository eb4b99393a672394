import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Attempts to sign in, per account and per address, for all instances together. */
export class CreateLoginThrottle1763700003000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE login_throttle (
  -- HMAC-SHA-256 of what is throttled: no name that somebody typed and no address stands here.
  key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
  -- Since the window began, without those that succeeded.
  attempts integer NOT NULL CHECK (attempts >= 0),
  -- Of a block too. An hour later the row means nothing and may go.
  window_ends_at timestamptz NOT NULL,
  -- Blocks in a row: each is twice as long as the one before.
  blocks integer NOT NULL DEFAULT 0 CHECK (blocks >= 0)
) WITH (fillfactor = 70);
CREATE INDEX login_throttle_window_ends_at_idx ON login_throttle (window_ends_at);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE login_throttle');
  }
}
