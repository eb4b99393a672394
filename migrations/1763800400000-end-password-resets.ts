import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A password reset link ends when the password or the email address changes. */
export class EndPasswordResets1763800400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE FUNCTION end_password_resets() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM oauth_state WHERE user_id = NEW.id AND model = 'PasswordReset';
  RETURN NULL;
END $$;
CREATE TRIGGER end_password_resets AFTER UPDATE ON users FOR EACH ROW
  WHEN ((OLD.password_hash, OLD.password_off_at, OLD.email) IS DISTINCT FROM (NEW.password_hash, NEW.password_off_at, NEW.email))
  EXECUTE FUNCTION end_password_resets();
ALTER TABLE users ENABLE ALWAYS TRIGGER end_password_resets;
INSERT INTO compatible_migrations (name) VALUES ('EndPasswordResets1763800400000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'EndPasswordResets1763800400000';
DROP FUNCTION end_password_resets CASCADE;
`);
  }
}
