CREATE OR REPLACE FUNCTION tell_platform_of_consent() RETURNS trigger
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  -- An INSERT has no OLD, a DELETE no NEW.
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
  -- Only if the app had no access: no earlier consent, or one that has ended, without a grant that outlives it.
  IF new_scopes <> '{}' AND (old_scopes = '{}' OR (
    OLD.access_ends_at <= now() AND OLD.access_ends_at IS DISTINCT FROM NEW.access_ends_at AND NOT EXISTS (
      SELECT FROM oauth_grants g WHERE g.user_id = NEW.user_id AND g.client_id = NEW.client_id
        AND LEAST(g.expires_at, g.access_ends_at) > now()))) THEN
    PERFORM give_notice(NEW.user_id, 'consent.granted', NEW.client_id, (SELECT name FROM oauth_clients WHERE id = NEW.client_id));
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_platform_of_sign_in() RETURNS trigger
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id) VALUES ('member.signed_in', NEW.user_id, NEW.client_id);
  RETURN NULL;
END $$;

-- The audit log contains every sign-in, with any method.
CREATE OR REPLACE TRIGGER auth_events_tell_platform AFTER INSERT ON auth_events FOR EACH ROW
  WHEN (NEW.type = 'sign_in.succeeded' AND NEW.user_id IS NOT NULL) EXECUTE FUNCTION tell_platform_of_sign_in();

CREATE OR REPLACE TRIGGER oauth_consents_tell_platform AFTER INSERT OR UPDATE OF granted OR DELETE ON oauth_consents
  FOR EACH ROW EXECUTE FUNCTION tell_platform_of_consent();
