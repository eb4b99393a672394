import type { QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

/** Indexes of the ending grants whose members or apps are not yet notified. */
export class FindEndingAccess1765060001000 implements SteppedMigration {
  readonly steps = [
    'CREATE INDEX CONCURRENTLY oauth_grants_ending_idx ON oauth_grants (access_ends_at) WHERE ending_notified_at IS NULL',
    'CREATE INDEX CONCURRENTLY oauth_grants_untold_idx ON oauth_grants (client_id, access_ends_at) WHERE ending_told_at IS NULL',
  ];

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`INSERT INTO compatible_migrations (name) VALUES ('FindEndingAccess1765060001000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'FindEndingAccess1765060001000';
DROP INDEX oauth_grants_ending_idx;
DROP INDEX oauth_grants_untold_idx;
`);
  }
}
