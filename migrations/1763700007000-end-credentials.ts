import type { MigrationInterface, QueryRunner } from 'typeorm';

const CREDENTIAL_TABLES = ['users', 'api_keys', 'oauth_clients', 'oauth_grants', 'oauth_tokens'];

/** Triggers on which it depends that credentials end, and that instances hear of it. */
const ALWAYS = [
  ['api_keys', 'api_keys_announce_update'],
  ['api_keys', 'api_keys_announce_delete'],
  ['users', 'users_announce_disabled'],
  ['users', 'users_move_sign_ins_valid_since'],
  ['users', 'end_sign_ins'],
  ['oauth_grants', 'oauth_grants_announce'],
  ['oauth_clients', 'oauth_clients_announce_disabled'],
  ['oauth_clients', 'oauth_clients_announce_deleted'],
  ...CREDENTIAL_TABLES.map((table) => [table, 'announce_truncate']),
];

/**
 * What ends credentials ends them whole, and is heard: one moment on the member before which no sign-in counts, whatever
 * came of it; answers of used refresh tokens found by their age; and no way round the notices on `revocations`.
 */
export class EndCredentials1763700007000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Sign-ins from before this moment count no longer; NULL: every one does. Whoever sets it ends at once all that came of
-- them: sign-ins under way, browser sessions, grants with their codes and tokens.
ALTER TABLE users ADD COLUMN sign_ins_valid_since timestamptz;

-- Of an interaction: the member on whose sign-in it goes on.
ALTER TABLE oauth_state ADD COLUMN user_id bigint REFERENCES users (id) ON DELETE CASCADE;
CREATE INDEX oauth_state_user_id_idx ON oauth_state (user_id) WHERE user_id IS NOT NULL;

DROP TRIGGER end_access_of_disabled_user ON users;
DROP FUNCTION end_access_of_disabled_user;

-- Whoever stores what came of a sign-in holds the member FOR KEY SHARE and compares the moment. FOR UPDATE waits for those
-- who did, so that end_sign_ins finds what they stored; those who come later wait, and see the new moment.
CREATE FUNCTION users_move_sign_ins_valid_since() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL THEN
    NEW.sign_ins_valid_since := clock_timestamp();
  END IF;
  IF OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since THEN
    PERFORM FROM users WHERE id = OLD.id FOR UPDATE;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER users_move_sign_ins_valid_since BEFORE UPDATE OF disabled_at, sign_ins_valid_since ON users FOR EACH ROW
  EXECUTE FUNCTION users_move_sign_ins_valid_since();

CREATE FUNCTION end_sign_ins() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  ended text[];
BEGIN
  DELETE FROM oauth_state WHERE user_id = NEW.id;
  DELETE FROM oauth_sessions WHERE user_id = NEW.id;
  WITH grants AS (DELETE FROM oauth_grants WHERE user_id = NEW.id RETURNING id)
    SELECT array_agg(id) INTO ended FROM grants;
  IF current_setting('session_replication_role') = 'replica' THEN -- in which foreign keys do not cascade
    DELETE FROM oauth_tokens WHERE grant_id = ANY (ended);
    DELETE FROM oauth_grant_usage WHERE grant_id = ANY (ended);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER end_sign_ins AFTER UPDATE ON users FOR EACH ROW
  WHEN (OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since) EXECUTE FUNCTION end_sign_ins();

-- Answers that wait to be asked for again, by when their token was used.
CREATE INDEX oauth_tokens_successor_idx ON oauth_tokens (consumed_at) WHERE successor IS NOT NULL;

-- A client that is deleted is announced as one that is disabled, and nothing is emptied in silence.
CREATE FUNCTION oauth_clients_announce_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM announce_revocations('client', ARRAY[OLD.id]);
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_clients_announce_deleted AFTER DELETE ON oauth_clients FOR EACH ROW
  EXECUTE FUNCTION oauth_clients_announce_deleted();

CREATE FUNCTION announce_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('revocations', 'all');
  RETURN NULL;
END $$;
${CREDENTIAL_TABLES.map(
  (table) => `CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION announce_truncate();`,
).join('\n')}

-- Also for a writer with session_replication_role = replica. (The worker of a logical subscription fires no triggers of
-- statements: what it changes is seen within the half minute for which a credential is remembered.)
${ALWAYS.map(([table, trigger]) => `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${trigger};`).join('\n')}
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
${ALWAYS.map(([table, trigger]) => `ALTER TABLE ${table} ENABLE TRIGGER ${trigger};`).join('\n')}
${CREDENTIAL_TABLES.map((table) => `DROP TRIGGER announce_truncate ON ${table};`).join('\n')}
DROP TRIGGER oauth_clients_announce_deleted ON oauth_clients;
DROP INDEX oauth_tokens_successor_idx;
DROP TRIGGER end_sign_ins ON users;
DROP TRIGGER users_move_sign_ins_valid_since ON users;
DROP FUNCTION announce_truncate, oauth_clients_announce_deleted, end_sign_ins, users_move_sign_ins_valid_since;
ALTER TABLE oauth_state DROP COLUMN user_id;
ALTER TABLE users DROP COLUMN sign_ins_valid_since;

CREATE FUNCTION end_access_of_disabled_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM oauth_grants WHERE user_id = NEW.id;
  DELETE FROM oauth_sessions WHERE user_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER end_access_of_disabled_user AFTER UPDATE OF disabled_at ON users
  FOR EACH ROW WHEN (OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL)
  EXECUTE FUNCTION end_access_of_disabled_user();
`);
  }
}
