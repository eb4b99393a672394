import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What is swept is found by an index, however much is alive beside it. Codes stay ten minutes longer than other tokens, so each
 * of the two has an index of its own. A grant ends with its last token, or an hour after it was made where no code came of
 * it: `expires_at` alone says so.
 */
export class ServeSweeping1763700010000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP INDEX oauth_tokens_expires_at_idx;
CREATE INDEX oauth_tokens_code_expires_at_idx ON oauth_tokens (expires_at) WHERE model = 'AuthorizationCode';
CREATE INDEX oauth_tokens_other_expires_at_idx ON oauth_tokens (expires_at) WHERE model <> 'AuthorizationCode';

UPDATE oauth_grants SET expires_at = now() WHERE created_at < now() - interval '1 hour' AND expires_at > now()
  AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = oauth_grants.id);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP INDEX oauth_tokens_code_expires_at_idx;
DROP INDEX oauth_tokens_other_expires_at_idx;
CREATE INDEX oauth_tokens_expires_at_idx ON oauth_tokens (expires_at);
`);
  }
}
