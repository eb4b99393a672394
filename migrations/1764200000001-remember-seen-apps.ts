import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A digest of an unreviewed app as the consent page showed it: the consent counts only for that app. Older consents have no digest, so
 * the page asks again. The previous version ignores the digest.
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
