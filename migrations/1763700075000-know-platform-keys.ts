import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys of the platform itself, which belong to no member: their scopes are others than those of members' keys, so that neither
 * can ever do what the other may.
 */
export class KnowPlatformKeys1763700075000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE api_keys ALTER COLUMN user_id DROP NOT NULL;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_check CHECK (CASE WHEN user_id IS NULL
  THEN cardinality(scopes) > 0 AND scopes <@ ARRAY['platform:read', 'platform:write']
  ELSE NOT scopes && ARRAY['platform:read', 'platform:write'] END);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM api_key_usage WHERE key_id IN (SELECT id FROM api_keys WHERE user_id IS NULL);
DELETE FROM api_keys WHERE user_id IS NULL;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_owner_check;
ALTER TABLE api_keys ALTER COLUMN user_id SET NOT NULL;
`);
  }
}
