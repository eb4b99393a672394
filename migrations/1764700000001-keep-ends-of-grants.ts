import type { QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

/** Older grants keep their end: 14 days after the sign-in, 180 days for a native app. The index finds ended grants. */
export class KeepEndsOfGrants1764700000001 implements SteppedMigration {
  readonly steps = [
    `UPDATE oauth_grants g SET access_ends_at =
  g.created_at + CASE c.type WHEN 'native' THEN interval '180 days' ELSE interval '14 days' END
FROM oauth_clients c WHERE c.id = g.client_id AND g.id = ANY (ARRAY(
  SELECT id FROM oauth_grants WHERE access_ends_at IS NULL ORDER BY id LIMIT 20000 FOR NO KEY UPDATE))`,
    'CREATE INDEX CONCURRENTLY oauth_grants_access_ends_at_idx ON oauth_grants (access_ends_at)',
  ];

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`INSERT INTO compatible_migrations (name) VALUES ('KeepEndsOfGrants1764700000001')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'KeepEndsOfGrants1764700000001';
DROP INDEX oauth_grants_access_ends_at_idx;
`);
  }
}
