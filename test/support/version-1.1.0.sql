-- A database of 1.1.0 with some rows: pg_dump --no-owner --no-privileges --inserts, without comments and settings.
SET check_function_bodies = off;
CREATE FUNCTION public.achievements_keep_count_on_replication() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF current_setting('public_user_api.folds', true) IS DISTINCT FROM 'yes' THEN
    NEW.earners_count := CASE TG_OP WHEN 'UPDATE' THEN OLD.earners_count ELSE 0 END;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.announce_revocations(kind text, ids text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF cardinality(ids) > 100 THEN
    PERFORM pg_notify('revocations', 'all');
  ELSIF cardinality(ids) > 0 THEN
    PERFORM pg_notify('revocations', kind || ':' || id) FROM unnest(ids) id;
  END IF;
END $$;
CREATE FUNCTION public.announce_truncate() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  PERFORM pg_notify('revocations', 'all');
  RETURN NULL;
END $$;
CREATE FUNCTION public.api_keys_announce() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  PERFORM announce_revocations('key', (SELECT array_agg(id) FROM old_rows));
  RETURN NULL;
END $$;
CREATE FUNCTION public.api_time(value timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN to_char((value AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD HH24:MI:SS'::text);
CREATE FUNCTION public.auth_events_refuse() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RAISE EXCEPTION 'auth_events: % is refused; rows may be deleted when they are 7 days old', TG_OP;
END $$;
CREATE FUNCTION public.auth_events_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  erased auth_events := OLD;
BEGIN
  erased.ip := NULL;
  erased.details := '{}';
  IF NEW IS DISTINCT FROM erased OR NOT EXISTS (SELECT FROM users WHERE id = OLD.user_id AND erased_at IS NOT NULL) THEN
    RAISE EXCEPTION 'auth_events: UPDATE is refused, but for what is erased with a member';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.coalesce_changes(most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  place change_places;
  reached change_places;
  seen integer;
BEGIN
  SELECT * INTO place FROM change_places WHERE name = 'coalesced' FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  -- A number beyond all of this server's is from another one, of which this database was a dump.
  IF place.changed_in >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN
    place.changed_in := 0;
  END IF;
  WITH next AS MATERIALIZED (
    SELECT changed_in, sequence, user_id, resource, id, kind FROM changes
      WHERE (changed_in, sequence) > (place.changed_in, place.sequence)
        AND changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      ORDER BY changed_in, sequence LIMIT most
  ), numbered AS (
    SELECT changed_in, sequence,
      row_number() OVER (PARTITION BY user_id, resource, id, kind ORDER BY changed_in DESC, sequence DESC) AS n FROM next
  ), gone AS (
    DELETE FROM changes c USING numbered d WHERE d.n > 1 AND c.changed_in = d.changed_in AND c.sequence = d.sequence
  ), last AS (
    SELECT changed_in, sequence FROM next ORDER BY changed_in DESC, sequence DESC LIMIT 1
  ) SELECT (SELECT count(*) FROM next), 'coalesced', last.changed_in, last.sequence INTO seen, reached.name, reached.changed_in, reached.sequence
    FROM last;
  IF seen > 0 THEN
    UPDATE change_places SET changed_in = reached.changed_in, sequence = reached.sequence WHERE name = 'coalesced';
  END IF;
  RETURN COALESCE(seen, 0);
END $$;
CREATE FUNCTION public.committed_after(transaction bigint, mark pg_snapshot) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((transaction IS NOT NULL) AND (transaction < ((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint) AND COALESCE((NOT pg_visible_in_snapshot(((transaction)::text)::xid8, mark)), true));
CREATE FUNCTION public.connections_copy_peer() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF current_setting('transaction_isolation') = 'read committed' THEN
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM users WHERE id = NEW.peer_id FOR KEY SHARE;
  ELSE
    -- Fails where a member was renamed since this transaction began: it would store a name of before, and copy_names be done.
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM users WHERE id = NEW.peer_id FOR SHARE;
  END IF;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.peer_id),
        TABLE = 'connections', CONSTRAINT = 'connections_peer_fkey';
    END IF;
    NEW.peer_is_disabled := true;
    NEW.peer_name := '';
    NEW.peer_username := '';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.copy_names(most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  batch bigint[];
  copied integer;
  ended integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013006) THEN RETURN 0; END IF;
  batch := ARRAY(SELECT id FROM renamed_users
    WHERE settled_before IS NULL OR settled_before <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY id LIMIT 100);
  IF batch = '{}' THEN RETURN 0; END IF;
  UPDATE connections c SET peer_name = u.folded_name, peer_username = u.folded_username FROM users u
    WHERE u.id = c.peer_id AND c.ctid = ANY (ARRAY(
      SELECT o.ctid FROM users n JOIN connections o ON o.peer_id = n.id
        WHERE n.id = ANY (ARRAY(SELECT user_id FROM renamed_users WHERE id = ANY (batch)))
          AND (o.peer_name, o.peer_username) <> (n.folded_name, n.folded_username)
        LIMIT most FOR NO KEY UPDATE OF o SKIP LOCKED));
  GET DIAGNOSTICS copied = ROW_COUNT;
  IF copied = most THEN RETURN copied; END IF;
  WITH alike AS (
    SELECT r.id FROM renamed_users r WHERE r.id = ANY (batch) AND NOT EXISTS (
      SELECT FROM users n JOIN connections o ON o.peer_id = n.id
        WHERE n.id = r.user_id AND (o.peer_name, o.peer_username) <> (n.folded_name, n.folded_username))
  ), compared AS (
    UPDATE renamed_users SET settled_before = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      WHERE id IN (SELECT id FROM alike) AND settled_before IS NULL
  ), settled AS (
    DELETE FROM renamed_users WHERE id IN (SELECT id FROM alike) AND settled_before IS NOT NULL
  ) SELECT count(*) INTO ended FROM alike;
  RETURN copied + ended;
END $$;
CREATE FUNCTION public.count_achievements() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.earned_at IS NOT NULL THEN
    INSERT INTO public.user_totals (user_id, achievements_count) VALUES (OLD.user_id, -1);
    IF NOT OLD.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (OLD.achievement_id, -1); END IF;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.earned_at IS NOT NULL THEN
    INSERT INTO public.user_totals (user_id, achievements_count) VALUES (NEW.user_id, 1);
    IF NOT NEW.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (NEW.achievement_id, 1); END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_active_users() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND NOT OLD.is_disabled THEN INSERT INTO platform_total_deltas VALUES (-1); END IF;
  IF TG_OP <> 'DELETE' AND NOT NEW.is_disabled THEN INSERT INTO platform_total_deltas VALUES (1); END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_attendees() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.rsvp_status = 'going' THEN
    INSERT INTO public.event_totals VALUES (OLD.event_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.rsvp_status = 'going' THEN
    INSERT INTO public.event_totals VALUES (NEW.event_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_connections() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.status = 'accepted' AND NOT OLD.peer_is_disabled THEN
    INSERT INTO public.user_totals (user_id, connections_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.status = 'accepted' AND NOT NEW.peer_is_disabled THEN
    INSERT INTO public.user_totals (user_id, connections_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.is_visible THEN
    INSERT INTO public.user_totals (user_id, events_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_visible THEN
    INSERT INTO public.user_totals (user_id, events_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_new_achievements() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO user_totals (user_id, achievements_count)
    SELECT user_id, count(*) FROM new_rows WHERE earned_at IS NOT NULL GROUP BY user_id;
  INSERT INTO achievement_total_deltas SELECT achievement_id, count(*) FROM new_rows
    WHERE earned_at IS NOT NULL AND NOT user_is_disabled GROUP BY achievement_id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_new_connections() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO user_totals (user_id, connections_count)
    SELECT user_id, count(*) FROM new_rows WHERE status = 'accepted' AND NOT peer_is_disabled GROUP BY user_id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_new_participants() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO user_totals (user_id, events_count)
    SELECT user_id, count(*) FROM new_rows WHERE is_visible GROUP BY user_id;
  INSERT INTO event_totals SELECT event_id, count(*) FROM new_rows WHERE rsvp_status = 'going' GROUP BY event_id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.count_new_users() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO platform_total_deltas SELECT count(*) FROM new_rows WHERE NOT is_disabled HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION public.end_calendar_links() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  DELETE FROM calendar_links WHERE user_id = NEW.id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.end_sign_ins() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  ended text[];
BEGIN
  DELETE FROM oauth_state WHERE user_id = NEW.id;
  DELETE FROM oauth_sessions WHERE user_id = NEW.id;
  WITH grants AS (DELETE FROM oauth_grants WHERE user_id = NEW.id RETURNING id)
    SELECT array_agg(id) INTO ended FROM grants;
  IF current_setting('session_replication_role') = 'replica' THEN -- in which foreign keys do not cascade
    DELETE FROM oauth_tokens WHERE grant_id = ANY (ended);
    DELETE FROM oauth_grant_usage WHERE grant_id = ANY (ended);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.stored_json_text(value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN COALESCE((to_json(value))::text, 'null'::text);
CREATE FUNCTION public.event_location(name text, city text, country_code text, address text, latitude double precision, longitude double precision) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (num_nonnulls(name, city, country_code, address, latitude, longitude) = 0) THEN 'null'::text ELSE (((((('{"name":'::text || public.stored_json_text(name)) || ',"city":'::text) || public.stored_json_text(city)) || ',"country_code":'::text) || public.stored_json_text(country_code)) || '}'::text) END;
CREATE FUNCTION public.event_visible(role text, is_draft boolean, is_deleted boolean) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((NOT is_deleted) AND ((NOT is_draft) OR (role = ANY (ARRAY['organizer'::text, 'co_organizer'::text]))));
CREATE FUNCTION public.events_copy_on_replication() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  UPDATE participants
    SET starts_at = NEW.starts_at, event_is_draft = NEW.is_draft, event_is_deleted = NEW.is_deleted
    WHERE event_id = NEW.id
      AND (starts_at, event_is_draft, event_is_deleted) IS DISTINCT FROM (NEW.starts_at, NEW.is_draft, NEW.is_deleted);
  RETURN NULL;
END $$;
CREATE FUNCTION public.events_derive() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.is_draft := NEW.status = 'draft';
  NEW.is_deleted := NEW.deleted_at IS NOT NULL;
  RETURN NEW;
END $$;
CREATE FUNCTION public.events_refuse_endless() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  endless text := CASE WHEN NOT isfinite(NEW.starts_at) THEN 'starts_at' WHEN NOT isfinite(NEW.created_at) THEN 'created_at'
    ELSE 'updated_at' END;
BEGIN
  RAISE check_violation USING MESSAGE = format('%s of event %s has no end: it is to be a time of the years 1 to 9999', endless, NEW.id),
    TABLE = 'events', COLUMN = endless, CONSTRAINT = format('events_%s_range_check', endless);
END $$;
CREATE FUNCTION public.fold_case(value text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN lower((value COLLATE "und-x-icu"));
CREATE FUNCTION public.fold_totals(most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
  folded integer := 0;
  n integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013003) THEN RETURN 0; END IF;
  PERFORM set_config('public_user_api.folds', 'yes', true);
  WITH deltas AS (
    DELETE FROM user_totals WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM user_totals WHERE is_delta ORDER BY user_id LIMIT most))
      RETURNING user_id, events_count, connections_count, achievements_count
  ), bases AS (
    DELETE FROM user_totals WHERE NOT is_delta AND user_id = ANY (ARRAY(SELECT DISTINCT user_id FROM deltas))
      RETURNING user_id, events_count, connections_count, achievements_count
  ), sums AS (
    INSERT INTO user_totals (user_id, events_count, connections_count, achievements_count, is_delta)
      SELECT user_id, sum(events_count), sum(connections_count), sum(achievements_count), false
        FROM (TABLE deltas UNION ALL TABLE bases) parts GROUP BY user_id
  ) SELECT count(*) INTO n FROM deltas;
  folded := folded + n;
  WITH deltas AS (
    DELETE FROM event_totals WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM event_totals WHERE is_delta ORDER BY event_id LIMIT most))
      RETURNING event_id, attendees_count
  ), bases AS (
    DELETE FROM event_totals WHERE NOT is_delta AND event_id = ANY (ARRAY(SELECT DISTINCT event_id FROM deltas))
      RETURNING event_id, attendees_count
  ), sums AS (
    INSERT INTO event_totals (event_id, attendees_count, is_delta)
      SELECT event_id, sum(attendees_count), false FROM (TABLE deltas UNION ALL TABLE bases) parts GROUP BY event_id
  ) SELECT count(*) INTO n FROM deltas;
  folded := folded + n;
  -- Those of achievements that somebody is writing, an import say, wait until that has ended; nobody waits for it.
  IF EXISTS (SELECT FROM achievement_total_deltas) THEN
    WITH free AS MATERIALIZED (
      SELECT id FROM achievements FOR NO KEY UPDATE SKIP LOCKED
    ), deltas AS (
      DELETE FROM achievement_total_deltas WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM achievement_total_deltas
          WHERE achievement_id NOT IN (SELECT id FROM achievements EXCEPT SELECT id FROM free) LIMIT most))
        RETURNING achievement_id, earners_count
    ), sums AS (
      UPDATE achievements a SET earners_count = a.earners_count + d.earners_count
        FROM (SELECT achievement_id, sum(earners_count) AS earners_count FROM deltas GROUP BY achievement_id) d
        WHERE a.id = d.achievement_id AND d.earners_count <> 0
    ) SELECT count(*) INTO n FROM deltas;
    folded := folded + n;
  END IF;
  WITH deltas AS (
    DELETE FROM platform_total_deltas WHERE ctid = ANY (ARRAY(SELECT ctid FROM platform_total_deltas LIMIT most))
      RETURNING active_users_count
  ), sums AS (
    UPDATE platform_totals SET active_users_count = active_users_count + (SELECT sum(active_users_count) FROM deltas)
      WHERE EXISTS (SELECT FROM deltas)
  ) SELECT count(*) INTO n FROM deltas;
  PERFORM set_config('public_user_api.folds', '', true);
  RETURN folded + n;
END $$;
CREATE FUNCTION public.imported_hash_kind(password_hash text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
  SELECT CASE WHEN password_hash NOT LIKE '$argon2id$v=19$m=12288,t=3,p=1$%'
    THEN substring(password_hash FROM '^(\$2[aby]\$\d\d|\$argon2(?:id|i|d)\$v=\d\d\$m=\d{1,7},t=\d{1,3},p=\d{1,3})\$') END
$_$;
CREATE FUNCTION public.is_showable_time(value timestamp with time zone, margin interval) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((value >= ('0001-01-01 00:00:00+00'::timestamp with time zone + margin)) AND (value < ('10000-01-01 00:00:00+00'::timestamp with time zone - margin)));
CREATE FUNCTION public.json_text(value text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN COALESCE((to_json(value))::text, 'null'::text);
CREATE FUNCTION public.last_mark_before(moment timestamp with time zone) RETURNS pg_snapshot
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT snapshot::pg_snapshot FROM change_marks WHERE taken_at <= moment - interval '2 s' ORDER BY taken_at DESC LIMIT 1
$$;
CREATE FUNCTION public.local_time(value timestamp with time zone, zone text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN to_char((value AT TIME ZONE zone), 'YYYY-MM-DD HH24:MI:SS'::text);
CREATE FUNCTION public.local_time_or_utc(value timestamp with time zone, zone text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RETURN local_time(value, zone);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN api_time(value);
END $$;
CREATE FUNCTION public.mark_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;
CREATE FUNCTION public.mark_event_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id()::text::bigint;
  NEW.revision := LEAST(OLD.revision::bigint + 1, 2147483647);
  RETURN NEW;
END $$;
CREATE FUNCTION public.oauth_clients_announce_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  PERFORM announce_revocations('client', ARRAY[OLD.id]);
  RETURN NULL;
END $$;
CREATE FUNCTION public.oauth_clients_announce_disabled() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  PERFORM announce_revocations('client', ARRAY[NEW.id]);
  RETURN NULL;
END $$;
CREATE FUNCTION public.oauth_clients_end_with_owner() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  UPDATE oauth_clients SET disabled_at = COALESCE(disabled_at, now()), disabled_by_owner = false
    WHERE owner_id = NEW.id AND (disabled_at IS NULL OR disabled_by_owner);
  RETURN NULL;
END $$;
CREATE FUNCTION public.oauth_grants_announce() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  -- Expired ones end nothing: no credential of theirs is remembered.
  PERFORM announce_revocations('grant', (SELECT array_agg(id) FROM old_rows WHERE expires_at > now()));
  RETURN NULL;
END $$;
CREATE FUNCTION public.participants_copy_event() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  SELECT starts_at, is_draft, is_deleted INTO NEW.starts_at, NEW.event_is_draft, NEW.event_is_deleted
    FROM events WHERE id = NEW.event_id FOR KEY SHARE;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no event %s', NEW.event_id),
        TABLE = 'participants', CONSTRAINT = 'participants_event_fkey';
    END IF;
    NEW.starts_at := 'epoch';
    NEW.event_is_draft := true;
    NEW.event_is_deleted := true;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.percentage(part bigint, whole bigint) RETURNS numeric
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (whole = 0) THEN 0.00 ELSE (0.01 * ((((20000 * part) + whole) / (2 * whole)))::numeric) END;
CREATE FUNCTION public.rarity_tier(earners bigint, eligible bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (eligible < 10) THEN 'unrated'::text WHEN ((100 * earners) >= (50 * eligible)) THEN 'common'::text WHEN ((100 * earners) >= (20 * eligible)) THEN 'uncommon'::text WHEN ((100 * earners) >= (5 * eligible)) THEN 'rare'::text WHEN ((100 * earners) >= eligible) THEN 'epic'::text ELSE 'legendary'::text END;
CREATE FUNCTION public.record_achievement_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind) VALUES ('achievements', NEW.id, 'updated');
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_connection_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.id, OLD.peer_id, OLD.status, OLD.source, OLD.met_at_event_id, OLD.requested_at, OLD.connected_at)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.id, NEW.peer_id, NEW.status, NEW.source, NEW.met_at_event_id, NEW.requested_at, NEW.connected_at)
    THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.id) <> (NEW.user_id, NEW.id)) THEN
    IF NOT OLD.peer_is_disabled OR public.was_hidden('people', OLD.peer_id) THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'connections', OLD.id, 'removed');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NOT NEW.peer_is_disabled OR (TG_OP = 'UPDATE' AND NOT OLD.peer_is_disabled) THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'connections', NEW.id, CASE WHEN NEW.peer_is_disabled THEN 'removed' ELSE 'updated' END);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_earning_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  -- Not read where there is none: OLD of an INSERT, NEW of a DELETE.
  old_pin smallint := CASE WHEN TG_OP <> 'INSERT' THEN OLD.pin_position END;
  new_pin smallint := CASE WHEN TG_OP <> 'DELETE' THEN NEW.pin_position END;
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.achievement_id, OLD.progress, OLD.earned_at, OLD.pin_position)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.achievement_id, NEW.progress, NEW.earned_at, NEW.pin_position) THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.achievement_id) <> (NEW.user_id, NEW.achievement_id)) THEN
    IF OLD.earned_at IS NOT NULL THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'achievements', OLD.achievement_id, 'removed');
    END IF;
    IF old_pin IS NOT NULL THEN PERFORM public.record_pins(OLD.user_id); END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.earned_at IS NOT NULL OR (TG_OP = 'UPDATE' AND OLD.earned_at IS NOT NULL) THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (NEW.user_id, 'achievements', NEW.achievement_id,
      CASE WHEN NEW.earned_at IS NULL THEN 'removed' ELSE 'updated' END);
  END IF;
  IF new_pin IS DISTINCT FROM old_pin THEN PERFORM public.record_pins(NEW.user_id); END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_event_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind)
    VALUES ('events', NEW.id, CASE
      WHEN NOT (OLD.is_draft OR OLD.is_deleted) AND (NEW.is_draft OR NEW.is_deleted) THEN 'removed' ELSE 'updated' END);
  -- Nobody else is to know that there was a draft.
  IF OLD.is_draft AND NOT OLD.is_deleted AND NEW.is_deleted THEN
    INSERT INTO public.changes (user_id, resource, id, kind) SELECT user_id, 'events', NEW.id, 'removed' FROM public.participants
      WHERE event_id = NEW.id AND public.event_visible(role, true, false);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_new_connections() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'connections', id, 'updated' FROM new_rows WHERE NOT peer_is_disabled;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_new_earnings() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM new_rows WHERE earned_at IS NOT NULL;
  PERFORM public.record_pins(user_id) FROM new_rows WHERE pin_position IS NOT NULL GROUP BY user_id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_new_participants() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'events', event_id, 'updated' FROM new_rows WHERE is_visible
    UNION ALL SELECT NULL, 'events', event_id, 'updated' FROM new_rows WHERE role = 'co_organizer';
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_participant_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.event_id, OLD.role, OLD.rsvp_status, OLD.responded_at, OLD.checked_in_at)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.event_id, NEW.role, NEW.rsvp_status, NEW.responded_at, NEW.checked_in_at) THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.event_id) <> (NEW.user_id, NEW.event_id)) THEN
    IF OLD.is_visible OR public.was_hidden('events', OLD.event_id) THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'events', OLD.event_id, 'removed');
    END IF;
    IF OLD.role = 'co_organizer' THEN
      INSERT INTO public.changes (resource, id, kind) VALUES ('events', OLD.event_id, 'updated');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.is_visible OR (TG_OP = 'UPDATE' AND OLD.is_visible) THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'events', NEW.event_id, CASE WHEN NEW.is_visible THEN 'updated' ELSE 'removed' END);
  END IF;
  -- Everybody sees who organises it.
  IF (NEW.role = 'co_organizer') <> (TG_OP = 'UPDATE' AND OLD.role = 'co_organizer' AND OLD.user_id = NEW.user_id AND OLD.event_id = NEW.event_id) THEN
    INSERT INTO public.changes (resource, id, kind) VALUES ('events', NEW.event_id, 'updated');
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.record_pins(of_user bigint) RETURNS void
    LANGUAGE sql
    AS $$
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM public.user_achievements WHERE user_id = of_user AND pin_position IS NOT NULL
$$;
CREATE FUNCTION public.record_user_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF OLD.card <> NEW.card OR OLD.is_disabled <> NEW.is_disabled THEN
    INSERT INTO public.changes (resource, id, kind)
      VALUES ('people', NEW.id, CASE
        WHEN NEW.is_disabled AND NOT OLD.is_disabled THEN 'removed'
        WHEN OLD.is_disabled AND NOT NEW.is_disabled THEN 'returned' ELSE 'updated' END);
  END IF;
  IF (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at) THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (NEW.id, 'profile', NEW.id, 'updated');
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.refuse_new_id() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The id of a row of %s never changes: insert a new row', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $$;
CREATE FUNCTION public.refuse_truncate() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RAISE feature_not_supported USING
    MESSAGE = format('TRUNCATE of %s would leave totals wrong: use DELETE', TG_TABLE_NAME), TABLE = TG_TABLE_NAME;
END $$;
CREATE FUNCTION public.shown_name(stored text, first_name text, last_name text, username text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN COALESCE(NULLIF(btrim(stored), ''::text), NULLIF(btrim(((COALESCE(first_name, ''::text) || ' '::text) || COALESCE(last_name, ''::text))), ''::text), username);
CREATE FUNCTION public.stored_api_time(value timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN to_char((value AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD HH24:MI:SS'::text);
CREATE FUNCTION public.take_change_mark() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text
    WHERE NOT EXISTS (SELECT FROM (SELECT * FROM change_marks ORDER BY taken_at DESC LIMIT 1) last
      WHERE last.taken_at > clock_timestamp() - interval '1 s'
        OR pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= pg_snapshot_xmax(last.snapshot::pg_snapshot)::text::bigint + 1)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    DELETE FROM change_marks WHERE taken_at < clock_timestamp() - interval '40 days'
      OR (taken_at BETWEEN clock_timestamp() - interval '65 minutes' AND clock_timestamp() - interval '1 hour'
        AND extract(second FROM taken_at) >= 5);
  END IF;
END $$;
CREATE FUNCTION public.tell_platform_of_consent() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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
CREATE FUNCTION public.tell_platform_of_sign_in() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id) VALUES ('member.signed_in', NEW.user_id, NEW.client_id);
  RETURN NULL;
END $$;
CREATE FUNCTION public.user_achievements_copy_user() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  SELECT is_disabled INTO NEW.user_is_disabled FROM users WHERE id = NEW.user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.user_id),
        TABLE = 'user_achievements', CONSTRAINT = 'user_achievements_user_fkey';
    END IF;
    NEW.user_is_disabled := true;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.user_card(id bigint, username text, display_name text, profile_picture text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (((((((('{"id":'::text || id) || ',"username":'::text) || public.stored_json_text(username)) || ',"display_name":'::text) || public.stored_json_text(display_name)) || ',"profile_picture":'::text) || public.stored_json_text(profile_picture)) || '}'::text);
CREATE FUNCTION public.users_announce_disabled() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  PERFORM announce_revocations('user', ARRAY[NEW.id::text]);
  RETURN NULL;
END $$;
CREATE FUNCTION public.users_bump_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
CREATE FUNCTION public.users_copy_on_replication() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  UPDATE connections
    SET peer_is_disabled = NEW.is_disabled, peer_name = NEW.folded_name, peer_username = NEW.folded_username
    WHERE peer_id = NEW.id AND (peer_is_disabled, peer_name, peer_username)
      IS DISTINCT FROM (NEW.is_disabled, NEW.folded_name, NEW.folded_username);
  UPDATE user_achievements SET user_is_disabled = NEW.is_disabled
    WHERE user_id = NEW.id AND user_is_disabled <> NEW.is_disabled;
  RETURN NULL;
END $$;
CREATE FUNCTION public.users_derive() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  NEW.is_disabled := NEW.disabled_at IS NOT NULL;
  NEW.folded_username := fold_case(NEW.username);
  NEW.folded_name := fold_case(shown_name(NEW.stored_display_name, NEW.first_name, NEW.last_name, NEW.username));
  RETURN NEW;
END $$;
CREATE FUNCTION public.users_move_sign_ins_valid_since() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL THEN
    NEW.sign_ins_valid_since := clock_timestamp();
  END IF;
  IF OLD.sign_ins_valid_since IS DISTINCT FROM NEW.sign_ins_valid_since THEN
    PERFORM FROM users WHERE id = OLD.id FOR UPDATE;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.users_queue_names() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO renamed_users (user_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION public.was_hidden(resource text, id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $_$
  SELECT EXISTS (SELECT FROM changes c WHERE c.user_id IS NULL AND c.resource = $1 AND c.id = $2 AND c.kind = 'removed')
$_$;
CREATE TABLE public.achievement_total_deltas (
    achievement_id bigint NOT NULL,
    earners_count integer NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.achievements (
    id bigint NOT NULL,
    key text,
    name text NOT NULL,
    description text,
    icon_url text,
    category text NOT NULL,
    points integer DEFAULT 0 NOT NULL,
    is_hidden boolean DEFAULT false NOT NULL,
    criteria text,
    target integer,
    "position" integer DEFAULT 0 NOT NULL,
    retired_at timestamp with time zone,
    earners_count bigint DEFAULT 0 NOT NULL,
    revealed text GENERATED ALWAYS AS (((((((('"key":'::text || public.stored_json_text(key)) || ',"name":'::text) || public.stored_json_text(name)) || ',"description":'::text) || public.stored_json_text(description)) || ',"icon_url":'::text) || public.stored_json_text(icon_url))) STORED NOT NULL,
    CONSTRAINT achievements_category_check CHECK (((char_length(category) >= 1) AND (char_length(category) <= 100))),
    CONSTRAINT achievements_criteria_check CHECK ((char_length(criteria) <= 2000)),
    CONSTRAINT achievements_description_check CHECK ((char_length(description) <= 2000)),
    CONSTRAINT achievements_icon_url_check CHECK ((char_length(icon_url) <= 2048)),
    CONSTRAINT achievements_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint))),
    CONSTRAINT achievements_key_check CHECK (((char_length(key) >= 1) AND (char_length(key) <= 100))),
    CONSTRAINT achievements_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT achievements_points_check CHECK ((points >= 0)),
    CONSTRAINT achievements_retired_at_range_check CHECK (public.is_showable_time(retired_at, '00:00:00'::interval)),
    CONSTRAINT achievements_target_check CHECK ((target > 0))
)
WITH (fillfactor='50');
ALTER TABLE public.achievements ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.achievements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_key_usage (
    key_id text NOT NULL,
    last_used_at timestamp with time zone,
    last_used_ip inet,
    uses_count bigint DEFAULT 0 NOT NULL,
    exposed_at timestamp with time zone,
    exposed_origin text,
    CONSTRAINT api_key_usage_exposed_origin_check CHECK ((char_length(exposed_origin) <= 300))
)
WITH (fillfactor='70');
CREATE TABLE public.api_keys (
    id text NOT NULL,
    user_id bigint,
    name text NOT NULL,
    environment text NOT NULL,
    scopes text[] NOT NULL,
    hash bytea NOT NULL,
    pepper_id bytea NOT NULL,
    last_four text NOT NULL,
    allowed_cidrs cidr[] DEFAULT '{}'::cidr[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    no_expiry_reason text,
    revoked_at timestamp with time zone,
    revocation_reason text,
    replaced_by text,
    self_issued boolean DEFAULT false NOT NULL,
    CONSTRAINT api_keys_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT api_keys_expiry_check CHECK ((((expires_at IS NULL) = (no_expiry_reason IS NOT NULL)) OR (replaced_by IS NOT NULL))),
    CONSTRAINT api_keys_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT api_keys_id_check CHECK ((id ~ '^[0-9A-Za-z]{12}$'::text)),
    CONSTRAINT api_keys_last_four_check CHECK ((char_length(last_four) = 4)),
    CONSTRAINT api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
    CONSTRAINT api_keys_no_expiry_reason_check CHECK (((char_length(no_expiry_reason) >= 1) AND (char_length(no_expiry_reason) <= 500))),
    CONSTRAINT api_keys_owner_check CHECK (
CASE
    WHEN (user_id IS NULL) THEN ((cardinality(scopes) > 0) AND (scopes <@ ARRAY['platform:read'::text, 'platform:write'::text]))
    ELSE (NOT (scopes && ARRAY['platform:read'::text, 'platform:write'::text]))
END),
    CONSTRAINT api_keys_pepper_id_check CHECK ((octet_length(pepper_id) = 4)),
    CONSTRAINT api_keys_revocation_check CHECK (((revoked_at IS NULL) = (revocation_reason IS NULL))),
    CONSTRAINT api_keys_revocation_reason_check CHECK (((char_length(revocation_reason) >= 1) AND (char_length(revocation_reason) <= 500))),
    CONSTRAINT api_keys_self_issued_check CHECK (((NOT self_issued) OR ((user_id IS NOT NULL) AND (expires_at IS NOT NULL))))
);
CREATE TABLE public.auth_events (
    id bigint NOT NULL,
    occurred_at timestamp with time zone DEFAULT now() NOT NULL,
    type text NOT NULL,
    actor text NOT NULL,
    user_id bigint,
    client_id text,
    key_id text,
    ip inet,
    error_id text,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT auth_events_actor_check CHECK ((actor = ANY (ARRAY['user'::text, 'client'::text, 'admin'::text, 'system'::text]))),
    CONSTRAINT auth_events_size_check CHECK (((octet_length(type) <= 64) AND (octet_length(client_id) <= 100) AND (octet_length(key_id) <= 100) AND (octet_length(error_id) <= 64) AND (octet_length((details)::text) <= 2000))),
    CONSTRAINT auth_events_type_check CHECK ((type ~ '^[a-z_]+\.[a-z_]+$'::text))
);
ALTER TABLE public.auth_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.auth_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.calendar_links (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    slot smallint NOT NULL,
    name text NOT NULL,
    key bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT calendar_links_key_check CHECK ((octet_length(key) = 32)),
    CONSTRAINT calendar_links_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60))),
    CONSTRAINT calendar_links_slot_check CHECK (((slot >= 1) AND (slot <= 10)))
);
ALTER TABLE public.calendar_links ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.calendar_links_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.change_marks (
    taken_at timestamp with time zone NOT NULL,
    snapshot text NOT NULL,
    CONSTRAINT change_marks_snapshot_check CHECK (((snapshot)::pg_snapshot IS NOT NULL))
);
CREATE TABLE public.change_places (
    name text NOT NULL,
    changed_in bigint DEFAULT 0 NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    CONSTRAINT change_places_name_check CHECK ((name = ANY (ARRAY['coalesced'::text, 'swept'::text, 'told'::text, 'platform_swept'::text])))
);
CREATE TABLE public.changes (
    changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    sequence bigint NOT NULL,
    user_id bigint,
    resource text NOT NULL,
    id bigint NOT NULL,
    kind text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0');
ALTER TABLE public.changes ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.changes_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.compatible_migrations (
    name text NOT NULL
);
CREATE TABLE public.connections (
    user_id bigint NOT NULL,
    id bigint NOT NULL,
    peer_id bigint NOT NULL,
    status text NOT NULL,
    source text,
    met_at_event_id bigint,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    connected_at timestamp with time zone,
    peer_is_disabled boolean NOT NULL,
    peer_name text NOT NULL COLLATE pg_catalog."C",
    peer_username text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT connections_connected_at_check CHECK (((status = 'accepted'::text) = (connected_at IS NOT NULL))),
    CONSTRAINT connections_connected_at_range_check CHECK (public.is_showable_time(connected_at, '00:00:00'::interval)),
    CONSTRAINT connections_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint))),
    CONSTRAINT connections_peer_check CHECK ((peer_id <> user_id)),
    CONSTRAINT connections_requested_at_range_check CHECK (public.is_showable_time(requested_at, '00:00:00'::interval)),
    CONSTRAINT connections_source_check CHECK ((source = ANY (ARRAY['event'::text, 'search'::text, 'invite'::text, 'import'::text]))),
    CONSTRAINT connections_status_check CHECK ((status = ANY (ARRAY['accepted'::text, 'pending_sent'::text, 'pending_received'::text])))
);
CREATE SEQUENCE public.connections_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.connections_id_seq OWNED BY public.connections.id;
CREATE TABLE public.developer_requests (
    id bigint NOT NULL,
    client_id text,
    key_id text,
    occurred_at timestamp with time zone NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    error text,
    reason text,
    parameter text,
    value text,
    error_id text,
    CONSTRAINT developer_requests_app_check CHECK ((num_nonnulls(client_id, key_id) = 1)),
    CONSTRAINT developer_requests_error_check CHECK ((octet_length(error) <= 64)),
    CONSTRAINT developer_requests_error_id_check CHECK ((octet_length(error_id) <= 64)),
    CONSTRAINT developer_requests_method_check CHECK ((octet_length(method) <= 20)),
    CONSTRAINT developer_requests_parameter_check CHECK ((octet_length(parameter) <= 64)),
    CONSTRAINT developer_requests_reason_check CHECK ((octet_length(reason) <= 64)),
    CONSTRAINT developer_requests_route_check CHECK ((octet_length(route) <= 100)),
    CONSTRAINT developer_requests_value_check CHECK ((octet_length(value) <= 300))
);
ALTER TABLE public.developer_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.developer_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.event_totals (
    event_id bigint NOT NULL,
    attendees_count integer NOT NULL,
    is_delta boolean DEFAULT true NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0', autovacuum_vacuum_insert_threshold='-1');
CREATE TABLE public.events (
    id bigint NOT NULL,
    title text NOT NULL,
    summary text,
    description text,
    status text NOT NULL,
    visibility text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone,
    timezone text NOT NULL,
    is_all_day boolean DEFAULT false NOT NULL,
    is_online boolean DEFAULT false NOT NULL,
    online_url text,
    location_name text,
    location_city text,
    location_country_code text,
    location_address text,
    location_latitude double precision,
    location_longitude double precision,
    cover_image text,
    organizer_id bigint NOT NULL,
    capacity integer,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    cancelled_at timestamp with time zone,
    cancellation_reason text,
    deleted_at timestamp with time zone,
    card text GENERATED ALWAYS AS ((((((((((((((((((((((((((((('{"id":'::text || id) || ',"title":'::text) || public.stored_json_text(title)) || ',"summary":'::text) || public.stored_json_text(summary)) || ',"status":"'::text) || status) || '","visibility":"'::text) || visibility) || '","starts_at":"'::text) || public.stored_api_time(starts_at)) || '","ends_at":'::text) || public.stored_json_text(public.stored_api_time(ends_at))) || ',"timezone":'::text) || public.stored_json_text(timezone)) || ',"is_all_day":'::text) ||
CASE
    WHEN is_all_day THEN 'true'::text
    ELSE 'false'::text
END) || ',"is_online":'::text) ||
CASE
    WHEN is_online THEN 'true'::text
    ELSE 'false'::text
END) || ',"cover_image":'::text) || public.stored_json_text(cover_image)) || ',"capacity":'::text) || COALESCE((capacity)::text, 'null'::text)) || ',"created_at":"'::text) || public.stored_api_time(created_at)) || '","updated_at":"'::text) || public.stored_api_time(updated_at)) || '"'::text)) STORED NOT NULL,
    location text GENERATED ALWAYS AS (public.event_location(location_name, location_city, location_country_code, location_address, location_latitude, location_longitude)) STORED NOT NULL,
    is_draft boolean NOT NULL,
    is_deleted boolean NOT NULL,
    folded_title text GENERATED ALWAYS AS (public.fold_case(title)) STORED NOT NULL COLLATE pg_catalog."C",
    changed_in bigint,
    revision integer DEFAULT 0 NOT NULL,
    CONSTRAINT events_cancellation_reason_check CHECK ((char_length(cancellation_reason) <= 1000)),
    CONSTRAINT events_cancelled_at_range_check CHECK (public.is_showable_time(cancelled_at, '00:00:00'::interval)),
    CONSTRAINT events_capacity_check CHECK ((capacity >= 0)),
    CONSTRAINT events_check CHECK ((ends_at >= starts_at)),
    CONSTRAINT events_cover_image_check CHECK ((char_length(cover_image) <= 2048)),
    CONSTRAINT events_created_at_range_check CHECK (public.is_showable_time(created_at, '00:00:00'::interval)),
    CONSTRAINT events_deleted_at_range_check CHECK (public.is_showable_time(deleted_at, '00:00:00'::interval)),
    CONSTRAINT events_description_check CHECK ((char_length(description) <= 20000)),
    CONSTRAINT events_ends_at_range_check CHECK (public.is_showable_time(ends_at, '1 day'::interval)),
    CONSTRAINT events_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint))),
    CONSTRAINT events_location_address_check CHECK ((char_length(location_address) <= 500)),
    CONSTRAINT events_location_city_check CHECK ((char_length(location_city) <= 200)),
    CONSTRAINT events_location_country_code_check CHECK ((location_country_code ~ '^[A-Z]{2}$'::text)),
    CONSTRAINT events_location_latitude_check CHECK (((location_latitude >= ('-90'::integer)::double precision) AND (location_latitude <= (90)::double precision))),
    CONSTRAINT events_location_longitude_check CHECK (((location_longitude >= ('-180'::integer)::double precision) AND (location_longitude <= (180)::double precision))),
    CONSTRAINT events_location_name_check CHECK ((char_length(location_name) <= 300)),
    CONSTRAINT events_online_url_check CHECK ((char_length(online_url) <= 2048)),
    CONSTRAINT events_starts_at_range_check CHECK (public.is_showable_time(starts_at, '1 day'::interval)),
    CONSTRAINT events_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'scheduled'::text, 'ongoing'::text, 'completed'::text, 'cancelled'::text]))),
    CONSTRAINT events_summary_check CHECK ((char_length(summary) <= 1000)),
    CONSTRAINT events_tags_check CHECK ((cardinality(tags) <= 100)),
    CONSTRAINT events_timezone_check CHECK ((('1970-01-01 00:00:00+00'::timestamp with time zone AT TIME ZONE timezone) IS NOT NULL)),
    CONSTRAINT events_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 300))),
    CONSTRAINT events_updated_at_range_check CHECK (public.is_showable_time(updated_at, '00:00:00'::interval)),
    CONSTRAINT events_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'unlisted'::text, 'private'::text])))
)
WITH (fillfactor='90');
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.idempotent_responses (
    key_id text NOT NULL,
    idempotency_key text NOT NULL,
    body_hash bytea NOT NULL,
    response jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT idempotent_responses_body_hash_check CHECK ((octet_length(body_hash) = 32)),
    CONSTRAINT idempotent_responses_idempotency_key_check CHECK ((idempotency_key ~ '^[!-~]{1,200}$'::text))
);
CREATE TABLE public.login_throttle (
    key bytea NOT NULL,
    attempts integer NOT NULL,
    window_ends_at timestamp with time zone NOT NULL,
    blocks integer DEFAULT 0 NOT NULL,
    under_way timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    CONSTRAINT login_throttle_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT login_throttle_blocks_check CHECK ((blocks >= 0)),
    CONSTRAINT login_throttle_key_check CHECK ((octet_length(key) = 32))
)
WITH (fillfactor='70');
CREATE TABLE public.member_usage (
    user_id bigint NOT NULL,
    day date NOT NULL,
    app_kind text NOT NULL,
    app_id text NOT NULL,
    scope text NOT NULL,
    uses bigint NOT NULL,
    last_used_at timestamp with time zone NOT NULL,
    CONSTRAINT member_usage_app_kind_check CHECK ((app_kind = ANY (ARRAY['client'::text, 'key'::text]))),
    CONSTRAINT member_usage_uses_check CHECK ((uses > 0))
)
WITH (fillfactor='70');
CREATE TABLE public.migrations (
    id integer NOT NULL,
    "timestamp" bigint NOT NULL,
    name character varying NOT NULL
);
CREATE SEQUENCE public.migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.migrations_id_seq OWNED BY public.migrations.id;
CREATE TABLE public.oauth_clients (
    id text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    redirect_uris text[] NOT NULL,
    post_logout_redirect_uris text[] DEFAULT '{}'::text[] NOT NULL,
    allowed_origins text[] DEFAULT '{}'::text[] NOT NULL,
    scopes text[] NOT NULL,
    jwks jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    client_uri text,
    policy_uri text,
    logo bytea,
    id_token_signed_response_alg text DEFAULT 'ES256'::text NOT NULL,
    document_read_at timestamp with time zone,
    owner_id bigint,
    disabled_by_owner boolean DEFAULT false NOT NULL,
    CONSTRAINT oauth_clients_allowed_origins_check CHECK ((cardinality(allowed_origins) <= 50)),
    CONSTRAINT oauth_clients_client_uri_check CHECK ((char_length(client_uri) <= 2048)),
    CONSTRAINT oauth_clients_id_check CHECK ((id ~ '^[\x21-\x7e]{1,100}$'::text)),
    CONSTRAINT oauth_clients_id_token_signed_response_alg_check CHECK ((id_token_signed_response_alg = ANY (ARRAY['ES256'::text, 'RS256'::text]))),
    CONSTRAINT oauth_clients_logo_check CHECK ((octet_length(logo) <= 65536)),
    CONSTRAINT oauth_clients_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
    CONSTRAINT oauth_clients_policy_uri_check CHECK ((char_length(policy_uri) <= 2048)),
    CONSTRAINT oauth_clients_post_logout_redirect_uris_check CHECK ((cardinality(post_logout_redirect_uris) <= 50)),
    CONSTRAINT oauth_clients_redirect_uris_check CHECK (((cardinality(redirect_uris) >= 1) AND (cardinality(redirect_uris) <= 50))),
    CONSTRAINT oauth_clients_type_check CHECK ((type = ANY (ARRAY['web'::text, 'native'::text])))
);
CREATE TABLE public.oauth_consents (
    user_id bigint NOT NULL,
    client_id text NOT NULL,
    granted text[] NOT NULL,
    rejected text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.oauth_grant_usage (
    grant_id text NOT NULL,
    last_used_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.oauth_grants (
    id text NOT NULL,
    user_id bigint NOT NULL,
    client_id text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.oauth_refusals (
    place smallint NOT NULL,
    occurred_at timestamp with time zone DEFAULT now() NOT NULL,
    error_id text NOT NULL,
    route text NOT NULL,
    error text NOT NULL,
    reason text NOT NULL,
    client_id text,
    redirect_uri text,
    ip inet,
    CONSTRAINT oauth_refusals_client_id_check CHECK ((octet_length(client_id) <= 100)),
    CONSTRAINT oauth_refusals_error_check CHECK ((octet_length(error) <= 64)),
    CONSTRAINT oauth_refusals_error_id_check CHECK ((octet_length(error_id) <= 64)),
    CONSTRAINT oauth_refusals_place_check CHECK (((place >= 0) AND (place <= 9999))),
    CONSTRAINT oauth_refusals_reason_check CHECK ((octet_length(reason) <= 64)),
    CONSTRAINT oauth_refusals_redirect_uri_check CHECK ((octet_length(redirect_uri) <= 200)),
    CONSTRAINT oauth_refusals_route_check CHECK ((octet_length(route) <= 100))
)
WITH (fillfactor='50');
CREATE SEQUENCE public.oauth_refusals_place
    AS smallint
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    MAXVALUE 9999
    CACHE 1
    CYCLE;
ALTER SEQUENCE public.oauth_refusals_place OWNED BY public.oauth_refusals.place;
CREATE TABLE public.oauth_sessions (
    uid_key bytea NOT NULL,
    key bytea NOT NULL,
    public_id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id bigint,
    payload bytea NOT NULL,
    signed_in_at timestamp with time zone,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    user_agent text,
    ip inet,
    upstream_subject_key bytea,
    upstream_session_key bytea,
    CONSTRAINT oauth_sessions_key_check CHECK ((octet_length(key) = 32)),
    CONSTRAINT oauth_sessions_uid_key_check CHECK ((octet_length(uid_key) = 32)),
    CONSTRAINT oauth_sessions_upstream_session_key_check CHECK ((octet_length(upstream_session_key) = 32)),
    CONSTRAINT oauth_sessions_upstream_subject_key_check CHECK ((octet_length(upstream_subject_key) = 32)),
    CONSTRAINT oauth_sessions_user_agent_check CHECK ((char_length(user_agent) <= 300))
)
WITH (fillfactor='80');
CREATE TABLE public.oauth_state (
    key bytea NOT NULL,
    model text NOT NULL,
    payload bytea,
    consumed_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    user_id bigint,
    CONSTRAINT oauth_state_key_check CHECK ((octet_length(key) = 32)),
    CONSTRAINT oauth_state_model_check CHECK ((model = ANY (ARRAY['Interaction'::text, 'PushedAuthorizationRequest'::text, 'ReplayDetection'::text, 'UpstreamSignIn'::text, 'PasskeySignIn'::text, 'PasskeyRegistration'::text, 'PasswordReset'::text])))
)
WITH (fillfactor='90');
CREATE TABLE public.oauth_tokens (
    key bytea NOT NULL,
    model text NOT NULL,
    grant_id text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    consumed_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    successor bytea,
    CONSTRAINT oauth_tokens_key_check CHECK ((octet_length(key) = 32)),
    CONSTRAINT oauth_tokens_model_check CHECK ((model = ANY (ARRAY['AuthorizationCode'::text, 'AccessToken'::text, 'RefreshToken'::text])))
)
WITH (fillfactor='90');
CREATE TABLE public.participants (
    user_id bigint NOT NULL,
    event_id bigint NOT NULL,
    role text NOT NULL,
    rsvp_status text,
    responded_at timestamp with time zone,
    checked_in_at timestamp with time zone,
    starts_at timestamp with time zone NOT NULL,
    event_is_draft boolean NOT NULL,
    event_is_deleted boolean NOT NULL,
    is_visible boolean GENERATED ALWAYS AS (public.event_visible(role, event_is_draft, event_is_deleted)) STORED NOT NULL,
    changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint,
    CONSTRAINT participants_checked_in_at_range_check CHECK (public.is_showable_time(checked_in_at, '00:00:00'::interval)),
    CONSTRAINT participants_responded_at_range_check CHECK (public.is_showable_time(responded_at, '00:00:00'::interval)),
    CONSTRAINT participants_role_check CHECK ((role = ANY (ARRAY['organizer'::text, 'co_organizer'::text, 'attendee'::text, 'invitee'::text]))),
    CONSTRAINT participants_rsvp_status_check CHECK (
CASE role
    WHEN 'attendee'::text THEN ((rsvp_status IS NOT NULL) AND (rsvp_status = ANY (ARRAY['going'::text, 'maybe'::text, 'waitlisted'::text])))
    WHEN 'invitee'::text THEN ((rsvp_status IS NOT NULL) AND (rsvp_status = ANY (ARRAY['pending'::text, 'declined'::text])))
    ELSE (rsvp_status IS NULL)
END)
);
CREATE TABLE public.passkeys (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    credential_id bytea NOT NULL,
    user_handle bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    transports text[] DEFAULT '{}'::text[] NOT NULL,
    backup_eligible boolean NOT NULL,
    backed_up boolean NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT passkeys_credential_id_check CHECK (((octet_length(credential_id) >= 1) AND (octet_length(credential_id) <= 1023))),
    CONSTRAINT passkeys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60))),
    CONSTRAINT passkeys_public_key_check CHECK (((octet_length(public_key) >= 1) AND (octet_length(public_key) <= 2048))),
    CONSTRAINT passkeys_sign_count_check CHECK (((sign_count >= 0) AND (sign_count <= '4294967295'::bigint))),
    CONSTRAINT passkeys_transports_check CHECK ((cardinality(transports) <= 10)),
    CONSTRAINT passkeys_user_handle_check CHECK (((octet_length(user_handle) >= 1) AND (octet_length(user_handle) <= 64)))
);
ALTER TABLE public.passkeys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.passkeys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.platform_changes (
    changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    sequence bigint NOT NULL,
    type text NOT NULL,
    user_id bigint NOT NULL,
    by_id text,
    fields jsonb,
    scopes text[],
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT platform_changes_type_check CHECK ((type = ANY (ARRAY['profile.updated'::text, 'consent.granted'::text, 'consent.revoked'::text, 'member.signed_in'::text])))
);
ALTER TABLE public.platform_changes ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.platform_changes_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.platform_total_deltas (
    active_users_count integer NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.platform_totals (
    id boolean DEFAULT true NOT NULL,
    active_users_count bigint DEFAULT 0 NOT NULL,
    CONSTRAINT platform_totals_id_check CHECK (id)
)
WITH (fillfactor='10');
CREATE UNLOGGED TABLE public.rate_limit_counts (
    key text NOT NULL,
    window_number bigint NOT NULL,
    used integer NOT NULL,
    granted integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE UNLOGGED TABLE public.rate_limit_instances (
    one boolean DEFAULT true NOT NULL,
    latest uuid NOT NULL,
    latest_until timestamp with time zone NOT NULL,
    others_until timestamp with time zone NOT NULL,
    alone boolean NOT NULL,
    CONSTRAINT rate_limit_instances_one_check CHECK (one)
)
WITH (fillfactor='50');
CREATE TABLE public.record_versions (
    type text NOT NULL,
    user_id bigint NOT NULL,
    id bigint NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT record_versions_version_check CHECK (((version >= 0) AND (version <= '9007199254740991'::bigint)))
)
WITH (fillfactor='80');
CREATE TABLE public.renamed_users (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    settled_before bigint
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
ALTER TABLE public.renamed_users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.renamed_users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.signing_keys (
    kid text NOT NULL,
    status text NOT NULL,
    alg text NOT NULL,
    public_jwk jsonb NOT NULL,
    private_jwk bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    activated_at timestamp with time zone,
    retired_at timestamp with time zone,
    CONSTRAINT signing_keys_alg_check CHECK ((alg = ANY (ARRAY['ES256'::text, 'RS256'::text]))),
    CONSTRAINT signing_keys_private_check CHECK (((private_jwk IS NULL) = (status = 'retired'::text))),
    CONSTRAINT signing_keys_status_check CHECK ((status = ANY (ARRAY['next'::text, 'current'::text, 'previous'::text, 'retired'::text])))
);
CREATE TABLE public.user_achievements (
    user_id bigint NOT NULL,
    achievement_id bigint NOT NULL,
    progress integer DEFAULT 0 NOT NULL,
    earned_at timestamp with time zone,
    pin_position smallint,
    user_is_disabled boolean NOT NULL,
    CONSTRAINT user_achievements_earned_at_range_check CHECK (public.is_showable_time(earned_at, '00:00:00'::interval)),
    CONSTRAINT user_achievements_pin_earned_check CHECK (((pin_position IS NULL) OR (earned_at IS NOT NULL))),
    CONSTRAINT user_achievements_pin_position_check CHECK (((pin_position >= 1) AND (pin_position <= 6))),
    CONSTRAINT user_achievements_progress_check CHECK ((progress >= 0))
);
CREATE TABLE public.user_totals (
    user_id bigint NOT NULL,
    events_count integer DEFAULT 0 NOT NULL,
    connections_count integer DEFAULT 0 NOT NULL,
    achievements_count integer DEFAULT 0 NOT NULL,
    is_delta boolean DEFAULT true NOT NULL
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0', autovacuum_vacuum_insert_threshold='-1');
CREATE TABLE public.users (
    id bigint NOT NULL,
    username text NOT NULL,
    first_name text,
    last_name text,
    stored_display_name text,
    display_name text GENERATED ALWAYS AS (public.shown_name(stored_display_name, first_name, last_name, username)) STORED NOT NULL,
    bio text,
    profile_picture text,
    password_hash text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    version bigint DEFAULT 1 NOT NULL,
    card text GENERATED ALWAYS AS (public.user_card(id, username, public.shown_name(stored_display_name, first_name, last_name, username), profile_picture)) STORED NOT NULL,
    sign_ins_valid_since timestamp with time zone,
    is_disabled boolean NOT NULL,
    folded_username text NOT NULL COLLATE pg_catalog."C",
    folded_name text NOT NULL COLLATE pg_catalog."C",
    edited_fields text[] DEFAULT '{}'::text[] NOT NULL,
    erased_at timestamp with time zone,
    external_id text,
    password_off_at timestamp with time zone,
    email text,
    CONSTRAINT users_bio_check CHECK ((char_length(bio) <= 500)),
    CONSTRAINT users_created_at_range_check CHECK (public.is_showable_time(created_at, '00:00:00'::interval)),
    CONSTRAINT users_disabled_at_range_check CHECK (public.is_showable_time(disabled_at, '00:00:00'::interval)),
    CONSTRAINT users_edited_fields_check CHECK ((edited_fields <@ ARRAY['first_name'::text, 'last_name'::text, 'bio'::text, 'profile_picture'::text])),
    CONSTRAINT users_email_check CHECK (((char_length(email) >= 3) AND (char_length(email) <= 254))),
    CONSTRAINT users_erased_check CHECK (((erased_at IS NULL) OR ((disabled_at IS NOT NULL) AND (username = ('erased-'::text || id)) AND (num_nonnulls(password_hash, first_name, last_name, stored_display_name, bio, profile_picture) = 0)))),
    CONSTRAINT users_erased_email_check CHECK (((erased_at IS NULL) OR (email IS NULL))),
    CONSTRAINT users_erased_external_id_check CHECK (((erased_at IS NULL) OR (external_id IS NULL))),
    CONSTRAINT users_external_id_check CHECK (((char_length(external_id) >= 1) AND (char_length(external_id) <= 255))),
    CONSTRAINT users_first_name_check CHECK ((char_length(first_name) <= 100)),
    CONSTRAINT users_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint))),
    CONSTRAINT users_last_name_check CHECK ((char_length(last_name) <= 100)),
    CONSTRAINT users_password_hash_check CHECK ((char_length(password_hash) <= 500)),
    CONSTRAINT users_profile_picture_check CHECK ((char_length(profile_picture) <= 2048)),
    CONSTRAINT users_stored_display_name_check CHECK ((char_length(stored_display_name) <= 200)),
    CONSTRAINT users_username_check CHECK (((char_length(username) >= 1) AND (char_length(username) <= 100)))
);
ALTER TABLE public.users ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.webhook_deliveries (
    sequence bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    endpoint_id text NOT NULL,
    type text NOT NULL,
    user_id bigint NOT NULL,
    thing_id bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    leased_until timestamp with time zone,
    attempted_at timestamp with time zone,
    response_status integer,
    error text,
    ended_at timestamp with time zone,
    CONSTRAINT webhook_deliveries_ended_check CHECK (((status = 'pending'::text) = (ended_at IS NULL))),
    CONSTRAINT webhook_deliveries_error_check CHECK ((char_length(error) <= 200)),
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text, 'withheld'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000');
ALTER TABLE public.webhook_deliveries ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhook_deliveries_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.webhook_endpoints (
    id text NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    client_id text,
    key_id text,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_secret_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    failing_since timestamp with time zone,
    disabled_at timestamp with time zone,
    disabled_because text,
    CONSTRAINT webhook_endpoints_credential_check CHECK ((num_nonnulls(client_id, key_id) <= 1)),
    CONSTRAINT webhook_endpoints_disabled_because_check CHECK ((disabled_because = ANY (ARRAY['admin'::text, 'failing'::text]))),
    CONSTRAINT webhook_endpoints_disabled_check CHECK (((disabled_at IS NULL) = (disabled_because IS NULL))),
    CONSTRAINT webhook_endpoints_previous_secret_check CHECK (((previous_secret IS NULL) = (previous_secret_until IS NULL))),
    CONSTRAINT webhook_endpoints_types_check CHECK ((cardinality(types) > 0)),
    CONSTRAINT webhook_endpoints_url_check CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2000)))
);
ALTER TABLE ONLY public.connections ALTER COLUMN id SET DEFAULT nextval('public.connections_id_seq'::regclass);
ALTER TABLE ONLY public.migrations ALTER COLUMN id SET DEFAULT nextval('public.migrations_id_seq'::regclass);
ALTER TABLE ONLY public.oauth_refusals ALTER COLUMN place SET DEFAULT nextval('public.oauth_refusals_place'::regclass);
INSERT INTO public.achievement_total_deltas VALUES (1, 3);
INSERT INTO public.achievement_total_deltas VALUES (3, 2);
INSERT INTO public.achievement_total_deltas VALUES (2, 2);
INSERT INTO public.achievements VALUES (1, NULL, 'Achievement 1', NULL, NULL, 'events', 0, false, NULL, NULL, 0, NULL, 0, DEFAULT);
INSERT INTO public.achievements VALUES (2, NULL, 'Achievement 2', NULL, NULL, 'events', 0, false, NULL, NULL, 0, NULL, 0, DEFAULT);
INSERT INTO public.achievements VALUES (3, NULL, 'Achievement 3', NULL, NULL, 'events', 0, false, NULL, NULL, 0, NULL, 0, DEFAULT);
INSERT INTO public.api_keys VALUES ('abcdefghijkl', 1, 'Laptop', 'live', '{profile:read}', '\xabababababababababababababababababababababababababababababababab', '\x01020304', 'wxyz', '{}', '2026-11-28 14:22:28.178042+00', NULL, 'kept', NULL, NULL, NULL, false);
INSERT INTO public.auth_events OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-28 14:22:28.178042+00', 'key.created', 'admin', 1, NULL, NULL, NULL, NULL, '{}');
INSERT INTO public.change_places VALUES ('coalesced', 0, 0);
INSERT INTO public.change_places VALUES ('swept', 0, 0);
INSERT INTO public.change_places VALUES ('told', 0, 0);
INSERT INTO public.change_places VALUES ('platform_swept', 0, 0);
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 1, 2, 'events', 4, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 2, 3, 'events', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 3, 5, 'events', 4, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 4, 6, 'events', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 5, 8, 'events', 4, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 6, 9, 'events', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 7, 1, 'connections', 1, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 8, 6, 'connections', 1, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 9, 2, 'connections', 2, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 10, 3, 'connections', 2, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 11, 2, 'connections', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 12, 8, 'connections', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 13, 3, 'connections', 4, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 14, 7, 'connections', 4, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 15, 4, 'connections', 5, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 16, 9, 'connections', 5, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 17, 7, 'connections', 6, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 18, 8, 'connections', 6, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 19, 1, 'achievements', 1, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 20, 2, 'achievements', 2, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 21, 3, 'achievements', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 22, 5, 'achievements', 1, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 23, 6, 'achievements', 2, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 24, 7, 'achievements', 3, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 25, 9, 'achievements', 1, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (764, 26, 10, 'achievements', 2, 'updated', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.compatible_migrations VALUES ('KnowOwnPasswordHashes1763700040000');
INSERT INTO public.compatible_migrations VALUES ('RecordChanges1763700070000');
INSERT INTO public.compatible_migrations VALUES ('IndexChangesOnce1763700071000');
INSERT INTO public.compatible_migrations VALUES ('KnowExternalIds1763700080000');
INSERT INTO public.compatible_migrations VALUES ('KnowUpstreamSessions1763700081000');
INSERT INTO public.compatible_migrations VALUES ('KnowPasskeys1763700082000');
INSERT INTO public.compatible_migrations VALUES ('ResetPasswords1763700083000');
INSERT INTO public.compatible_migrations VALUES ('CreateWebhooks1763700090000');
INSERT INTO public.compatible_migrations VALUES ('TellPlatform1763700091000');
INSERT INTO public.compatible_migrations VALUES ('MakeCalendarLinks1763700100000');
INSERT INTO public.compatible_migrations VALUES ('FoldAsAnyOwner1763700120000');
INSERT INTO public.compatible_migrations VALUES ('WriteChangesCheaply1763700121000');
INSERT INTO public.compatible_migrations VALUES ('InlineFunctionsOfLists1763700122000');
INSERT INTO public.connections VALUES (1, 1, 6, 'accepted', NULL, 2, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 6 last', 'member6');
INSERT INTO public.connections VALUES (6, 1, 1, 'accepted', NULL, 2, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 1 last', 'member1');
INSERT INTO public.connections VALUES (2, 2, 3, 'accepted', NULL, 3, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 3 last', 'member3');
INSERT INTO public.connections VALUES (3, 2, 2, 'accepted', NULL, 3, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 2 last', 'member2');
INSERT INTO public.connections VALUES (2, 3, 8, 'accepted', NULL, 4, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 8 last', 'member8');
INSERT INTO public.connections VALUES (8, 3, 2, 'accepted', NULL, 4, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 2 last', 'member2');
INSERT INTO public.connections VALUES (3, 4, 7, 'accepted', NULL, 1, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 7 last', 'member7');
INSERT INTO public.connections VALUES (7, 4, 3, 'accepted', NULL, 1, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 3 last', 'member3');
INSERT INTO public.connections VALUES (4, 5, 9, 'accepted', NULL, 2, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 9 last', 'member9');
INSERT INTO public.connections VALUES (9, 5, 4, 'accepted', NULL, 2, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 4 last', 'member4');
INSERT INTO public.connections VALUES (7, 6, 8, 'accepted', NULL, 3, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 8 last', 'member8');
INSERT INTO public.connections VALUES (8, 6, 7, 'accepted', NULL, 3, '2026-11-28 14:22:28.178042+00', '2026-11-10 12:00:00+00', false, 'name 7 last', 'member7');
INSERT INTO public.event_totals VALUES (1, 3, true);
INSERT INTO public.event_totals VALUES (4, 3, true);
INSERT INTO public.event_totals VALUES (2, 4, true);
INSERT INTO public.events VALUES (1, 'Event 1', NULL, NULL, 'draft', 'public', '2026-12-02 18:00:00+00', NULL, 'Europe/Berlin', false, false, NULL, NULL, 'Berlin', 'DE', NULL, NULL, NULL, NULL, 1, NULL, '{}', '2026-11-28 14:22:28.178042+00', '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL, DEFAULT, DEFAULT, true, false, DEFAULT, NULL, 0);
INSERT INTO public.events VALUES (2, 'Event 2', NULL, NULL, 'scheduled', 'public', '2026-12-03 18:00:00+00', NULL, 'Europe/Berlin', false, false, NULL, NULL, 'Berlin', 'DE', NULL, NULL, NULL, NULL, 2, NULL, '{}', '2026-11-28 14:22:28.178042+00', '2026-11-28 14:22:28.178042+00', NULL, NULL, '2026-11-20 12:00:00+00', DEFAULT, DEFAULT, false, true, DEFAULT, NULL, 0);
INSERT INTO public.events VALUES (3, 'Event 3', NULL, NULL, 'scheduled', 'public', '2026-12-04 18:00:00+00', NULL, 'Europe/Berlin', false, false, NULL, NULL, 'Berlin', 'DE', NULL, NULL, NULL, NULL, 3, NULL, '{}', '2026-11-28 14:22:28.178042+00', '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL, DEFAULT, DEFAULT, false, false, DEFAULT, NULL, 0);
INSERT INTO public.events VALUES (4, 'Event 4', NULL, NULL, 'scheduled', 'public', '2026-12-05 18:00:00+00', NULL, 'Europe/Berlin', false, false, NULL, NULL, 'Berlin', 'DE', NULL, NULL, NULL, NULL, 4, NULL, '{}', '2026-11-28 14:22:28.178042+00', '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL, DEFAULT, DEFAULT, false, false, DEFAULT, NULL, 0);
INSERT INTO public.migrations VALUES (1, 1763700000000, 'CreatePlatform1763700000000');
INSERT INTO public.migrations VALUES (2, 1763700001000, 'CreateApiKeys1763700001000');
INSERT INTO public.migrations VALUES (3, 1763700002000, 'CreateOauth1763700002000');
INSERT INTO public.migrations VALUES (4, 1763700003000, 'CreateLoginThrottle1763700003000');
INSERT INTO public.migrations VALUES (5, 1763700004000, 'AnnounceRevocations1763700004000');
INSERT INTO public.migrations VALUES (6, 1763700005000, 'AnnounceOauthRevocations1763700005000');
INSERT INTO public.migrations VALUES (7, 1763700006000, 'CreateRateLimitCounts1763700006000');
INSERT INTO public.migrations VALUES (8, 1763700007000, 'EndCredentials1763700007000');
INSERT INTO public.migrations VALUES (9, 1763700008000, 'TellFailuresFromWhatIsUnderWay1763700008000');
INSERT INTO public.migrations VALUES (10, 1763700009000, 'LeaseRateLimits1763700009000');
INSERT INTO public.migrations VALUES (11, 1763700010000, 'ServeSweeping1763700010000');
INSERT INTO public.migrations VALUES (12, 1763700011000, 'BoundAuditTrail1763700011000');
INSERT INTO public.migrations VALUES (13, 1763700020000, 'CopyWhatDecidesAndAppendTotals1763700020000');
INSERT INTO public.migrations VALUES (14, 1763700021000, 'BoundTimesAndPins1763700021000');
INSERT INTO public.migrations VALUES (15, 1763700030000, 'RememberEditedFields1763700030000');
INSERT INTO public.migrations VALUES (16, 1763700031000, 'MarkChanges1763700031000');
INSERT INTO public.migrations VALUES (17, 1763700032000, 'EraseUsers1763700032000');
INSERT INTO public.migrations VALUES (18, 1763700033000, 'ValidateConstraints1763700033000');
INSERT INTO public.migrations VALUES (19, 1763700040000, 'KnowOwnPasswordHashes1763700040000');
INSERT INTO public.migrations VALUES (20, 1763700050000, 'KnowInstances1763700050000');
INSERT INTO public.migrations VALUES (21, 1763700062000, 'DescribeClients1763700062000');
INSERT INTO public.migrations VALUES (22, 1763700063000, 'KnowClientDocuments1763700063000');
INSERT INTO public.migrations VALUES (23, 1763700070000, 'RecordChanges1763700070000');
INSERT INTO public.migrations VALUES (24, 1763700071000, 'IndexChangesOnce1763700071000');
INSERT INTO public.migrations VALUES (25, 1763700075000, 'KnowPlatformKeys1763700075000');
INSERT INTO public.migrations VALUES (26, 1763700076000, 'KeepRecordVersions1763700076000');
INSERT INTO public.migrations VALUES (27, 1763700077000, 'CountUsage1763700077000');
INSERT INTO public.migrations VALUES (28, 1763700080000, 'KnowExternalIds1763700080000');
INSERT INTO public.migrations VALUES (29, 1763700081000, 'KnowUpstreamSessions1763700081000');
INSERT INTO public.migrations VALUES (30, 1763700082000, 'KnowPasskeys1763700082000');
INSERT INTO public.migrations VALUES (31, 1763700083000, 'ResetPasswords1763700083000');
INSERT INTO public.migrations VALUES (32, 1763700090000, 'CreateWebhooks1763700090000');
INSERT INTO public.migrations VALUES (33, 1763700091000, 'TellPlatform1763700091000');
INSERT INTO public.migrations VALUES (34, 1763700100000, 'MakeCalendarLinks1763700100000');
INSERT INTO public.migrations VALUES (35, 1763700110000, 'KnowDevelopers1763700110000');
INSERT INTO public.migrations VALUES (36, 1763700120000, 'FoldAsAnyOwner1763700120000');
INSERT INTO public.migrations VALUES (37, 1763700121000, 'WriteChangesCheaply1763700121000');
INSERT INTO public.migrations VALUES (38, 1763700122000, 'InlineFunctionsOfLists1763700122000');
INSERT INTO public.oauth_clients VALUES ('app', 'App', 'native', '{app.example:/callback}', '{}', '{}', '{profile:read,events:read}', NULL, '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL, NULL, 'ES256', NULL, NULL, false);
INSERT INTO public.oauth_consents VALUES (1, 'app', '{profile:read}', '{events:read}', '2026-11-28 14:22:28.178042+00', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.oauth_grants VALUES ('grant', 1, 'app', '{"resources": {"https://api.example/": "profile:read events:read"}}', '2026-11-28 14:22:28.178042+00', '9999-01-01 00:00:00+00');
INSERT INTO public.participants VALUES (1, 2, 'attendee', 'going', NULL, NULL, '2026-12-03 18:00:00+00', false, true, DEFAULT, 764);
INSERT INTO public.participants VALUES (2, 1, 'attendee', 'going', NULL, NULL, '2026-12-02 18:00:00+00', true, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (2, 4, 'attendee', 'going', NULL, NULL, '2026-12-05 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (3, 3, 'attendee', 'maybe', NULL, NULL, '2026-12-04 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (4, 2, 'attendee', 'going', NULL, NULL, '2026-12-03 18:00:00+00', false, true, DEFAULT, 764);
INSERT INTO public.participants VALUES (5, 1, 'attendee', 'going', NULL, NULL, '2026-12-02 18:00:00+00', true, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (5, 4, 'attendee', 'going', NULL, NULL, '2026-12-05 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (6, 3, 'attendee', 'maybe', NULL, NULL, '2026-12-04 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (7, 2, 'attendee', 'going', NULL, NULL, '2026-12-03 18:00:00+00', false, true, DEFAULT, 764);
INSERT INTO public.participants VALUES (8, 1, 'attendee', 'going', NULL, NULL, '2026-12-02 18:00:00+00', true, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (8, 4, 'attendee', 'going', NULL, NULL, '2026-12-05 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (9, 3, 'attendee', 'maybe', NULL, NULL, '2026-12-04 18:00:00+00', false, false, DEFAULT, 764);
INSERT INTO public.participants VALUES (10, 2, 'attendee', 'going', NULL, NULL, '2026-12-03 18:00:00+00', false, true, DEFAULT, 764);
INSERT INTO public.platform_changes OVERRIDING SYSTEM VALUE VALUES (764, 1, 'consent.granted', 1, 'app', NULL, '{profile:read}', '2026-11-28 14:22:28.178042+00');
INSERT INTO public.platform_total_deltas VALUES (9);
INSERT INTO public.platform_totals VALUES (true, 0);
INSERT INTO public.user_achievements VALUES (1, 1, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (2, 2, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (3, 3, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (5, 1, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (6, 2, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (7, 3, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (9, 1, 0, '2026-11-11 12:00:00+00', NULL, false);
INSERT INTO public.user_achievements VALUES (10, 2, 0, '2026-11-11 12:00:00+00', NULL, true);
INSERT INTO public.user_totals VALUES (3, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (5, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (2, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (8, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (9, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (6, 1, 0, 0, true);
INSERT INTO public.user_totals VALUES (8, 0, 2, 0, true);
INSERT INTO public.user_totals VALUES (9, 0, 1, 0, true);
INSERT INTO public.user_totals VALUES (7, 0, 2, 0, true);
INSERT INTO public.user_totals VALUES (1, 0, 1, 0, true);
INSERT INTO public.user_totals VALUES (4, 0, 1, 0, true);
INSERT INTO public.user_totals VALUES (2, 0, 2, 0, true);
INSERT INTO public.user_totals VALUES (6, 0, 1, 0, true);
INSERT INTO public.user_totals VALUES (3, 0, 2, 0, true);
INSERT INTO public.user_totals VALUES (10, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (9, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (7, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (1, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (5, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (2, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (6, 0, 0, 1, true);
INSERT INTO public.user_totals VALUES (3, 0, 0, 1, true);
INSERT INTO public.users VALUES (1, 'Member1', 'Name 1', 'Last', NULL, DEFAULT, NULL, NULL, '$argon2id$v=19$m=12288,t=3,p=1$c2FsdHNhbHQ$aGFzaGhhc2g', '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member1', 'name 1 last', '{}', NULL, 'ext-1', NULL, 'member1@example.test');
INSERT INTO public.users VALUES (2, 'Member2', 'Name 2', 'Last', NULL, DEFAULT, NULL, NULL, '$2b$12$abcdefghijklmnopqrstuv', '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member2', 'name 2 last', '{}', NULL, 'ext-2', NULL, 'member2@example.test');
INSERT INTO public.users VALUES (3, 'Member3', 'Name 3', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member3', 'name 3 last', '{}', NULL, 'ext-3', NULL, 'member3@example.test');
INSERT INTO public.users VALUES (4, 'Member4', 'Name 4', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member4', 'name 4 last', '{}', NULL, 'ext-4', NULL, 'member4@example.test');
INSERT INTO public.users VALUES (5, 'Member5', 'Name 5', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member5', 'name 5 last', '{}', NULL, 'ext-5', NULL, 'member5@example.test');
INSERT INTO public.users VALUES (6, 'Member6', 'Name 6', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member6', 'name 6 last', '{}', NULL, 'ext-6', NULL, 'member6@example.test');
INSERT INTO public.users VALUES (7, 'Member7', 'Name 7', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member7', 'name 7 last', '{}', NULL, 'ext-7', NULL, 'member7@example.test');
INSERT INTO public.users VALUES (8, 'Member8', 'Name 8', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member8', 'name 8 last', '{}', NULL, 'ext-8', NULL, 'member8@example.test');
INSERT INTO public.users VALUES (9, 'Member9', 'Name 9', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, 1, DEFAULT, NULL, false, 'member9', 'name 9 last', '{}', NULL, 'ext-9', NULL, 'member9@example.test');
INSERT INTO public.users VALUES (10, 'Member10', 'Name 10', 'Last', NULL, DEFAULT, NULL, NULL, NULL, '2026-11-28 14:22:28.178042+00', '2026-11-01 12:00:00+00', 1, DEFAULT, NULL, true, 'member10', 'name 10 last', '{}', NULL, 'ext-10', NULL, 'member10@example.test');
INSERT INTO public.webhook_deliveries OVERRIDING SYSTEM VALUE VALUES (1, '619c1b20-6279-40f5-b7fa-10e2d1cb352a', 'endpoint', 'profile.updated', 1, 1, '2026-11-12 00:00:00+00', 'pending', 0, '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.webhook_endpoints VALUES ('endpoint', 'https://receiver.example/', '{profile.updated}', 'app', NULL, '\x01', NULL, NULL, '2026-11-28 14:22:28.178042+00', NULL, NULL, NULL);
SELECT pg_catalog.setval('public.achievements_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.calendar_links_id_seq', 1, false);
SELECT pg_catalog.setval('public.changes_sequence_seq', 26, true);
SELECT pg_catalog.setval('public.connections_id_seq', 1, false);
SELECT pg_catalog.setval('public.developer_requests_id_seq', 1, false);
SELECT pg_catalog.setval('public.events_id_seq', 1, false);
SELECT pg_catalog.setval('public.migrations_id_seq', 38, true);
SELECT pg_catalog.setval('public.oauth_refusals_place', 0, false);
SELECT pg_catalog.setval('public.passkeys_id_seq', 1, false);
SELECT pg_catalog.setval('public.platform_changes_sequence_seq', 1, true);
SELECT pg_catalog.setval('public.renamed_users_id_seq', 1, false);
SELECT pg_catalog.setval('public.users_id_seq', 1, false);
SELECT pg_catalog.setval('public.webhook_deliveries_sequence_seq', 1, true);
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT "PK_8c82d7f526340ab734260ea46be" PRIMARY KEY (id);
ALTER TABLE ONLY public.achievements
    ADD CONSTRAINT achievements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_events
    ADD CONSTRAINT auth_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.calendar_links
    ADD CONSTRAINT calendar_links_key_key UNIQUE (key);
ALTER TABLE ONLY public.calendar_links
    ADD CONSTRAINT calendar_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.calendar_links
    ADD CONSTRAINT calendar_links_slot_key UNIQUE (user_id, slot);
ALTER TABLE ONLY public.change_marks
    ADD CONSTRAINT change_marks_pkey PRIMARY KEY (taken_at);
ALTER TABLE ONLY public.change_places
    ADD CONSTRAINT change_places_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (changed_in, sequence);
ALTER TABLE ONLY public.compatible_migrations
    ADD CONSTRAINT compatible_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.connections
    ADD CONSTRAINT connections_pair_key UNIQUE (user_id, peer_id);
ALTER TABLE ONLY public.connections
    ADD CONSTRAINT connections_pkey PRIMARY KEY (user_id, id);
ALTER TABLE ONLY public.developer_requests
    ADD CONSTRAINT developer_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_copied_key UNIQUE (starts_at, is_draft, is_deleted, id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotent_responses
    ADD CONSTRAINT idempotent_responses_pkey PRIMARY KEY (key_id, idempotency_key);
ALTER TABLE ONLY public.login_throttle
    ADD CONSTRAINT login_throttle_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.member_usage
    ADD CONSTRAINT member_usage_pkey PRIMARY KEY (user_id, day, app_kind, app_id, scope);
ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_consents
    ADD CONSTRAINT oauth_consents_pkey PRIMARY KEY (user_id, client_id);
ALTER TABLE ONLY public.oauth_grant_usage
    ADD CONSTRAINT oauth_grant_usage_pkey PRIMARY KEY (grant_id);
ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_refusals
    ADD CONSTRAINT oauth_refusals_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.oauth_sessions
    ADD CONSTRAINT oauth_sessions_key_key UNIQUE (key);
ALTER TABLE ONLY public.oauth_sessions
    ADD CONSTRAINT oauth_sessions_pkey PRIMARY KEY (uid_key);
ALTER TABLE ONLY public.oauth_sessions
    ADD CONSTRAINT oauth_sessions_public_id_key UNIQUE (public_id);
ALTER TABLE ONLY public.oauth_state
    ADD CONSTRAINT oauth_state_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_pkey PRIMARY KEY (user_id, event_id);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_credential_id_key UNIQUE (credential_id);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.platform_changes
    ADD CONSTRAINT platform_changes_pkey PRIMARY KEY (changed_in, sequence);
ALTER TABLE ONLY public.platform_totals
    ADD CONSTRAINT platform_totals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rate_limit_counts
    ADD CONSTRAINT rate_limit_counts_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.rate_limit_instances
    ADD CONSTRAINT rate_limit_instances_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.record_versions
    ADD CONSTRAINT record_versions_pkey PRIMARY KEY (type, user_id, id);
ALTER TABLE ONLY public.renamed_users
    ADD CONSTRAINT renamed_users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE ONLY public.user_achievements
    ADD CONSTRAINT user_achievements_pkey PRIMARY KEY (user_id, achievement_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_external_id_key UNIQUE (external_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_is_disabled_key UNIQUE (is_disabled, id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_id_key UNIQUE (id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX achievements_key_key ON public.achievements USING btree (key);
CREATE INDEX api_keys_created_at_idx ON public.api_keys USING btree (created_at);
CREATE INDEX api_keys_user_id_idx ON public.api_keys USING btree (user_id, created_at);
CREATE INDEX auth_events_client_id_idx ON public.auth_events USING btree (client_id, occurred_at DESC) WHERE (client_id IS NOT NULL);
CREATE INDEX auth_events_error_id_idx ON public.auth_events USING btree (error_id) WHERE (error_id IS NOT NULL);
CREATE INDEX auth_events_key_id_idx ON public.auth_events USING btree (key_id, occurred_at DESC) WHERE (key_id IS NOT NULL);
CREATE INDEX auth_events_occurred_at_idx ON public.auth_events USING btree (occurred_at DESC, id DESC);
CREATE INDEX auth_events_user_id_idx ON public.auth_events USING btree (user_id, occurred_at DESC);
CREATE INDEX changes_changed_at_idx ON public.changes USING btree (changed_at);
CREATE INDEX changes_of_idx ON public.changes USING btree (user_id, resource, id, changed_in, sequence);
CREATE INDEX connections_id_idx ON public.connections USING btree (id);
CREATE INDEX connections_met_at_event_idx ON public.connections USING btree (met_at_event_id) WHERE (met_at_event_id IS NOT NULL);
CREATE INDEX connections_name_idx ON public.connections USING btree (user_id, status, peer_name, id) INCLUDE (peer_username) WHERE (NOT peer_is_disabled);
CREATE INDEX connections_peer_idx ON public.connections USING btree (peer_id);
CREATE INDEX connections_recent_idx ON public.connections USING btree (user_id, status, connected_at DESC, id) WHERE (NOT peer_is_disabled);
CREATE INDEX developer_requests_client_id_idx ON public.developer_requests USING btree (client_id, occurred_at DESC, id DESC) WHERE (client_id IS NOT NULL);
CREATE INDEX developer_requests_key_id_idx ON public.developer_requests USING btree (key_id, occurred_at DESC, id DESC) WHERE (key_id IS NOT NULL);
CREATE INDEX event_totals_delta_idx ON public.event_totals USING btree (event_id) WHERE is_delta;
CREATE INDEX event_totals_event_idx ON public.event_totals USING btree (event_id) INCLUDE (attendees_count);
CREATE INDEX events_organizer_id_idx ON public.events USING btree (organizer_id);
CREATE INDEX idempotent_responses_created_at_idx ON public.idempotent_responses USING btree (created_at);
CREATE INDEX login_throttle_window_ends_at_idx ON public.login_throttle USING btree (window_ends_at);
CREATE INDEX member_usage_day_idx ON public.member_usage USING btree (day);
CREATE INDEX oauth_clients_owner_id_idx ON public.oauth_clients USING btree (owner_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX oauth_consents_client_id_idx ON public.oauth_consents USING btree (client_id);
CREATE INDEX oauth_grants_client_id_idx ON public.oauth_grants USING btree (client_id);
CREATE INDEX oauth_grants_expires_at_idx ON public.oauth_grants USING btree (expires_at);
CREATE INDEX oauth_grants_user_id_idx ON public.oauth_grants USING btree (user_id, client_id);
CREATE INDEX oauth_refusals_error_id_idx ON public.oauth_refusals USING btree (error_id);
CREATE INDEX oauth_refusals_occurred_at_idx ON public.oauth_refusals USING btree (occurred_at);
CREATE INDEX oauth_sessions_expires_at_idx ON public.oauth_sessions USING btree (expires_at);
CREATE INDEX oauth_sessions_upstream_session_key_idx ON public.oauth_sessions USING btree (upstream_session_key) WHERE (upstream_session_key IS NOT NULL);
CREATE INDEX oauth_sessions_upstream_subject_key_idx ON public.oauth_sessions USING btree (upstream_subject_key) WHERE (upstream_subject_key IS NOT NULL);
CREATE INDEX oauth_sessions_user_id_idx ON public.oauth_sessions USING btree (user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX oauth_state_expires_at_idx ON public.oauth_state USING btree (expires_at);
CREATE INDEX oauth_state_user_id_idx ON public.oauth_state USING btree (user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX oauth_tokens_code_expires_at_idx ON public.oauth_tokens USING btree (expires_at) WHERE (model = 'AuthorizationCode'::text);
CREATE INDEX oauth_tokens_grant_id_idx ON public.oauth_tokens USING btree (grant_id);
CREATE INDEX oauth_tokens_other_expires_at_idx ON public.oauth_tokens USING btree (expires_at) WHERE (model <> 'AuthorizationCode'::text);
CREATE INDEX oauth_tokens_successor_idx ON public.oauth_tokens USING btree (consumed_at) WHERE (successor IS NOT NULL);
CREATE INDEX participants_calendar_idx ON public.participants USING btree (user_id, starts_at DESC, event_id) WHERE is_visible;
CREATE INDEX participants_event_idx ON public.participants USING btree (event_id, role);
CREATE INDEX passkeys_user_id_idx ON public.passkeys USING btree (user_id, id);
CREATE INDEX platform_changes_changed_at_idx ON public.platform_changes USING btree (changed_at);
CREATE INDEX platform_changes_user_id_idx ON public.platform_changes USING btree (user_id);
CREATE UNIQUE INDEX signing_keys_status_key ON public.signing_keys USING btree (alg, status) WHERE (status <> 'retired'::text);
CREATE INDEX user_achievements_achievement_idx ON public.user_achievements USING btree (achievement_id) WHERE (earned_at IS NOT NULL);
CREATE UNIQUE INDEX user_achievements_pin_key ON public.user_achievements USING btree (user_id, pin_position) WHERE (pin_position IS NOT NULL);
CREATE INDEX user_totals_delta_idx ON public.user_totals USING btree (user_id) WHERE is_delta;
CREATE INDEX user_totals_user_idx ON public.user_totals USING btree (user_id);
CREATE INDEX users_imported_hash_kind_idx ON public.users USING btree (public.imported_hash_kind(password_hash)) WHERE (public.imported_hash_kind(password_hash) IS NOT NULL);
CREATE UNIQUE INDEX users_username_key ON public.users USING btree (folded_username);
CREATE INDEX webhook_deliveries_due_idx ON public.webhook_deliveries USING btree (endpoint_id, due_at, sequence) WHERE (status = 'pending'::text);
CREATE INDEX webhook_deliveries_ended_at_idx ON public.webhook_deliveries USING btree (ended_at) WHERE (status <> 'pending'::text);
CREATE INDEX webhook_deliveries_endpoint_idx ON public.webhook_deliveries USING btree (endpoint_id, sequence);
CREATE INDEX webhook_deliveries_leased_idx ON public.webhook_deliveries USING btree (endpoint_id) WHERE (leased_until IS NOT NULL);
CREATE INDEX webhook_deliveries_order_idx ON public.webhook_deliveries USING btree (endpoint_id, user_id, sequence) WHERE (status = 'pending'::text);
CREATE INDEX webhook_deliveries_user_idx ON public.webhook_deliveries USING btree (user_id) WHERE (user_id <> 0);
CREATE INDEX webhook_endpoints_client_id_idx ON public.webhook_endpoints USING btree (client_id) WHERE (client_id IS NOT NULL);
CREATE INDEX webhook_endpoints_key_id_idx ON public.webhook_endpoints USING btree (key_id) WHERE (key_id IS NOT NULL);
CREATE TRIGGER achievement_total_deltas_refuse_truncate BEFORE TRUNCATE ON public.achievement_total_deltas FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.achievement_total_deltas ENABLE ALWAYS TRIGGER achievement_total_deltas_refuse_truncate;
CREATE TRIGGER achievements_keep_count_on_replication BEFORE INSERT OR UPDATE ON public.achievements FOR EACH ROW EXECUTE FUNCTION public.achievements_keep_count_on_replication();
ALTER TABLE public.achievements ENABLE REPLICA TRIGGER achievements_keep_count_on_replication;
CREATE TRIGGER achievements_record_change AFTER UPDATE ON public.achievements FOR EACH ROW WHEN (((((((old.revealed IS DISTINCT FROM new.revealed) OR (old.category IS DISTINCT FROM new.category)) OR (old.points IS DISTINCT FROM new.points)) OR (old.is_hidden IS DISTINCT FROM new.is_hidden)) OR (old.criteria IS DISTINCT FROM new.criteria)) OR (old.target IS DISTINCT FROM new.target))) EXECUTE FUNCTION public.record_achievement_change();
ALTER TABLE public.achievements ENABLE ALWAYS TRIGGER achievements_record_change;
CREATE TRIGGER achievements_refuse_new_id BEFORE UPDATE ON public.achievements FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION public.refuse_new_id();
ALTER TABLE public.achievements ENABLE ALWAYS TRIGGER achievements_refuse_new_id;
CREATE TRIGGER achievements_refuse_truncate BEFORE TRUNCATE ON public.achievements FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.achievements ENABLE ALWAYS TRIGGER achievements_refuse_truncate;
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.api_keys FOR EACH STATEMENT EXECUTE FUNCTION public.announce_truncate();
ALTER TABLE public.api_keys ENABLE ALWAYS TRIGGER announce_truncate;
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.oauth_clients FOR EACH STATEMENT EXECUTE FUNCTION public.announce_truncate();
ALTER TABLE public.oauth_clients ENABLE ALWAYS TRIGGER announce_truncate;
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.oauth_grants FOR EACH STATEMENT EXECUTE FUNCTION public.announce_truncate();
ALTER TABLE public.oauth_grants ENABLE ALWAYS TRIGGER announce_truncate;
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.oauth_tokens FOR EACH STATEMENT EXECUTE FUNCTION public.announce_truncate();
ALTER TABLE public.oauth_tokens ENABLE ALWAYS TRIGGER announce_truncate;
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.users FOR EACH STATEMENT EXECUTE FUNCTION public.announce_truncate();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER announce_truncate;
CREATE TRIGGER api_keys_announce_delete AFTER DELETE ON public.api_keys REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.api_keys_announce();
ALTER TABLE public.api_keys ENABLE ALWAYS TRIGGER api_keys_announce_delete;
CREATE TRIGGER api_keys_announce_update AFTER UPDATE ON public.api_keys REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.api_keys_announce();
ALTER TABLE public.api_keys ENABLE ALWAYS TRIGGER api_keys_announce_update;
CREATE TRIGGER auth_events_are_never_changed BEFORE UPDATE ON public.auth_events FOR EACH ROW EXECUTE FUNCTION public.auth_events_refuse_change();
ALTER TABLE public.auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_changed;
CREATE TRIGGER auth_events_are_never_emptied BEFORE TRUNCATE ON public.auth_events FOR EACH STATEMENT EXECUTE FUNCTION public.auth_events_refuse();
ALTER TABLE public.auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_emptied;
CREATE TRIGGER auth_events_stay_a_week BEFORE DELETE ON public.auth_events FOR EACH ROW WHEN ((old.occurred_at > (now() - '7 days'::interval))) EXECUTE FUNCTION public.auth_events_refuse();
ALTER TABLE public.auth_events ENABLE ALWAYS TRIGGER auth_events_stay_a_week;
CREATE TRIGGER auth_events_tell_platform AFTER INSERT ON public.auth_events FOR EACH ROW WHEN (((new.type = 'sign_in.succeeded'::text) AND (new.user_id IS NOT NULL))) EXECUTE FUNCTION public.tell_platform_of_sign_in();
CREATE TRIGGER connections_copy_other_peer BEFORE UPDATE ON public.connections FOR EACH ROW WHEN ((new.peer_id <> old.peer_id)) EXECUTE FUNCTION public.connections_copy_peer();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_copy_other_peer;
CREATE TRIGGER connections_copy_peer BEFORE INSERT ON public.connections FOR EACH ROW WHEN (((new.peer_is_disabled IS NULL) OR (new.peer_name IS NULL) OR (new.peer_username IS NULL))) EXECUTE FUNCTION public.connections_copy_peer();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_copy_peer;
CREATE TRIGGER connections_count_new AFTER INSERT ON public.connections REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_new_connections();
CREATE TRIGGER connections_count_on_replication AFTER INSERT ON public.connections FOR EACH ROW WHEN (((new.status = 'accepted'::text) AND (NOT new.peer_is_disabled))) EXECUTE FUNCTION public.count_connections();
ALTER TABLE public.connections ENABLE REPLICA TRIGGER connections_count_on_replication;
CREATE TRIGGER connections_delete_count AFTER DELETE ON public.connections FOR EACH ROW WHEN (((old.status = 'accepted'::text) AND (NOT old.peer_is_disabled))) EXECUTE FUNCTION public.count_connections();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_delete_count;
CREATE TRIGGER connections_record_change AFTER UPDATE OF user_id, id, peer_id, status, source, met_at_event_id, requested_at, connected_at ON public.connections FOR EACH ROW EXECUTE FUNCTION public.record_connection_change();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_record_change;
CREATE TRIGGER connections_record_new AFTER INSERT ON public.connections REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.record_new_connections();
CREATE TRIGGER connections_record_on_replication AFTER INSERT ON public.connections FOR EACH ROW EXECUTE FUNCTION public.record_connection_change();
ALTER TABLE public.connections ENABLE REPLICA TRIGGER connections_record_on_replication;
CREATE TRIGGER connections_record_removal AFTER DELETE ON public.connections FOR EACH ROW EXECUTE FUNCTION public.record_connection_change();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_record_removal;
CREATE TRIGGER connections_refuse_truncate BEFORE TRUNCATE ON public.connections FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_refuse_truncate;
CREATE TRIGGER connections_update_count AFTER UPDATE ON public.connections FOR EACH ROW WHEN (((((old.status = 'accepted'::text) AND (NOT old.peer_is_disabled)) <> ((new.status = 'accepted'::text) AND (NOT new.peer_is_disabled))) OR (old.user_id <> new.user_id))) EXECUTE FUNCTION public.count_connections();
ALTER TABLE public.connections ENABLE ALWAYS TRIGGER connections_update_count;
CREATE TRIGGER end_calendar_links AFTER UPDATE ON public.users FOR EACH ROW WHEN ((old.sign_ins_valid_since IS DISTINCT FROM new.sign_ins_valid_since)) EXECUTE FUNCTION public.end_calendar_links();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER end_calendar_links;
CREATE TRIGGER end_sign_ins AFTER UPDATE ON public.users FOR EACH ROW WHEN ((old.sign_ins_valid_since IS DISTINCT FROM new.sign_ins_valid_since)) EXECUTE FUNCTION public.end_sign_ins();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER end_sign_ins;
CREATE TRIGGER event_totals_refuse_truncate BEFORE TRUNCATE ON public.event_totals FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.event_totals ENABLE ALWAYS TRIGGER event_totals_refuse_truncate;
CREATE TRIGGER events_copy_on_replication AFTER INSERT OR UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION public.events_copy_on_replication();
ALTER TABLE public.events ENABLE REPLICA TRIGGER events_copy_on_replication;
CREATE TRIGGER events_derive BEFORE INSERT OR UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION public.events_derive();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_derive;
CREATE TRIGGER events_mark_change BEFORE UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION public.mark_event_change();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_mark_change;
CREATE TRIGGER events_mark_on_replication BEFORE INSERT ON public.events FOR EACH ROW EXECUTE FUNCTION public.mark_change();
ALTER TABLE public.events ENABLE REPLICA TRIGGER events_mark_on_replication;
CREATE TRIGGER events_record_change AFTER UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION public.record_event_change();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_record_change;
CREATE TRIGGER events_refuse_endless BEFORE INSERT OR UPDATE ON public.events FOR EACH ROW WHEN ((NOT (isfinite(new.starts_at) AND isfinite(new.created_at) AND isfinite(new.updated_at)))) EXECUTE FUNCTION public.events_refuse_endless();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_refuse_endless;
CREATE TRIGGER events_refuse_new_id BEFORE UPDATE ON public.events FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION public.refuse_new_id();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_refuse_new_id;
CREATE TRIGGER events_refuse_truncate BEFORE TRUNCATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.events ENABLE ALWAYS TRIGGER events_refuse_truncate;
CREATE TRIGGER oauth_clients_announce_deleted AFTER DELETE ON public.oauth_clients FOR EACH ROW EXECUTE FUNCTION public.oauth_clients_announce_deleted();
ALTER TABLE public.oauth_clients ENABLE ALWAYS TRIGGER oauth_clients_announce_deleted;
CREATE TRIGGER oauth_clients_announce_disabled AFTER UPDATE OF disabled_at ON public.oauth_clients FOR EACH ROW WHEN ((old.disabled_at IS DISTINCT FROM new.disabled_at)) EXECUTE FUNCTION public.oauth_clients_announce_disabled();
ALTER TABLE public.oauth_clients ENABLE ALWAYS TRIGGER oauth_clients_announce_disabled;
CREATE TRIGGER oauth_clients_end_with_owner AFTER UPDATE OF disabled_at ON public.users FOR EACH ROW WHEN (((old.disabled_at IS NULL) AND (new.disabled_at IS NOT NULL))) EXECUTE FUNCTION public.oauth_clients_end_with_owner();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER oauth_clients_end_with_owner;
CREATE TRIGGER oauth_consents_tell_platform AFTER INSERT OR DELETE OR UPDATE OF granted ON public.oauth_consents FOR EACH ROW EXECUTE FUNCTION public.tell_platform_of_consent();
CREATE TRIGGER oauth_grants_announce AFTER DELETE ON public.oauth_grants REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.oauth_grants_announce();
ALTER TABLE public.oauth_grants ENABLE ALWAYS TRIGGER oauth_grants_announce;
CREATE TRIGGER participants_attendee_on_replication AFTER INSERT ON public.participants FOR EACH ROW WHEN ((new.rsvp_status = 'going'::text)) EXECUTE FUNCTION public.count_attendees();
ALTER TABLE public.participants ENABLE REPLICA TRIGGER participants_attendee_on_replication;
CREATE TRIGGER participants_copy_event BEFORE INSERT ON public.participants FOR EACH ROW WHEN (((new.starts_at IS NULL) OR (new.event_is_draft IS NULL) OR (new.event_is_deleted IS NULL))) EXECUTE FUNCTION public.participants_copy_event();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_copy_event;
CREATE TRIGGER participants_copy_other_event BEFORE UPDATE ON public.participants FOR EACH ROW WHEN ((new.event_id <> old.event_id)) EXECUTE FUNCTION public.participants_copy_event();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_copy_other_event;
CREATE TRIGGER participants_count_new AFTER INSERT ON public.participants REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_new_participants();
CREATE TRIGGER participants_count_on_replication AFTER INSERT ON public.participants FOR EACH ROW WHEN (new.is_visible) EXECUTE FUNCTION public.count_events();
ALTER TABLE public.participants ENABLE REPLICA TRIGGER participants_count_on_replication;
CREATE TRIGGER participants_delete_attendee AFTER DELETE ON public.participants FOR EACH ROW WHEN ((old.rsvp_status = 'going'::text)) EXECUTE FUNCTION public.count_attendees();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_delete_attendee;
CREATE TRIGGER participants_delete_count AFTER DELETE ON public.participants FOR EACH ROW WHEN (old.is_visible) EXECUTE FUNCTION public.count_events();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_delete_count;
CREATE TRIGGER participants_mark_change BEFORE UPDATE ON public.participants FOR EACH ROW EXECUTE FUNCTION public.mark_change();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_mark_change;
CREATE TRIGGER participants_mark_on_replication BEFORE INSERT ON public.participants FOR EACH ROW EXECUTE FUNCTION public.mark_change();
ALTER TABLE public.participants ENABLE REPLICA TRIGGER participants_mark_on_replication;
CREATE TRIGGER participants_record_change AFTER UPDATE OF user_id, event_id, role, rsvp_status, responded_at, checked_in_at ON public.participants FOR EACH ROW EXECUTE FUNCTION public.record_participant_change();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_record_change;
CREATE TRIGGER participants_record_new AFTER INSERT ON public.participants REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.record_new_participants();
CREATE TRIGGER participants_record_on_replication AFTER INSERT ON public.participants FOR EACH ROW EXECUTE FUNCTION public.record_participant_change();
ALTER TABLE public.participants ENABLE REPLICA TRIGGER participants_record_on_replication;
CREATE TRIGGER participants_record_removal AFTER DELETE ON public.participants FOR EACH ROW EXECUTE FUNCTION public.record_participant_change();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_record_removal;
CREATE TRIGGER participants_refuse_truncate BEFORE TRUNCATE ON public.participants FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_refuse_truncate;
CREATE TRIGGER participants_update_attendee AFTER UPDATE ON public.participants FOR EACH ROW WHEN ((((old.rsvp_status = 'going'::text) IS DISTINCT FROM (new.rsvp_status = 'going'::text)) OR (old.event_id <> new.event_id))) EXECUTE FUNCTION public.count_attendees();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_update_attendee;
CREATE TRIGGER participants_update_count AFTER UPDATE ON public.participants FOR EACH ROW WHEN (((old.is_visible <> new.is_visible) OR (old.user_id <> new.user_id))) EXECUTE FUNCTION public.count_events();
ALTER TABLE public.participants ENABLE ALWAYS TRIGGER participants_update_count;
CREATE TRIGGER platform_total_deltas_refuse_truncate BEFORE TRUNCATE ON public.platform_total_deltas FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.platform_total_deltas ENABLE ALWAYS TRIGGER platform_total_deltas_refuse_truncate;
CREATE TRIGGER platform_totals_refuse_truncate BEFORE TRUNCATE ON public.platform_totals FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.platform_totals ENABLE ALWAYS TRIGGER platform_totals_refuse_truncate;
CREATE TRIGGER user_achievements_copy_other_user BEFORE UPDATE ON public.user_achievements FOR EACH ROW WHEN ((new.user_id <> old.user_id)) EXECUTE FUNCTION public.user_achievements_copy_user();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_copy_other_user;
CREATE TRIGGER user_achievements_copy_user BEFORE INSERT ON public.user_achievements FOR EACH ROW WHEN ((new.user_is_disabled IS NULL)) EXECUTE FUNCTION public.user_achievements_copy_user();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_copy_user;
CREATE TRIGGER user_achievements_count_new AFTER INSERT ON public.user_achievements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_new_achievements();
CREATE TRIGGER user_achievements_count_on_replication AFTER INSERT ON public.user_achievements FOR EACH ROW WHEN ((new.earned_at IS NOT NULL)) EXECUTE FUNCTION public.count_achievements();
ALTER TABLE public.user_achievements ENABLE REPLICA TRIGGER user_achievements_count_on_replication;
CREATE TRIGGER user_achievements_delete_count AFTER DELETE ON public.user_achievements FOR EACH ROW WHEN ((old.earned_at IS NOT NULL)) EXECUTE FUNCTION public.count_achievements();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_delete_count;
CREATE TRIGGER user_achievements_record_change AFTER UPDATE OF user_id, achievement_id, progress, earned_at, pin_position ON public.user_achievements FOR EACH ROW EXECUTE FUNCTION public.record_earning_change();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_record_change;
CREATE TRIGGER user_achievements_record_new AFTER INSERT ON public.user_achievements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.record_new_earnings();
CREATE TRIGGER user_achievements_record_on_replication AFTER INSERT ON public.user_achievements FOR EACH ROW WHEN ((new.earned_at IS NOT NULL)) EXECUTE FUNCTION public.record_earning_change();
ALTER TABLE public.user_achievements ENABLE REPLICA TRIGGER user_achievements_record_on_replication;
CREATE TRIGGER user_achievements_record_removal AFTER DELETE ON public.user_achievements FOR EACH ROW WHEN ((old.earned_at IS NOT NULL)) EXECUTE FUNCTION public.record_earning_change();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_record_removal;
CREATE TRIGGER user_achievements_refuse_truncate BEFORE TRUNCATE ON public.user_achievements FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_refuse_truncate;
CREATE TRIGGER user_achievements_update_count AFTER UPDATE ON public.user_achievements FOR EACH ROW WHEN ((((((old.earned_at IS NULL) IS DISTINCT FROM (new.earned_at IS NULL)) OR (old.user_is_disabled IS DISTINCT FROM new.user_is_disabled)) OR (old.user_id IS DISTINCT FROM new.user_id)) OR (old.achievement_id IS DISTINCT FROM new.achievement_id))) EXECUTE FUNCTION public.count_achievements();
ALTER TABLE public.user_achievements ENABLE ALWAYS TRIGGER user_achievements_update_count;
CREATE TRIGGER user_totals_refuse_truncate BEFORE TRUNCATE ON public.user_totals FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.user_totals ENABLE ALWAYS TRIGGER user_totals_refuse_truncate;
CREATE TRIGGER users_announce_disabled AFTER UPDATE OF disabled_at ON public.users FOR EACH ROW WHEN ((old.disabled_at IS DISTINCT FROM new.disabled_at)) EXECUTE FUNCTION public.users_announce_disabled();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_announce_disabled;
CREATE TRIGGER users_bump_version BEFORE UPDATE ON public.users FOR EACH ROW WHEN ((((((((old.username IS DISTINCT FROM new.username) OR (old.first_name IS DISTINCT FROM new.first_name)) OR (old.last_name IS DISTINCT FROM new.last_name)) OR (old.stored_display_name IS DISTINCT FROM new.stored_display_name)) OR (old.bio IS DISTINCT FROM new.bio)) OR (old.profile_picture IS DISTINCT FROM new.profile_picture)) OR (old.created_at IS DISTINCT FROM new.created_at))) EXECUTE FUNCTION public.users_bump_version();
CREATE TRIGGER users_copy_on_replication AFTER INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION public.users_copy_on_replication();
ALTER TABLE public.users ENABLE REPLICA TRIGGER users_copy_on_replication;
CREATE TRIGGER users_count_new AFTER INSERT ON public.users REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_new_users();
CREATE TRIGGER users_count_on_replication AFTER INSERT ON public.users FOR EACH ROW EXECUTE FUNCTION public.count_active_users();
ALTER TABLE public.users ENABLE REPLICA TRIGGER users_count_on_replication;
CREATE TRIGGER users_delete_count AFTER DELETE ON public.users FOR EACH ROW EXECUTE FUNCTION public.count_active_users();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_delete_count;
CREATE TRIGGER users_derive BEFORE INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION public.users_derive();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_derive;
CREATE TRIGGER users_move_sign_ins_valid_since BEFORE UPDATE OF disabled_at, sign_ins_valid_since ON public.users FOR EACH ROW EXECUTE FUNCTION public.users_move_sign_ins_valid_since();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_move_sign_ins_valid_since;
CREATE TRIGGER users_queue_names AFTER UPDATE ON public.users FOR EACH ROW WHEN (((old.folded_name <> new.folded_name) OR (old.folded_username <> new.folded_username))) EXECUTE FUNCTION public.users_queue_names();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_queue_names;
CREATE TRIGGER users_record_change AFTER UPDATE OF username, first_name, last_name, stored_display_name, bio, profile_picture, created_at, disabled_at ON public.users FOR EACH ROW EXECUTE FUNCTION public.record_user_change();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_record_change;
CREATE TRIGGER users_refuse_new_id BEFORE UPDATE ON public.users FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION public.refuse_new_id();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_refuse_new_id;
CREATE TRIGGER users_refuse_truncate BEFORE TRUNCATE ON public.users FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_truncate();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_refuse_truncate;
CREATE TRIGGER users_update_count AFTER UPDATE ON public.users FOR EACH ROW WHEN ((old.is_disabled <> new.is_disabled)) EXECUTE FUNCTION public.count_active_users();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER users_update_count;
ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES public.api_keys(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.calendar_links
    ADD CONSTRAINT calendar_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.connections
    ADD CONSTRAINT connections_met_at_event_id_fkey FOREIGN KEY (met_at_event_id) REFERENCES public.events(id);
ALTER TABLE ONLY public.connections
    ADD CONSTRAINT connections_peer_fkey FOREIGN KEY (peer_id, peer_is_disabled) REFERENCES public.users(id, is_disabled) ON UPDATE CASCADE;
ALTER TABLE ONLY public.connections
    ADD CONSTRAINT connections_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.developer_requests
    ADD CONSTRAINT developer_requests_client_id_fkey FOREIGN KEY (client_id) REFERENCES public.oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.developer_requests
    ADD CONSTRAINT developer_requests_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.idempotent_responses
    ADD CONSTRAINT idempotent_responses_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.member_usage
    ADD CONSTRAINT member_usage_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.oauth_consents
    ADD CONSTRAINT oauth_consents_client_id_fkey FOREIGN KEY (client_id) REFERENCES public.oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_consents
    ADD CONSTRAINT oauth_consents_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_grant_usage
    ADD CONSTRAINT oauth_grant_usage_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES public.oauth_grants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_client_id_fkey FOREIGN KEY (client_id) REFERENCES public.oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_sessions
    ADD CONSTRAINT oauth_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_state
    ADD CONSTRAINT oauth_state_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES public.oauth_grants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_event_fkey FOREIGN KEY (event_id, starts_at, event_is_draft, event_is_deleted) REFERENCES public.events(id, starts_at, is_draft, is_deleted) ON UPDATE CASCADE;
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT participants_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.user_achievements
    ADD CONSTRAINT user_achievements_achievement_id_fkey FOREIGN KEY (achievement_id) REFERENCES public.achievements(id);
ALTER TABLE ONLY public.user_achievements
    ADD CONSTRAINT user_achievements_user_fkey FOREIGN KEY (user_id, user_is_disabled) REFERENCES public.users(id, is_disabled) ON UPDATE CASCADE;
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.webhook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_client_id_fkey FOREIGN KEY (client_id) REFERENCES public.oauth_clients(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON DELETE CASCADE;
RESET check_function_bodies;
