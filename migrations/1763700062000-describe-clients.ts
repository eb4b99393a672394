import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What apps say of themselves on the consent page, and ID tokens in RS256 for those that know nothing else. */
export class DescribeClients1763700062000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients
  ADD COLUMN client_uri text CHECK (char_length(client_uri) <= 2048),
  ADD COLUMN policy_uri text CHECK (char_length(policy_uri) <= 2048),
  -- An image, served from here: a page for members loads nothing from an app.
  ADD COLUMN logo bytea CHECK (octet_length(logo) <= 65536),
  ADD COLUMN id_token_signed_response_alg text NOT NULL DEFAULT 'ES256'
    CHECK (id_token_signed_response_alg IN ('ES256', 'RS256'));

ALTER TABLE signing_keys DROP CONSTRAINT signing_keys_alg_check,
  ADD CONSTRAINT signing_keys_alg_check CHECK (alg IN ('ES256', 'RS256'));
DROP INDEX signing_keys_status_key;
CREATE UNIQUE INDEX signing_keys_status_key ON signing_keys (alg, status) WHERE status <> 'retired';
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM signing_keys WHERE alg <> 'ES256';
DROP INDEX signing_keys_status_key;
CREATE UNIQUE INDEX signing_keys_status_key ON signing_keys (status) WHERE status <> 'retired';
ALTER TABLE signing_keys DROP CONSTRAINT signing_keys_alg_check,
  ADD CONSTRAINT signing_keys_alg_check CHECK (alg = 'ES256');
ALTER TABLE oauth_clients DROP COLUMN client_uri, DROP COLUMN policy_uri, DROP COLUMN logo,
  DROP COLUMN id_token_signed_response_alg;
`);
  }
}
