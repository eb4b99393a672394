import type { QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

/** An index of the ending keys whose members are not yet notified. */
export class FindEndingKeys1764900002000 implements SteppedMigration {
  readonly steps = [
    `CREATE INDEX CONCURRENTLY api_keys_ending_idx ON api_keys (expires_at)
  WHERE ending_notified_at IS NULL AND revoked_at IS NULL AND replaced_by IS NULL AND user_id IS NOT NULL`,
  ];

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`INSERT INTO compatible_migrations (name) VALUES ('FindEndingKeys1764900002000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'FindEndingKeys1764900002000';
DROP INDEX api_keys_ending_idx;
`);
  }
}
