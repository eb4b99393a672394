CREATE OR REPLACE FUNCTION record_achievement_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind) VALUES ('achievements', NEW.id, 'updated');
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER achievements_record_change AFTER UPDATE ON achievements FOR EACH ROW
  WHEN ((OLD.revealed, OLD.category, OLD.points, OLD.is_hidden, OLD.criteria, OLD.target)
    IS DISTINCT FROM (NEW.revealed, NEW.category, NEW.points, NEW.is_hidden, NEW.criteria, NEW.target))
  EXECUTE FUNCTION record_achievement_change();
ALTER TABLE achievements ENABLE ALWAYS TRIGGER achievements_record_change;

-- Copies is_disabled of the member. Its lock keeps is_disabled unchanged until the foreign key's check.
CREATE OR REPLACE FUNCTION user_achievements_copy_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.user_id = OLD.user_id OR TG_OP = 'INSERT' AND NEW.user_is_disabled IS NOT NULL
    THEN RETURN NEW; END IF;
  SELECT is_disabled INTO NEW.user_is_disabled FROM public.users WHERE id = NEW.user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.user_id),
      TABLE = 'user_achievements', CONSTRAINT = 'user_achievements_user_fkey';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER user_achievements_copy_user BEFORE INSERT OR UPDATE OF user_id ON user_achievements
  FOR EACH ROW EXECUTE FUNCTION user_achievements_copy_user();
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_copy_user;

CREATE OR REPLACE FUNCTION record_pins(of_user bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM public.user_achievements
    WHERE user_id = of_user AND pin_position IS NOT NULL
$$;

-- Updates totals and records changes for one updated or deleted row. NEW is NULL in a DELETE.
CREATE OR REPLACE FUNCTION user_achievements_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was_earned boolean := OLD.earned_at IS NOT NULL;
  is_earned boolean := NEW.earned_at IS NOT NULL;
  moved boolean := (OLD.user_id, OLD.achievement_id) IS DISTINCT FROM (NEW.user_id, NEW.achievement_id);
BEGIN
  IF moved OR (was_earned, OLD.user_is_disabled) IS DISTINCT FROM (is_earned, NEW.user_is_disabled) THEN
    IF was_earned THEN
      INSERT INTO public.user_totals (user_id, achievements_count) VALUES (OLD.user_id, -1);
      IF NOT OLD.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (OLD.achievement_id, -1); END IF;
    END IF;
    IF is_earned THEN
      INSERT INTO public.user_totals (user_id, achievements_count) VALUES (NEW.user_id, 1);
      IF NOT NEW.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (NEW.achievement_id, 1); END IF;
    END IF;
  END IF;

  IF NOT moved AND (OLD.progress, OLD.earned_at, OLD.pin_position)
    IS NOT DISTINCT FROM (NEW.progress, NEW.earned_at, NEW.pin_position) THEN RETURN NULL; END IF;
  IF moved AND TG_OP <> 'INSERT' THEN
    IF was_earned THEN
      INSERT INTO public.changes (user_id, resource, id, kind)
        VALUES (OLD.user_id, 'achievements', OLD.achievement_id, 'removed');
    END IF;
    IF OLD.pin_position IS NOT NULL THEN PERFORM public.record_pins(OLD.user_id); END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF is_earned OR was_earned THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'achievements', NEW.achievement_id, CASE WHEN is_earned THEN 'updated' ELSE 'removed' END);
  END IF;
  IF NEW.pin_position IS DISTINCT FROM OLD.pin_position THEN PERFORM public.record_pins(NEW.user_id); END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER user_achievements_changed AFTER UPDATE OF
  user_id, achievement_id, progress, earned_at, pin_position, user_is_disabled ON user_achievements
  FOR EACH ROW EXECUTE FUNCTION user_achievements_changed();
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_changed;

CREATE OR REPLACE TRIGGER user_achievements_removed AFTER DELETE ON user_achievements
  FOR EACH ROW EXECUTE FUNCTION user_achievements_changed();
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_removed;

-- Updates totals and records changes for all inserted rows at once: an import may insert millions.
CREATE OR REPLACE FUNCTION user_achievements_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.user_totals (user_id, achievements_count)
    SELECT user_id, count(*) FROM new_rows WHERE earned_at IS NOT NULL GROUP BY user_id;
  INSERT INTO public.achievement_total_deltas SELECT achievement_id, count(*) FROM new_rows
    WHERE earned_at IS NOT NULL AND NOT user_is_disabled GROUP BY achievement_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM new_rows WHERE earned_at IS NOT NULL;
  PERFORM public.record_pins(user_id) FROM new_rows WHERE pin_position IS NOT NULL GROUP BY user_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER user_achievements_inserted AFTER INSERT ON user_achievements
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION user_achievements_inserted();
