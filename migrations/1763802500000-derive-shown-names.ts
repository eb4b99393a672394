import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A trigger derives the shown names: PostgreSQL parses and plans the expressions of generated columns again for every statement that writes
 * the table.
 */
export class DeriveShownNames1763802500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Includes the function, because programs may write before schema/ is applied.
    await runner.query(`
ALTER TABLE users ALTER COLUMN display_name DROP EXPRESSION, ALTER COLUMN card DROP EXPRESSION;
CREATE OR REPLACE FUNCTION users_derive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.is_disabled := NEW.disabled_at IS NOT NULL;
  -- OLD of an INSERT is NULL. Not generated columns: PostgreSQL parses their expressions anew for each statement.
  IF (OLD.id, OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.profile_picture,
      OLD.folded_username, OLD.display_name, OLD.folded_name, OLD.card)
    IS DISTINCT FROM
    (NEW.id, NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.profile_picture,
      NEW.folded_username, NEW.display_name, NEW.folded_name, NEW.card)
  THEN
    NEW.folded_username := public.fold_case(NEW.username);
    NEW.display_name := public.shown_name(NEW.stored_display_name, NEW.first_name, NEW.last_name, NEW.username);
    NEW.folded_name := public.fold_case(NEW.display_name);
    NEW.card := public.user_card(NEW.id, NEW.username, NEW.display_name, NEW.profile_picture);
  END IF;
  IF TG_OP = 'INSERT' THEN RETURN NEW; END IF;

  IF current_setting('session_replication_role') <> 'replica' AND
    (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM
    (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at)
  THEN
    NEW.version := OLD.version + 1;
  END IF;
  IF OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL THEN
    NEW.sign_ins_valid_since := clock_timestamp();
  END IF;
  IF OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since THEN
    PERFORM FROM public.users WHERE id = OLD.id FOR UPDATE;
  END IF;
  RETURN NEW;
END $$;
INSERT INTO compatible_migrations (name) VALUES ('DeriveShownNames1763802500000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'DeriveShownNames1763802500000';
ALTER TABLE users DROP COLUMN display_name, DROP COLUMN card;
ALTER TABLE users
  ADD COLUMN display_name text NOT NULL GENERATED ALWAYS AS (shown_name(stored_display_name, first_name, last_name, username)) STORED,
  ADD COLUMN card text NOT NULL GENERATED ALWAYS AS (
    user_card(id, username, shown_name(stored_display_name, first_name, last_name, username), profile_picture)
  ) STORED;
`);
  }
}
