import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What the member saw of an app that nobody reviewed, as a digest: a consent counts only for the app that it shows. Consents from before
 * have none, so such apps are asked about once more. The previous version does not look at it.
 */
export class RememberSeenApps1764200000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_consents ADD COLUMN seen_as text;
INSERT INTO compatible_migrations (name) VALUES ('RememberSeenApps1764200000001');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'RememberSeenApps1764200000001';
ALTER TABLE oauth_consents DROP COLUMN seen_as;
`);
  }
}
