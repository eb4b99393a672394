import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The previous version treats every value of pkce except `optional` as `required`. */
export class LetClientsGoWithoutPkce1763900200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients DROP CONSTRAINT oauth_clients_pkce_check,
  ADD CONSTRAINT oauth_clients_pkce_check CHECK (pkce IN ('required', 'optional', 'off'));
INSERT INTO compatible_migrations (name) VALUES ('LetClientsGoWithoutPkce1763900200000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'LetClientsGoWithoutPkce1763900200000';
UPDATE oauth_clients SET pkce = 'optional' WHERE pkce = 'off';
ALTER TABLE oauth_clients DROP CONSTRAINT oauth_clients_pkce_check,
  ADD CONSTRAINT oauth_clients_pkce_check CHECK (pkce IN ('required', 'optional'));
`);
  }
}
