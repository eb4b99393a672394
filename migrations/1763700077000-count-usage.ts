import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which app or key read or wrote what of a member, counted by day: what members see of it, 90 days back. */
export class CountUsage1763700077000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE member_usage (
  user_id bigint NOT NULL REFERENCES users (id),
  -- In UTC.
  day date NOT NULL,
  -- 'client' or 'key', and its id. No foreign key: what was used stays known when the app is gone.
  app_kind text NOT NULL CHECK (app_kind IN ('client', 'key')),
  app_id text NOT NULL,
  scope text NOT NULL,
  -- Requests that were answered; what was refused is no use.
  uses bigint NOT NULL CHECK (uses > 0),
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, day, app_kind, app_id, scope)
) WITH (fillfactor = 70);
CREATE INDEX member_usage_day_idx ON member_usage (day);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE member_usage');
  }
}
