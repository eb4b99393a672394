import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The throttle tells attempts that failed from those whose outcome is not known yet, and the kinds of imported password
 * hashes are found without reading every member.
 */
export class TellFailuresFromWhatIsUnderWay1763700008000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE login_throttle
  -- Of the attempts, those under way: when each of them counts as a failure, because nobody settled it (a server that was killed).
  ADD COLUMN under_way timestamptz[] NOT NULL DEFAULT '{}';

-- The parameters of a hash that another system made, which say how long it takes to verify: $2b$12, or
-- $argon2id$v=19$m=65536,t=3,p=4. NULL for our own and for what is no hash.
CREATE FUNCTION imported_hash_kind(password_hash text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN password_hash NOT LIKE '$argon2id$v=19$m=19456,t=2,p=1$%'
    THEN substring(password_hash FROM '^(\\$2[aby]\\$\\d\\d|\\$argon2(?:id|i|d)\\$v=\\d\\d\\$m=\\d{1,7},t=\\d{1,3},p=\\d{1,3})\\$') END
$$;
CREATE INDEX users_imported_hash_kind_idx ON users (imported_hash_kind(password_hash))
  WHERE imported_hash_kind(password_hash) IS NOT NULL;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP INDEX users_imported_hash_kind_idx;
DROP FUNCTION imported_hash_kind;
ALTER TABLE login_throttle DROP COLUMN under_way;
`);
  }
}
