import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which instances share the counts of limits: one that is alone need not ask for each call. */
export class KnowInstances1763700050000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- One row, so that instances that come at the same moment see one another. Unlogged, as the counts: after a crash nobody
-- is alone until all have had time to say that they are there.
CREATE UNLOGGED TABLE rate_limit_instances (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- The instance that was heard last, unless one is alone: then that one.
  latest uuid NOT NULL,
  latest_until timestamptz NOT NULL,
  -- Until when any other is to be reckoned with.
  others_until timestamptz NOT NULL,
  -- The latest one counts by itself until latest_until.
  alone boolean NOT NULL
) WITH (fillfactor = 50);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE rate_limit_instances');
  }
}
