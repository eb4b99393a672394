import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What instances counted together in the current minute. Unlogged: after a crash a window starts from nothing. */
export class CreateRateLimitCounts1763700006000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE UNLOGGED TABLE rate_limit_counts (
  key text PRIMARY KEY,
  -- Minutes since 1970.
  window_number bigint NOT NULL,
  used integer NOT NULL
) WITH (fillfactor = 50);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE rate_limit_counts');
  }
}
