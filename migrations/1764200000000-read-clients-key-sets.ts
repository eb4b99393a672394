import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The URL of a client's keys, read again if it signs with an unknown key, and whether its signature is optional. The previous version uses
 * the stored keys and always requires the signature.
 */
export class ReadClientsKeySets1764200000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients ADD COLUMN jwks_uri text, ADD COLUMN assertion_optional boolean NOT NULL DEFAULT false;
INSERT INTO compatible_migrations (name) VALUES ('ReadClientsKeySets1764200000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'ReadClientsKeySets1764200000000';
ALTER TABLE oauth_clients DROP COLUMN jwks_uri, DROP COLUMN assertion_optional;
`);
  }
}
