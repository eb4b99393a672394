import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * With the time in this index, PostgreSQL finds messages in progress by this index regardless of statistics, instead of by the index of
 * all messages.
 */
export class FindLeasesByTime1763802300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP INDEX webhook_deliveries_leased_idx;
CREATE INDEX webhook_deliveries_leased_idx ON webhook_deliveries (endpoint_id, leased_until) WHERE leased_until IS NOT NULL;
INSERT INTO compatible_migrations (name) VALUES ('FindLeasesByTime1763802300000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'FindLeasesByTime1763802300000';
DROP INDEX webhook_deliveries_leased_idx;
CREATE INDEX webhook_deliveries_leased_idx ON webhook_deliveries (endpoint_id) WHERE leased_until IS NOT NULL;
`);
  }
}
