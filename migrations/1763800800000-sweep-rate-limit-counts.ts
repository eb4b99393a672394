import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Counts of a window have their own rows; the sweeper finds the old ones by this index. */
export class SweepRateLimitCounts1763800800000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE INDEX rate_limit_counts_window_idx ON rate_limit_counts (to_timestamp(window_number * 60));
INSERT INTO compatible_migrations (name) VALUES ('SweepRateLimitCounts1763800800000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'SweepRateLimitCounts1763800800000';
DROP INDEX rate_limit_counts_window_idx;
`);
  }
}
