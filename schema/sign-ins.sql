-- Ends sessions, grants, open forms and calendar links of ended sign-ins, apps of a disabled member, and password reset links.
CREATE OR REPLACE FUNCTION end_sign_ins() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF OLD.disabled_at IS DISTINCT FROM NEW.disabled_at THEN
    PERFORM announce_revocations('user', ARRAY[NEW.id::text]);
  END IF;
  IF OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL THEN
    UPDATE oauth_clients SET disabled_at = COALESCE(disabled_at, now()), disabled_by_owner = false
      WHERE owner_id = NEW.id AND (disabled_at IS NULL OR disabled_by_owner);
  END IF;
  IF OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since THEN
    DELETE FROM calendar_links WHERE user_id = NEW.id;
    DELETE FROM oauth_state WHERE user_id = NEW.id;
    DELETE FROM oauth_sessions WHERE user_id = NEW.id;
    DELETE FROM oauth_grants WHERE user_id = NEW.id;
  ELSIF (OLD.password_off_at, OLD.email) IS DISTINCT FROM (NEW.password_off_at, NEW.email)
    OR OLD.password_hash IS DISTINCT FROM NEW.password_hash -- except for a stronger hash of the same password
      AND current_setting('public_user_api.same_password', true) IS DISTINCT FROM 'yes' THEN
    DELETE FROM oauth_state WHERE user_id = NEW.id AND model = 'PasswordReset';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER end_sign_ins AFTER UPDATE OF disabled_at, sign_ins_valid_since, password_hash, password_off_at, email
  ON users FOR EACH ROW
  WHEN ((OLD.disabled_at, OLD.sign_ins_valid_since, OLD.password_hash, OLD.password_off_at, OLD.email)
    IS DISTINCT FROM (NEW.disabled_at, NEW.sign_ins_valid_since, NEW.password_hash, NEW.password_off_at, NEW.email))
  EXECUTE FUNCTION end_sign_ins();
ALTER TABLE users ENABLE ALWAYS TRIGGER end_sign_ins;

-- Storing a grant locks its consent FOR SHARE: either this trigger finds the grant, or the grant waits and uses the narrower consent.
CREATE OR REPLACE FUNCTION narrow_grants() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  changed text[];
BEGIN
  WITH narrowed AS (
    UPDATE oauth_grants g SET payload = jsonb_set(g.payload, '{resources}', (
      SELECT jsonb_object_agg(key, array_to_string(
        ARRAY(SELECT scope FROM unnest(string_to_array(value, ' ')) scope WHERE scope = ANY (NEW.granted)), ' '))
      FROM jsonb_each_text(g.payload->'resources')))
    WHERE g.user_id = NEW.user_id AND g.client_id = NEW.client_id AND EXISTS (
      SELECT FROM jsonb_each_text(g.payload->'resources') WHERE NOT string_to_array(value, ' ') <@ NEW.granted)
    RETURNING g.id
  ) SELECT array_agg(id) INTO changed FROM narrowed;
  PERFORM announce_revocations('grant', changed);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER narrow_grants AFTER UPDATE OF granted ON oauth_consents FOR EACH ROW
  WHEN (NOT OLD.granted <@ NEW.granted) EXECUTE FUNCTION narrow_grants();
ALTER TABLE oauth_consents ENABLE ALWAYS TRIGGER narrow_grants;

-- Notifies clients when their session ends or no longer includes them (Back-Channel Logout), except when the session expires.
CREATE OR REPLACE FUNCTION tell_clients() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO oauth_logouts (client_id, user_id, sid)
    SELECT c.id, OLD.user_id, gone.sid FROM jsonb_each_text(OLD.clients) AS gone (client_id, sid)
    JOIN oauth_clients c ON c.id = gone.client_id AND c.backchannel_logout_uri IS NOT NULL AND c.disabled_at IS NULL
    WHERE TG_OP = 'DELETE' OR NEW.clients->>gone.client_id IS DISTINCT FROM gone.sid
    ORDER BY c.id;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER tell_clients_of_end AFTER DELETE ON oauth_sessions FOR EACH ROW
  WHEN (OLD.clients <> '{}' AND OLD.expires_at > now()) EXECUTE FUNCTION tell_clients();
ALTER TABLE oauth_sessions ENABLE ALWAYS TRIGGER tell_clients_of_end;

CREATE OR REPLACE TRIGGER tell_clients_of_loss AFTER UPDATE OF clients ON oauth_sessions FOR EACH ROW
  WHEN (NOT NEW.clients @> OLD.clients) EXECUTE FUNCTION tell_clients();
ALTER TABLE oauth_sessions ENABLE ALWAYS TRIGGER tell_clients_of_loss;
