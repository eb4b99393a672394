CREATE OR REPLACE FUNCTION event_location(
  name text, city text, country_code text, address text, latitude float8, longitude float8
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN num_nonnulls(name, city, country_code, address, latitude, longitude) = 0 THEN 'null'
    ELSE '{"name":' || stored_json_text(name) || ',"city":' || stored_json_text(city)
      || ',"country_code":' || stored_json_text(country_code) || '}' END;

CREATE OR REPLACE FUNCTION events_derive() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  endless text;
BEGIN
  NEW.is_draft := NEW.status = 'draft';
  NEW.is_deleted := NEW.deleted_at IS NOT NULL;
  IF TG_OP = 'UPDATE' THEN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
    NEW.revision := LEAST(OLD.revision::bigint + 1, 2147483647);
  END IF;
  -- Checked here, since an infinite time makes the card NULL, and the error would be that of the card's NOT NULL.
  IF NOT (isfinite(NEW.starts_at) AND isfinite(NEW.created_at) AND isfinite(NEW.updated_at)) THEN
    endless := CASE WHEN NOT isfinite(NEW.starts_at) THEN 'starts_at'
      WHEN NOT isfinite(NEW.created_at) THEN 'created_at' ELSE 'updated_at' END;
    RAISE check_violation USING
      MESSAGE = format('%s of event %s has no end: it is to be a time of the years 1 to 9999', endless, NEW.id),
      TABLE = 'events', COLUMN = endless, CONSTRAINT = format('events_%s_range_check', endless);
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER events_derive BEFORE INSERT OR UPDATE ON events FOR EACH ROW EXECUTE FUNCTION events_derive();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_derive;

CREATE OR REPLACE FUNCTION record_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind)
    VALUES ('events', NEW.id, CASE
      WHEN NOT (OLD.is_draft OR OLD.is_deleted) AND (NEW.is_draft OR NEW.is_deleted) THEN 'removed' ELSE 'updated' END);
  -- Only members who could see the draft get its removal.
  IF OLD.is_draft AND NOT OLD.is_deleted AND NEW.is_deleted THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      SELECT user_id, 'events', NEW.id, 'removed' FROM public.participants
      WHERE event_id = NEW.id AND public.event_visible(role, true, false);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER events_record_change AFTER UPDATE ON events
  FOR EACH ROW EXECUTE FUNCTION record_event_change();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_record_change;
