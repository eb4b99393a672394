-- THE access rule of events: whether a participant with this role may see an event in this state.
CREATE OR REPLACE FUNCTION event_visible(role text, is_draft boolean, is_deleted boolean) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN NOT is_deleted AND (NOT is_draft OR role IN ('organizer', 'co_organizer'));

-- Copies columns of the event. Locks the event FOR KEY SHARE, as the foreign key's check does later: until then, no value can change.
CREATE OR REPLACE FUNCTION participants_derive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.event_id = OLD.event_id OR TG_OP = 'INSERT'
    AND num_nulls(NEW.starts_at, NEW.event_is_draft, NEW.event_is_deleted) = 0 THEN RETURN NEW; END IF;
  SELECT starts_at, is_draft, is_deleted INTO NEW.starts_at, NEW.event_is_draft, NEW.event_is_deleted
    FROM public.events WHERE id = NEW.event_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING MESSAGE = format('There is no event %s', NEW.event_id),
      TABLE = 'participants', CONSTRAINT = 'participants_event_fkey';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER participants_derive BEFORE INSERT OR UPDATE ON participants
  FOR EACH ROW EXECUTE FUNCTION participants_derive();
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_derive;

-- Updates totals and records changes for one updated or deleted row. NEW is NULL in a DELETE.
CREATE OR REPLACE FUNCTION participants_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved boolean := (OLD.user_id, OLD.event_id) IS DISTINCT FROM (NEW.user_id, NEW.event_id);
BEGIN
  IF (OLD.user_id, OLD.is_visible) IS DISTINCT FROM (NEW.user_id, NEW.is_visible) THEN
    IF OLD.is_visible THEN INSERT INTO public.user_totals (user_id, events_count) VALUES (OLD.user_id, -1); END IF;
    IF NEW.is_visible THEN INSERT INTO public.user_totals (user_id, events_count) VALUES (NEW.user_id, 1); END IF;
  END IF;
  IF (OLD.event_id, OLD.rsvp_status = 'going') IS DISTINCT FROM (NEW.event_id, NEW.rsvp_status = 'going') THEN
    IF OLD.rsvp_status = 'going' THEN INSERT INTO public.event_totals VALUES (OLD.event_id, -1); END IF;
    IF NEW.rsvp_status = 'going' THEN INSERT INTO public.event_totals VALUES (NEW.event_id, 1); END IF;
  END IF;

  -- If only denormalized columns changed, the change is recorded for the event instead.
  IF (OLD.user_id, OLD.event_id, OLD.role, OLD.rsvp_status, OLD.responded_at, OLD.checked_in_at) IS NOT DISTINCT FROM
    (NEW.user_id, NEW.event_id, NEW.role, NEW.rsvp_status, NEW.responded_at, NEW.checked_in_at) THEN RETURN NULL; END IF;
  IF moved AND TG_OP <> 'INSERT' THEN
    IF OLD.is_visible OR public.was_hidden('events', OLD.event_id) THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'events', OLD.event_id, 'removed');
    END IF;
    IF OLD.role = 'co_organizer' THEN
      INSERT INTO public.changes (resource, id, kind) VALUES ('events', OLD.event_id, 'updated');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.is_visible OR OLD.is_visible THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'events', NEW.event_id, CASE WHEN NEW.is_visible THEN 'updated' ELSE 'removed' END);
  END IF;
  -- Everyone who sees the event sees its organizers.
  IF (NEW.role = 'co_organizer') <> (OLD.role IS NOT DISTINCT FROM 'co_organizer' AND NOT moved) THEN
    INSERT INTO public.changes (resource, id, kind) VALUES ('events', NEW.event_id, 'updated');
  END IF;
  RETURN NULL;
END $$;

-- The event's foreign key writes all denormalized columns, changed or not.
CREATE OR REPLACE TRIGGER participants_changed AFTER UPDATE ON participants FOR EACH ROW
  WHEN ((OLD.user_id, OLD.event_id, OLD.is_visible, OLD.role, OLD.rsvp_status, OLD.responded_at, OLD.checked_in_at)
    IS DISTINCT FROM
    (NEW.user_id, NEW.event_id, NEW.is_visible, NEW.role, NEW.rsvp_status, NEW.responded_at, NEW.checked_in_at))
  EXECUTE FUNCTION participants_changed();
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_changed;

CREATE OR REPLACE TRIGGER participants_removed AFTER DELETE ON participants
  FOR EACH ROW EXECUTE FUNCTION participants_changed();
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_removed;

-- Updates totals and records changes for all inserted rows at once: an import may insert millions.
CREATE OR REPLACE FUNCTION participants_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.user_totals (user_id, events_count)
    SELECT user_id, count(*) FROM new_rows WHERE is_visible GROUP BY user_id;
  INSERT INTO public.event_totals SELECT event_id, count(*) FROM new_rows WHERE rsvp_status = 'going' GROUP BY event_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'events', event_id, 'updated' FROM new_rows WHERE is_visible
    UNION ALL SELECT NULL, 'events', event_id, 'updated' FROM new_rows WHERE role = 'co_organizer';
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER participants_inserted AFTER INSERT ON participants REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION participants_inserted();
