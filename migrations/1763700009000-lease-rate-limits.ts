import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Instances take calls of a limit in advance: a statement that takes some has to say how many there were. */
export class LeaseRateLimits1763700009000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- used: calls that instances took, whether they were made yet or not.
-- granted: of the latest taking, how many calls there were; negative where so many were given back.
ALTER TABLE rate_limit_counts ADD COLUMN granted integer NOT NULL DEFAULT 0;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE rate_limit_counts DROP COLUMN granted');
  }
}
