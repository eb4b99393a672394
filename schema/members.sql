CREATE OR REPLACE FUNCTION shown_name(stored text, first_name text, last_name text, username text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN COALESCE(NULLIF(btrim(stored), ''),
    NULLIF(btrim(COALESCE(first_name, '') || ' ' || COALESCE(last_name, '')), ''), username);

-- JSON of a person as others see them.
CREATE OR REPLACE FUNCTION user_card(id bigint, username text, display_name text, profile_picture text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN '{"id":' || id || ',"username":' || public.stored_json_text(username)
    || ',"display_name":' || public.stored_json_text(display_name)
    || ',"profile_picture":' || public.stored_json_text(profile_picture) || '}';
END $$;

-- Derives names and card, increases the version if a field of the profile changes, and sets the time before which sign-ins have ended.
CREATE OR REPLACE FUNCTION users_derive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.is_disabled := NEW.disabled_at IS NOT NULL;
  -- OLD of an INSERT is NULL. Not generated columns: PostgreSQL parses their expressions for each statement.
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

  IF (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM
    (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at)
  THEN
    NEW.version := OLD.version + 1;
  END IF;
  IF OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL THEN
    NEW.sign_ins_valid_since := clock_timestamp();
  END IF;
  IF OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since THEN
    -- Waits for transactions that store a sign-in (FOR KEY SHARE), so end_sign_ins finds their rows; later ones see the new time.
    PERFORM FROM public.users WHERE id = OLD.id FOR UPDATE;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER users_derive BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION users_derive();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_derive;

-- Updates the total and records renames and changes of one member. NEW is NULL in a DELETE.
CREATE OR REPLACE FUNCTION users_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.is_disabled IS DISTINCT FROM NEW.is_disabled THEN
    IF NOT OLD.is_disabled THEN INSERT INTO public.platform_total_deltas VALUES (-1); END IF;
    IF NOT NEW.is_disabled THEN INSERT INTO public.platform_total_deltas VALUES (1); END IF;
  END IF;
  IF (OLD.folded_name, OLD.folded_username) <> (NEW.folded_name, NEW.folded_username) THEN
    INSERT INTO public.renamed_users (user_id) VALUES (NEW.id);
  END IF;
  IF OLD.card <> NEW.card OR OLD.is_disabled <> NEW.is_disabled THEN
    INSERT INTO public.changes (resource, id, kind)
      VALUES ('people', NEW.id, CASE
        WHEN NEW.is_disabled AND NOT OLD.is_disabled THEN 'removed'
        WHEN OLD.is_disabled AND NOT NEW.is_disabled THEN 'returned' ELSE 'updated' END);
  END IF;
  IF TG_OP = 'UPDATE' AND
    (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM
    (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at)
  THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (NEW.id, 'profile', NEW.id, 'updated');
  END IF;
  RETURN NULL;
END $$;

-- Lists all columns that the compared values depend on: PostgreSQL would parse a WHEN condition for every statement.
CREATE OR REPLACE TRIGGER users_changed AFTER UPDATE OF
  username, first_name, last_name, stored_display_name, bio, profile_picture, created_at, disabled_at ON users
  FOR EACH ROW EXECUTE FUNCTION users_changed();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_changed;

CREATE OR REPLACE TRIGGER users_removed AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION users_changed();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_removed;

CREATE OR REPLACE FUNCTION users_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.platform_total_deltas SELECT count(*) FROM new_rows WHERE NOT is_disabled HAVING count(*) > 0;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER users_inserted AFTER INSERT ON users REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION users_inserted();

-- Copies names of renamed members to `most` connections at most. Returns the steps done: 0 if all others are locked or another call runs.
CREATE OR REPLACE FUNCTION copy_names(most integer) RETURNS integer
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  batch bigint[];
  renamed record;
  updated integer;
  copied integer := 0;
  ended integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013006) THEN RETURN 0; END IF;
  batch := ARRAY(SELECT id FROM renamed_users
    WHERE settled_before IS NULL OR settled_before <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      OR settled_before > pg_snapshot_xmax(pg_current_snapshot())::text::bigint -- from a dump of another server
    ORDER BY id LIMIT 100);
  IF batch = '{}' THEN RETURN 0; END IF;

  -- One member at a time: for a join, PostgreSQL reads both tables whole if it expects them to be small.
  FOR renamed IN SELECT id, folded_name, folded_username FROM users
    WHERE id = ANY (ARRAY(SELECT user_id FROM renamed_users WHERE id = ANY (batch))) LOOP
    UPDATE connections SET (peer_name, peer_username) = (renamed.folded_name, renamed.folded_username)
      WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM connections WHERE peer_id = renamed.id
          AND (peer_name, peer_username) <> (renamed.folded_name, renamed.folded_username)
          LIMIT most - copied FOR NO KEY UPDATE SKIP LOCKED));
    GET DIAGNOSTICS updated = ROW_COUNT;
    copied := copied + updated;
    IF copied = most THEN RETURN copied; END IF;
  END LOOP;

  WITH alike AS (
    SELECT r.id FROM renamed_users r WHERE r.id = ANY (batch) AND NOT EXISTS (
      SELECT FROM users n JOIN connections o ON o.peer_id = n.id
        WHERE n.id = r.user_id AND (o.peer_name, o.peer_username) <> (n.folded_name, n.folded_username) OFFSET 0)
  ), compared AS (
    UPDATE renamed_users SET settled_before = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      WHERE id IN (SELECT id FROM alike) AND settled_before IS NULL
  ), settled AS (
    DELETE FROM renamed_users WHERE id IN (SELECT id FROM alike) AND settled_before IS NOT NULL
  ) SELECT count(*) INTO ended FROM alike;
  RETURN copied + ended;
END $$;
