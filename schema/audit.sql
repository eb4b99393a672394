-- Even the server's own role cannot delete recent audit events. ENABLE ALWAYS: session_replication_role cannot bypass the triggers.
CREATE OR REPLACE FUNCTION auth_events_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  erased auth_events;
BEGIN
  IF TG_OP <> 'UPDATE' THEN
    RAISE EXCEPTION 'auth_events: % is refused; rows may be deleted when they are 7 days old', TG_OP;
  END IF;
  erased := OLD;
  erased.ip := NULL;
  erased.details := '{}';
  IF NEW IS DISTINCT FROM erased OR NOT EXISTS (SELECT FROM users WHERE id = OLD.user_id AND erased_at IS NOT NULL) THEN
    RAISE EXCEPTION 'auth_events: UPDATE is refused, but for what is erased with a member';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER auth_events_are_never_changed BEFORE UPDATE ON auth_events
  FOR EACH ROW EXECUTE FUNCTION auth_events_refuse();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_changed;

CREATE OR REPLACE TRIGGER auth_events_are_never_emptied BEFORE TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_refuse();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_emptied;

CREATE OR REPLACE TRIGGER auth_events_stay_a_week BEFORE DELETE ON auth_events FOR EACH ROW
  WHEN (OLD.occurred_at > now() - interval '7 days') EXECUTE FUNCTION auth_events_refuse();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_stay_a_week;

-- Erasure is final: otherwise, an attacker could erase a member for a moment to remove the IP address and details of audit events.
CREATE OR REPLACE FUNCTION users_refuse_return() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The member %s was erased and stays erased', OLD.id), TABLE = 'users';
END $$;

CREATE OR REPLACE TRIGGER users_stay_erased BEFORE UPDATE ON users FOR EACH ROW
  WHEN (OLD.erased_at IS NOT NULL AND NEW.erased_at IS DISTINCT FROM OLD.erased_at) EXECUTE FUNCTION users_refuse_return();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_stay_erased;

CREATE OR REPLACE TRIGGER users_erased_are_kept BEFORE DELETE ON users FOR EACH ROW
  WHEN (OLD.erased_at IS NOT NULL) EXECUTE FUNCTION users_refuse_return();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_erased_are_kept;
