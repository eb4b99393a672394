-- Copies columns of the other member. Its lock keeps is_disabled unchanged until the foreign key's check.
CREATE OR REPLACE FUNCTION connections_copy_peer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.peer_id = OLD.peer_id OR TG_OP = 'INSERT'
    AND num_nulls(NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username) = 0 THEN RETURN NEW; END IF;
  IF current_setting('transaction_isolation') = 'read committed' THEN
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM public.users WHERE id = NEW.peer_id FOR KEY SHARE;
  ELSE
    -- Fails if the member was renamed since this transaction began: the old name would be stored after copy_names has finished.
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM public.users WHERE id = NEW.peer_id FOR SHARE;
  END IF;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.peer_id),
      TABLE = 'connections', CONSTRAINT = 'connections_peer_fkey';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER connections_copy_peer BEFORE INSERT OR UPDATE OF peer_id ON connections
  FOR EACH ROW EXECUTE FUNCTION connections_copy_peer();
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_copy_peer;

-- Updates totals and records changes for one updated or deleted row. NEW is NULL in a DELETE.
CREATE OR REPLACE FUNCTION connections_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted boolean := OLD.status = 'accepted' AND NOT OLD.peer_is_disabled;
  counts boolean := NEW.status = 'accepted' AND NOT NEW.peer_is_disabled;
BEGIN
  IF (OLD.user_id, counted) IS DISTINCT FROM (NEW.user_id, counts) THEN
    IF counted THEN INSERT INTO public.user_totals (user_id, connections_count) VALUES (OLD.user_id, -1); END IF;
    IF counts THEN INSERT INTO public.user_totals (user_id, connections_count) VALUES (NEW.user_id, 1); END IF;
  END IF;

  -- If only denormalized columns changed, the change is recorded for the other member instead.
  IF (OLD.user_id, OLD.id, OLD.peer_id, OLD.status, OLD.source, OLD.met_at_event_id, OLD.requested_at, OLD.connected_at)
    IS NOT DISTINCT FROM
    (NEW.user_id, NEW.id, NEW.peer_id, NEW.status, NEW.source, NEW.met_at_event_id, NEW.requested_at, NEW.connected_at)
    THEN RETURN NULL; END IF;
  IF TG_OP <> 'INSERT' AND (OLD.user_id, OLD.id) IS DISTINCT FROM (NEW.user_id, NEW.id)
    AND (NOT OLD.peer_is_disabled OR public.was_hidden('people', OLD.peer_id)) THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'connections', OLD.id, 'removed');
  END IF;
  IF NOT NEW.peer_is_disabled OR TG_OP = 'UPDATE' AND NOT OLD.peer_is_disabled THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'connections', NEW.id, CASE WHEN NEW.peer_is_disabled THEN 'removed' ELSE 'updated' END);
  END IF;
  RETURN NULL;
END $$;

-- Lists columns instead of a WHEN condition, which PostgreSQL would parse for every statement.
CREATE OR REPLACE TRIGGER connections_changed AFTER UPDATE OF
  user_id, id, peer_id, status, source, met_at_event_id, requested_at, connected_at, peer_is_disabled ON connections
  FOR EACH ROW EXECUTE FUNCTION connections_changed();
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_changed;

CREATE OR REPLACE TRIGGER connections_removed AFTER DELETE ON connections
  FOR EACH ROW EXECUTE FUNCTION connections_changed();
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_removed;

-- Updates totals and records changes for all inserted rows at once: an import may insert millions.
CREATE OR REPLACE FUNCTION connections_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.user_totals (user_id, connections_count)
    SELECT user_id, count(*) FROM new_rows WHERE status = 'accepted' AND NOT peer_is_disabled GROUP BY user_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'connections', id, 'updated' FROM new_rows WHERE NOT peer_is_disabled;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER connections_inserted AFTER INSERT ON connections REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION connections_inserted();
