import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What members did, for the platform to take home (GET /api/platform/changes): a row in the transaction of what it tells. Profiles are
 * written there by who changes them through the API; what becomes of consents, and sign-ins, by triggers, whichever way they came.
 */
export class TellPlatform1763700091000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE platform_changes (
  -- As of changes: the order is that of commits for who reads only what no open transaction can add to.
  changed_in bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  sequence bigint GENERATED ALWAYS AS IDENTITY,
  type text NOT NULL CHECK (type IN ('profile.updated', 'consent.granted', 'consent.revoked', 'member.signed_in')),
  -- No foreign key: an erased member's rows are deleted by hand.
  user_id bigint NOT NULL,
  -- Of the app or key; no foreign key: what it did stays known when it is gone.
  by_id text,
  -- Of profile.updated: what changed, and what it is now.
  fields jsonb,
  -- Of a consent: what was allowed, or is allowed no more.
  scopes text[],
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (changed_in, sequence)
);
CREATE INDEX platform_changes_changed_at_idx ON platform_changes (changed_at);
CREATE INDEX platform_changes_user_id_idx ON platform_changes (user_id);

CREATE FUNCTION tell_platform_of_consent() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  -- Not read where there is none: OLD of an INSERT, NEW of a DELETE.
  old_scopes text[] := CASE WHEN TG_OP <> 'INSERT' THEN OLD.granted ELSE '{}' END;
  new_scopes text[] := CASE WHEN TG_OP <> 'DELETE' THEN NEW.granted ELSE '{}' END;
  added text[] := ARRAY(SELECT unnest(new_scopes) EXCEPT SELECT unnest(old_scopes) ORDER BY 1);
  lost text[] := ARRAY(SELECT unnest(old_scopes) EXCEPT SELECT unnest(new_scopes) ORDER BY 1);
BEGIN
  IF lost <> '{}' THEN
    INSERT INTO platform_changes (type, user_id, by_id, scopes) VALUES ('consent.revoked', OLD.user_id, OLD.client_id, lost);
  END IF;
  IF added <> '{}' THEN
    INSERT INTO platform_changes (type, user_id, by_id, scopes) VALUES ('consent.granted', NEW.user_id, NEW.client_id, added);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER oauth_consents_tell_platform AFTER INSERT OR UPDATE OF granted OR DELETE ON oauth_consents
  FOR EACH ROW EXECUTE FUNCTION tell_platform_of_consent();

CREATE FUNCTION tell_platform_of_sign_in() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id) VALUES ('member.signed_in', NEW.user_id, NEW.client_id);
  RETURN NULL;
END $$;
-- The trail is told of every sign-in, whatever it was with.
CREATE TRIGGER auth_events_tell_platform AFTER INSERT ON auth_events FOR EACH ROW
  WHEN (NEW.type = 'sign_in.succeeded' AND NEW.user_id IS NOT NULL) EXECUTE FUNCTION tell_platform_of_sign_in();

ALTER TABLE change_places DROP CONSTRAINT change_places_name_check;
ALTER TABLE change_places ADD CONSTRAINT change_places_name_check CHECK (name IN ('coalesced', 'swept', 'told', 'platform_swept'));
INSERT INTO change_places (name) VALUES ('platform_swept');
INSERT INTO compatible_migrations (name) VALUES ('TellPlatform1763700091000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'TellPlatform1763700091000';
DELETE FROM change_places WHERE name = 'platform_swept';
ALTER TABLE change_places DROP CONSTRAINT change_places_name_check;
ALTER TABLE change_places ADD CONSTRAINT change_places_name_check CHECK (name IN ('coalesced', 'swept', 'told'));
DROP TRIGGER auth_events_tell_platform ON auth_events;
DROP TRIGGER oauth_consents_tell_platform ON oauth_consents;
DROP FUNCTION tell_platform_of_sign_in, tell_platform_of_consent;
DROP TABLE platform_changes;
`);
  }
}
