import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Hashes of ours are made with these parameters; all others are looked for by their kind until a sign-in replaces them. */
const BEFORE = '$argon2id$v=19$m=19456,t=2,p=1$';
const NOW = '$argon2id$v=19$m=12288,t=3,p=1$';

/**
 * Our own password hashes are made with other parameters, as strong as before: those of before are found as imported ones are. An
 * older program beside a newer one takes the newer one's hashes for imported ones, and replaces each at a sign-in of its own.
 */
export class KnowOwnPasswordHashes1763700040000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
${ofOthersThan(NOW)}
INSERT INTO compatible_migrations (name) VALUES ('KnowOwnPasswordHashes1763700040000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
${ofOthersThan(BEFORE)}
DELETE FROM compatible_migrations WHERE name = 'KnowOwnPasswordHashes1763700040000';
`);
  }
}

/** The index goes first: PostgreSQL would not notice that what it holds is no longer what the function says. */
function ofOthersThan(own: string): string {
  return `
DROP INDEX users_imported_hash_kind_idx;
CREATE OR REPLACE FUNCTION imported_hash_kind(password_hash text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN password_hash NOT LIKE '${own}%'
    THEN substring(password_hash FROM '^(\\$2[aby]\\$\\d\\d|\\$argon2(?:id|i|d)\\$v=\\d\\d\\$m=\\d{1,7},t=\\d{1,3},p=\\d{1,3})\\$') END
$$;
CREATE INDEX users_imported_hash_kind_idx ON users (imported_hash_kind(password_hash))
  WHERE imported_hash_kind(password_hash) IS NOT NULL;`;
}
