-- function fold_case(text)
CREATE OR REPLACE FUNCTION public.fold_case(value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN lower((value COLLATE "und-x-icu"));

-- function stored_api_time(timestamp with time zone)
CREATE OR REPLACE FUNCTION public.stored_api_time(value timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
BEGIN
  RETURN to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS');
END $function$;

-- function stored_json_text(text)
CREATE OR REPLACE FUNCTION public.stored_json_text(value text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
BEGIN
  RETURN COALESCE(to_json(value)::text, 'null');
END $function$;

-- function shown_name(text,text,text,text)
CREATE OR REPLACE FUNCTION public.shown_name(stored text, first_name text, last_name text, username text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE(NULLIF(btrim(stored), ''::text), NULLIF(btrim(((COALESCE(first_name, ''::text) || ' '::text) || COALESCE(last_name, ''::text))), ''::text), username);

-- function user_card(bigint,text,text,text)
CREATE OR REPLACE FUNCTION public.user_card(id bigint, username text, display_name text, profile_picture text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
BEGIN
  RETURN '{"id":' || id || ',"username":' || public.stored_json_text(username)
    || ',"display_name":' || public.stored_json_text(display_name)
    || ',"profile_picture":' || public.stored_json_text(profile_picture) || '}';
END $function$;

-- function event_location(text,text,text,text,double precision,double precision)
CREATE OR REPLACE FUNCTION public.event_location(name text, city text, country_code text, address text, latitude double precision, longitude double precision)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (num_nonnulls(name, city, country_code, address, latitude, longitude) = 0) THEN 'null'::text ELSE (((((('{"name":'::text || stored_json_text(name)) || ',"city":'::text) || stored_json_text(city)) || ',"country_code":'::text) || stored_json_text(country_code)) || '}'::text) END;

-- function event_visible(text,boolean,boolean)
CREATE OR REPLACE FUNCTION public.event_visible(role text, is_draft boolean, is_deleted boolean)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((NOT is_deleted) AND ((NOT is_draft) OR (role = ANY (ARRAY['organizer'::text, 'co_organizer'::text]))));

-- function is_showable_time(timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION public.is_showable_time(value timestamp with time zone, margin interval)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
BEGIN
  RETURN value >= timestamptz '0001-01-01 00:00:00Z' + margin AND value < timestamptz '9999-12-31 24:00:00Z' - margin;
END $function$;

-- function imported_hash_kind(text)
CREATE OR REPLACE FUNCTION public.imported_hash_kind(password_hash text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT CASE WHEN password_hash NOT LIKE '$argon2id$v=19$m=12288,t=3,p=1$%'
    THEN substring(password_hash FROM '^([$]2[aby][$][0-9]{2}|[$]argon2(?:id|i|d)[$]v=[0-9]{2}[$]m=[0-9]{1,7},t=[0-9]{1,3},p=[0-9]{1,3})[$]') END
$function$;

-- function narrow_grants()
CREATE OR REPLACE FUNCTION public.narrow_grants()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$;

-- function users_derive()
CREATE OR REPLACE FUNCTION public.users_derive()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function access_ended_by()
CREATE OR REPLACE FUNCTION public.access_ended_by()
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN CASE current_setting('public_user_api.ended_by'::text, true) WHEN 'user'::text THEN 'member'::text WHEN 'client'::text THEN 'app'::text ELSE 'platform'::text END;

-- function end_of_access(timestamp with time zone,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION public.end_of_access(token_end timestamp with time zone, grant_end timestamp with time zone, chosen_end timestamp with time zone, OUT ended_at timestamp with time zone, OUT reason text)
 RETURNS record
 LANGUAGE sql
 STABLE
 SET search_path TO 'public', 'pg_temp'
AS $function$
  SELECT LEAST(token_end, grant_end, chosen_end, now()), CASE
    WHEN LEAST(token_end, grant_end, chosen_end) > now() THEN access_ended_by()
    WHEN chosen_end <= LEAST(token_end, grant_end, chosen_end) THEN 'expired' ELSE 'unused' END
$function$;

-- function keep_end_of_access()
CREATE OR REPLACE FUNCTION public.keep_end_of_access()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO ended_refresh_tokens (key, client_id, ended_at, reason)
    SELECT t.key, OLD.client_id, e.ended_at, e.reason
    FROM oauth_tokens t CROSS JOIN LATERAL end_of_access(t.expires_at, OLD.expires_at, OLD.access_ends_at) e
    WHERE t.grant_id = OLD.id AND t.model = 'RefreshToken' AND (t.consumed_at IS NULL OR t.successor IS NOT NULL)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $function$;

-- function keep_end_of_unused_access()
CREATE OR REPLACE FUNCTION public.keep_end_of_unused_access()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO ended_refresh_tokens (key, client_id, ended_at, reason)
    SELECT OLD.key, g.client_id, e.ended_at, e.reason
    FROM oauth_grants g CROSS JOIN LATERAL end_of_access(OLD.expires_at, g.expires_at, g.access_ends_at) e
    WHERE g.id = OLD.grant_id
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $function$;

-- function granted_scopes(jsonb)
CREATE OR REPLACE FUNCTION public.granted_scopes(payload jsonb)
 RETURNS text[]
 LANGUAGE sql
 STABLE
RETURN ARRAY(SELECT DISTINCT scope.scope FROM jsonb_each_text((granted_scopes.payload -> 'resources'::text)) resource(key, value), LATERAL unnest(string_to_array(resource.value, ' '::text)) scope(scope) ORDER BY scope.scope);

-- function access_of(bigint,text,text)
CREATE OR REPLACE FUNCTION public.access_of(of_member bigint, of_client text, other_than text, OUT is_live boolean, OUT scopes text[], OUT ends_at timestamp with time zone)
 RETURNS record
 LANGUAGE sql
 STABLE
 SET search_path TO 'public', 'pg_temp'
AS $function$
  WITH live AS (
    SELECT granted_scopes(g.payload) AS scopes, g.access_ends_at FROM oauth_grants g
    WHERE g.user_id = of_member AND g.client_id = of_client AND g.id IS DISTINCT FROM other_than
      AND LEAST(g.expires_at, g.access_ends_at) > now()
      AND EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.model <> 'AuthorizationCode' AND t.expires_at > now())
  ) SELECT EXISTS (SELECT FROM live), ARRAY(SELECT DISTINCT scope FROM live, unnest(live.scopes) scope ORDER BY scope),
    (SELECT CASE WHEN bool_and(access_ends_at IS NOT NULL) THEN max(access_ends_at) END FROM live)
$function$;

-- function gave_access(text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION public.gave_access(of_grant text, created_at timestamp with time zone, access_ends_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'public', 'pg_temp'
AS $function$
  SELECT (access_ends_at > created_at) IS NOT FALSE AND NOT EXISTS (
    SELECT FROM oauth_tokens t WHERE t.grant_id = of_grant AND t.model = 'AuthorizationCode' AND t.consumed_at IS NULL)
$function$;

-- function is_told_of_access(text)
CREATE OR REPLACE FUNCTION public.is_told_of_access(of_client text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN EXISTS (SELECT FROM public.webhook_endpoints e WHERE e.client_id = of_client AND e.disabled_at IS NULL
    AND e.types && '{access.changed,access.ended}');
END $function$;

-- function note_ended_access()
CREATE OR REPLACE FUNCTION public.note_ended_access()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  IF is_told_of_access(OLD.client_id) AND gave_access(OLD.id, OLD.created_at, OLD.access_ends_at) THEN
    INSERT INTO access_changes (user_id, client_id, reason, ended_at, scopes, access_ends_at)
      SELECT OLD.user_id, OLD.client_id, e.reason, e.ended_at, granted_scopes(OLD.payload), OLD.access_ends_at
      FROM end_of_access('infinity', OLD.expires_at, OLD.access_ends_at) e;
  END IF;
  RETURN NULL;
END $function$;

-- function note_changed_access()
CREATE OR REPLACE FUNCTION public.note_changed_access()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  -- Also before the code is redeemed: the code exchange may have read the old grant and reported it to the app.
  IF (NEW.access_ends_at > NEW.created_at) IS NOT FALSE AND is_told_of_access(NEW.client_id) THEN
    INSERT INTO access_changes (user_id, client_id) VALUES (NEW.user_id, NEW.client_id);
  END IF;
  RETURN NULL;
END $function$;

-- function note_new_access()
CREATE OR REPLACE FUNCTION public.note_new_access()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  of_client text;
BEGIN
  -- Most code exchanges end after these two cheap queries.
  of_client := (SELECT client_id FROM public.oauth_grants WHERE id = NEW.grant_id);
  IF public.is_told_of_access(of_client) THEN
    INSERT INTO public.access_changes (user_id, client_id)
      SELECT g.user_id, of_client FROM public.oauth_grants g CROSS JOIN public.access_of(g.user_id, of_client, g.id) before
      WHERE g.id = NEW.grant_id AND before.is_live AND (NOT public.granted_scopes(g.payload) <@ before.scopes
        OR COALESCE(g.access_ends_at, 'infinity') > COALESCE(before.ends_at, 'infinity'));
  END IF;
  RETURN NULL;
END $function$;

-- function tell_endpoints(text,text,bigint,text,text[],timestamp with time zone,text)
CREATE OR REPLACE FUNCTION public.tell_endpoints(of_client text, of_key text, of_member bigint, of_type text, of_scopes text[], of_end timestamp with time zone, of_reason text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  made integer;
BEGIN
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, details)
    SELECT e.id, of_type, of_member, 0, now(), jsonb_build_object('scopes', of_scopes, 'access_ends_at', api_time(of_end), 'reason', of_reason)
    FROM webhook_endpoints e
    WHERE (e.client_id = of_client OR e.key_id = of_key) AND e.disabled_at IS NULL AND of_type = ANY (e.types) ORDER BY e.id;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $function$;

-- function tell_apps_of_access(integer)
CREATE OR REPLACE FUNCTION public.tell_apps_of_access(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  noted record;
  has record;
  seen integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013047) THEN RETURN 0; END IF;
  FOR noted IN
    WITH next AS (
      SELECT DISTINCT user_id, client_id FROM (SELECT user_id, client_id FROM access_changes ORDER BY id LIMIT most) first
    ), taken AS (
      DELETE FROM access_changes c USING next n WHERE c.user_id = n.user_id AND c.client_id = n.client_id RETURNING c.*
    ), last AS (
      SELECT DISTINCT ON (user_id, client_id) * FROM taken ORDER BY user_id, client_id, ended_at DESC NULLS LAST, id DESC
    ) SELECT last.*, all_of.is_changed, all_of.latest,
        ARRAY(SELECT DISTINCT scope FROM taken t, unnest(t.scopes) scope
          WHERE t.user_id = last.user_id AND t.client_id = last.client_id ORDER BY scope) AS lost
      FROM last JOIN (
        SELECT user_id, client_id, bool_or(reason IS NULL) AS is_changed,
          max(COALESCE(access_ends_at, 'infinity')) FILTER (WHERE reason IS NOT NULL) AS latest FROM taken GROUP BY user_id, client_id
      ) all_of USING (user_id, client_id)
      ORDER BY last.id
  LOOP
    seen := seen + 1;
    SELECT * INTO has FROM access_of(noted.user_id, noted.client_id, NULL);
    IF has.is_live THEN
      IF noted.is_changed OR NOT noted.lost <@ has.scopes OR noted.latest > COALESCE(has.ends_at, 'infinity') THEN
        PERFORM tell_endpoints(noted.client_id, NULL, noted.user_id, 'access.changed', has.scopes, has.ends_at, NULL);
      END IF;
    ELSIF noted.reason IS NOT NULL AND NOT EXISTS (SELECT FROM oauth_grants g WHERE g.user_id = noted.user_id
      AND g.client_id = noted.client_id AND gave_access(g.id, g.created_at, g.access_ends_at)) THEN
      PERFORM tell_endpoints(noted.client_id, NULL, noted.user_id, 'access.ended', noted.lost, noted.ended_at, noted.reason);
    END IF;
  END LOOP;
  RETURN seen;
END $function$;

-- function ends_in_use(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION public.ends_in_use(of_grant text, since timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  RETURN EXISTS (SELECT FROM oauth_grants g WHERE g.id = of_grant
    AND g.expires_at > now() AND g.access_ends_at > g.created_at + interval '1 hour' -- not one-time access
    AND EXISTS (SELECT FROM oauth_grants o JOIN oauth_grant_usage s ON s.grant_id = o.id
      WHERE o.user_id = g.user_id AND o.client_id = g.client_id AND s.last_used_at > since)
    AND NOT EXISTS (SELECT FROM oauth_grants o WHERE o.user_id = g.user_id AND o.client_id = g.client_id AND o.expires_at > now()
      AND (o.access_ends_at IS NULL OR (o.access_ends_at, o.id) > (g.access_ends_at, g.id)))
    AND EXISTS (SELECT FROM oauth_clients c WHERE c.id = g.client_id AND c.disabled_at IS NULL)
    AND EXISTS (SELECT FROM users u WHERE u.id = g.user_id AND u.disabled_at IS NULL));
END $function$;

-- function tell_of_ending_access(integer,jsonb)
CREATE OR REPLACE FUNCTION public.tell_of_ending_access(most integer, after jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
 SET enable_sort TO 'off'
AS $function$
DECLARE
  made integer;
  last jsonb;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013048) THEN RETURN NULL; END IF;
  WITH next AS MATERIALIZED (
    SELECT g.id, g.user_id, g.client_id, g.access_ends_at FROM (
      SELECT DISTINCT e.client_id, CASE e.client_id WHEN after->>'client' THEN after END AS after FROM webhook_endpoints e
      WHERE e.client_id >= COALESCE(after->>'client', '') AND e.disabled_at IS NULL AND 'access.ending' = ANY (e.types)
    ) c CROSS JOIN LATERAL (
      SELECT * FROM oauth_grants g
      WHERE g.client_id = c.client_id AND g.ending_told_at IS NULL AND g.access_ends_at > now() AND g.access_ends_at <= now() + interval '7 days'
        AND (g.access_ends_at, g.id) > (COALESCE((c.after->>'ends_at')::timestamptz, '-infinity'), COALESCE(c.after->>'id', ''))
      ORDER BY g.access_ends_at, g.id LIMIT most
    ) g ORDER BY g.client_id, g.access_ends_at, g.id LIMIT most
  ), ending AS (
    SELECT g.id FROM oauth_grants g WHERE g.id = ANY (ARRAY(
      SELECT n.id FROM next n WHERE NOT EXISTS (SELECT FROM oauth_grants o WHERE o.user_id = n.user_id AND o.client_id = n.client_id
        AND o.ending_told_at > now() - interval '7 days') AND ends_in_use(n.id, now() - interval '30 days')))
      AND g.ending_told_at IS NULL AND g.access_ends_at <= now() + interval '7 days'
    FOR NO KEY UPDATE SKIP LOCKED
  ), told AS (
    UPDATE oauth_grants SET ending_told_at = now() WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING user_id, client_id
  ) SELECT sum(tell_endpoints(client_id, NULL, user_id, 'access.ending', a.scopes, a.ends_at, NULL)),
      (SELECT jsonb_build_object('client', client_id, 'id', id, 'ends_at', access_ends_at) FROM next
        ORDER BY client_id, access_ends_at, id OFFSET most - 1)
    INTO made, last FROM told CROSS JOIN LATERAL access_of(user_id, client_id, NULL) a WHERE a.is_live;
  RETURN last;
END $function$;

-- function tell_of_ending_keys(integer)
CREATE OR REPLACE FUNCTION public.tell_of_ending_keys(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  seen integer;
  made integer;
BEGIN
  WITH due AS (
    SELECT k.id, (LEAST(k.revoked_at, k.expires_at) <= now()) IS TRUE AS has_ended FROM api_keys k
    WHERE k.id = ANY (ARRAY(SELECT e.key_id FROM webhook_endpoints e
        WHERE e.key_id IS NOT NULL AND e.disabled_at IS NULL AND e.types && '{credential.ending,credential.ended}'))
      AND k.ended_told_at IS NULL AND (k.revoked_at IS NOT NULL OR k.expires_at <= now()
        OR k.expires_at <= now() + interval '7 days' AND k.ending_told_at IS NULL)
    LIMIT most FOR NO KEY UPDATE SKIP LOCKED
  ), told AS (
    UPDATE api_keys k SET ended_told_at = CASE WHEN d.has_ended THEN now() END, ending_told_at = COALESCE(ending_told_at, now())
    FROM due d WHERE k.id = d.id RETURNING k.*, d.has_ended
  ) SELECT count(*), sum(tell_endpoints(NULL, k.id, k.user_id, CASE WHEN has_ended THEN 'credential.ended' ELSE 'credential.ending' END,
      k.scopes, LEAST(k.revoked_at, k.expires_at), CASE
        WHEN NOT has_ended THEN NULL WHEN k.revoked_at IS NULL THEN 'expired'
        WHEN EXISTS (SELECT FROM auth_events a WHERE a.key_id = k.id AND a.type = 'key.revoked' AND a.actor = 'user') THEN 'member'
        ELSE 'platform' END)) INTO seen, made
    FROM told k;
  RETURN seen;
END $function$;

-- function record_achievement_change()
CREATE OR REPLACE FUNCTION public.record_achievement_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO public.changes (resource, id, kind) VALUES ('achievements', NEW.id, 'updated');
  RETURN NULL;
END $function$;

-- function user_achievements_copy_user()
CREATE OR REPLACE FUNCTION public.user_achievements_copy_user()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.user_id = OLD.user_id OR TG_OP = 'INSERT' AND NEW.user_is_disabled IS NOT NULL
    THEN RETURN NEW; END IF;
  SELECT is_disabled INTO NEW.user_is_disabled FROM public.users WHERE id = NEW.user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.user_id),
      TABLE = 'user_achievements', CONSTRAINT = 'user_achievements_user_fkey';
  END IF;
  RETURN NEW;
END $function$;

-- function record_pins(bigint)
CREATE OR REPLACE FUNCTION public.record_pins(of_user bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM public.user_achievements
    WHERE user_id = of_user AND pin_position IS NOT NULL
$function$;

-- function user_achievements_changed()
CREATE OR REPLACE FUNCTION public.user_achievements_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function user_achievements_inserted()
CREATE OR REPLACE FUNCTION public.user_achievements_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO public.user_totals (user_id, achievements_count)
    SELECT user_id, count(*) FROM new_rows WHERE earned_at IS NOT NULL GROUP BY user_id;
  INSERT INTO public.achievement_total_deltas SELECT achievement_id, count(*) FROM new_rows
    WHERE earned_at IS NOT NULL AND NOT user_is_disabled GROUP BY achievement_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM new_rows WHERE earned_at IS NOT NULL;
  PERFORM public.record_pins(user_id) FROM new_rows WHERE pin_position IS NOT NULL GROUP BY user_id;
  RETURN NULL;
END $function$;

-- function auth_events_refuse()
CREATE OR REPLACE FUNCTION public.auth_events_refuse()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$;

-- function users_refuse_return()
CREATE OR REPLACE FUNCTION public.users_refuse_return()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The member %s was erased and stays erased', OLD.id), TABLE = 'users';
END $function$;

-- function is_foreign(pg_snapshot)
CREATE OR REPLACE FUNCTION public.is_foreign(mark pg_snapshot)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (((pg_snapshot_xmax(mark))::text)::bigint > ((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint);

-- function take_change_mark()
CREATE OR REPLACE FUNCTION public.take_change_mark()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  -- Changes with each failover and restore, also with a restore into the same cluster.
  identity bigint := hashtextextended(concat_ws(' ', (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT oid FROM pg_database WHERE datname = current_database()),
    'changes'::regclass::oid), 0);
  known bigint := (SELECT changed_in FROM change_places WHERE name = 'identity');
BEGIN
  IF known IS DISTINCT FROM identity THEN
    INSERT INTO change_places (name, changed_in) VALUES ('identity', identity)
      ON CONFLICT (name) DO UPDATE SET changed_in = EXCLUDED.changed_in;
    -- Changes may have been undone after each client's position and each earlier mark.
    IF known IS NOT NULL THEN
      INSERT INTO change_places (name, changed_in, sequence)
        SELECT name, pg_current_xact_id()::text::bigint, 1 FROM unnest('{swept,platform_swept,restored}'::text[]) name
        ON CONFLICT (name) DO UPDATE SET (changed_in, sequence) = (EXCLUDED.changed_in, EXCLUDED.sequence);
    END IF;
  END IF;
  IF (SELECT is_foreign(snapshot::pg_snapshot) FROM change_marks ORDER BY taken_at DESC LIMIT 1) THEN
    DELETE FROM change_marks WHERE is_foreign(snapshot::pg_snapshot);
  END IF;
  INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text
    WHERE NOT EXISTS (SELECT FROM (SELECT * FROM change_marks ORDER BY taken_at DESC LIMIT 1) last
      WHERE last.taken_at > clock_timestamp() - interval '1 s'
        OR pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= pg_snapshot_xmax(last.snapshot::pg_snapshot)::text::bigint + 1)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    -- After an hour, only marks of a minute's first 5 s remain: at least one per minute is enough.
    DELETE FROM change_marks WHERE taken_at < clock_timestamp() - interval '40 days'
      OR (taken_at BETWEEN clock_timestamp() - interval '65 minutes' AND clock_timestamp() - interval '1 hour'
        AND extract(second FROM taken_at) >= 5);
  END IF;
END $function$;

-- function last_mark_before(timestamp with time zone)
CREATE OR REPLACE FUNCTION public.last_mark_before(moment timestamp with time zone)
 RETURNS pg_snapshot
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO 'public', 'pg_temp'
AS $function$
  SELECT CASE WHEN NOT is_foreign(snapshot::pg_snapshot) THEN snapshot::pg_snapshot END
    FROM change_marks WHERE taken_at <= moment - interval '2 s' ORDER BY taken_at DESC LIMIT 1
$function$;

-- function committed_after(bigint,pg_snapshot)
CREATE OR REPLACE FUNCTION public.committed_after(transaction bigint, mark pg_snapshot)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN ((transaction IS NOT NULL) AND COALESCE((NOT pg_visible_in_snapshot(((CASE WHEN (transaction < ((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint) THEN transaction ELSE (0)::bigint END)::text)::xid8, mark)), true));

-- function was_hidden(text,bigint)
CREATE OR REPLACE FUNCTION public.was_hidden(resource text, id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'public', 'pg_temp'
AS $function$
  SELECT EXISTS (SELECT FROM changes c WHERE c.user_id IS NULL AND c.resource = $1 AND c.id = $2 AND c.kind = 'removed')
$function$;

-- function coalesce_changes(integer)
CREATE OR REPLACE FUNCTION public.coalesce_changes(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  place change_places;
  reached change_places;
  seen integer;
BEGIN
  SELECT * INTO place FROM change_places WHERE name = 'coalesced' FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  -- A number above this server's comes from another server's dump.
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
END $function$;

-- function connections_copy_peer()
CREATE OR REPLACE FUNCTION public.connections_copy_peer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function connections_changed()
CREATE OR REPLACE FUNCTION public.connections_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function connections_inserted()
CREATE OR REPLACE FUNCTION public.connections_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO public.user_totals (user_id, connections_count)
    SELECT user_id, count(*) FROM new_rows WHERE status = 'accepted' AND NOT peer_is_disabled GROUP BY user_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'connections', id, 'updated' FROM new_rows WHERE NOT peer_is_disabled;
  RETURN NULL;
END $function$;

-- function events_derive()
CREATE OR REPLACE FUNCTION public.events_derive()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function record_event_change()
CREATE OR REPLACE FUNCTION public.record_event_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function users_changed()
CREATE OR REPLACE FUNCTION public.users_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function users_inserted()
CREATE OR REPLACE FUNCTION public.users_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO public.platform_total_deltas SELECT count(*) FROM new_rows WHERE NOT is_disabled HAVING count(*) > 0;
  RETURN NULL;
END $function$;

-- function copy_names(integer)
CREATE OR REPLACE FUNCTION public.copy_names(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$;

-- function give_notice(bigint,text,text,text)
CREATE OR REPLACE FUNCTION public.give_notice(of_member bigint, of_notice text, about_id text, about_name text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id, notice, name) VALUES ('notice', of_member, about_id, of_notice, about_name);
  INSERT INTO notice_emails (user_id, notice, name, is_bulk)
    SELECT u.id, of_notice, about_name, of_notice LIKE '%.ending' FROM users u
    WHERE u.id = of_member AND u.email IS NOT NULL AND u.disabled_at IS NULL
      AND NOT EXISTS (SELECT FROM muted_notices m WHERE m.user_id = u.id AND m.notice = of_notice);
END $function$;

-- function give_notice_of_event()
CREATE OR REPLACE FUNCTION public.give_notice_of_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  PERFORM give_notice(NEW.user_id, NEW.type, COALESCE(NEW.details->>'replaced_by', NEW.key_id, NEW.client_id), COALESCE(
    (SELECT name FROM api_keys WHERE id = NEW.key_id),
    (SELECT name FROM oauth_clients WHERE id = NEW.client_id),
    (SELECT name FROM calendar_links WHERE id = (NEW.details->>'link')::bigint),
    (SELECT name FROM passkeys WHERE id = (NEW.details->>'passkey')::bigint)));
  RETURN NULL;
END $function$;

-- function report_ending_keys(integer)
CREATE OR REPLACE FUNCTION public.report_ending_keys(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  reported integer;
BEGIN
  WITH ending AS (
    -- OFFSET 0 keeps these from becoming joins, for which PostgreSQL might read all keys.
    SELECT k.id FROM api_keys k
    WHERE k.ending_notified_at IS NULL AND k.revoked_at IS NULL AND k.replaced_by IS NULL AND k.user_id IS NOT NULL
      AND k.expires_at > now() AND k.expires_at <= now() + interval '7 days'
      AND EXISTS (SELECT FROM api_key_usage s WHERE s.key_id = k.id AND s.last_used_at > now() - interval '7 days' OFFSET 0)
      AND EXISTS (SELECT FROM users u WHERE u.id = k.user_id AND u.disabled_at IS NULL OFFSET 0)
    ORDER BY k.expires_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED
  ), notified AS (
    UPDATE api_keys SET ending_notified_at = now() WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING id, user_id
  ) INSERT INTO auth_events (type, actor, user_id, key_id) SELECT 'key.ending', 'system', user_id, id FROM notified;
  GET DIAGNOSTICS reported = ROW_COUNT;
  RETURN reported;
END $function$;

-- function report_ending_access(integer,jsonb)
CREATE OR REPLACE FUNCTION public.report_ending_access(most integer, after jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
 SET enable_sort TO 'off'
AS $function$
DECLARE
  last jsonb;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013049) THEN RETURN NULL; END IF;
  -- Without sorts, PostgreSQL reads the index in order and only as far as needed, regardless of its statistics.
  WITH next AS MATERIALIZED (
    SELECT g.id, g.user_id, g.client_id, g.access_ends_at FROM oauth_grants g
    WHERE g.ending_notified_at IS NULL AND g.access_ends_at > now() AND g.access_ends_at <= now() + interval '7 days'
      AND (g.access_ends_at, g.id) > (COALESCE((after->>'ends_at')::timestamptz, '-infinity'), COALESCE(after->>'id', ''))
    ORDER BY g.access_ends_at, g.id LIMIT most
  ), ending AS (
    SELECT g.id FROM oauth_grants g WHERE g.id = ANY (ARRAY(
      SELECT n.id FROM next n WHERE NOT EXISTS (SELECT FROM oauth_grants o WHERE o.user_id = n.user_id AND o.client_id = n.client_id
        AND o.ending_notified_at > now() - interval '7 days') AND ends_in_use(n.id, now() - interval '7 days')))
      AND g.ending_notified_at IS NULL AND g.access_ends_at <= now() + interval '7 days'
    FOR NO KEY UPDATE SKIP LOCKED
  ), notified AS (
    UPDATE oauth_grants SET ending_notified_at = now() WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING user_id, client_id
  ), reported AS (
    INSERT INTO auth_events (type, actor, user_id, client_id) SELECT 'access.ending', 'system', user_id, client_id FROM notified
  ) SELECT jsonb_build_object('id', id, 'ends_at', access_ends_at) INTO last FROM next ORDER BY access_ends_at, id OFFSET most - 1;
  RETURN last;
END $function$;

-- function participants_derive()
CREATE OR REPLACE FUNCTION public.participants_derive()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function participants_changed()
CREATE OR REPLACE FUNCTION public.participants_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

-- function participants_inserted()
CREATE OR REPLACE FUNCTION public.participants_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO public.user_totals (user_id, events_count)
    SELECT user_id, count(*) FROM new_rows WHERE is_visible GROUP BY user_id;
  INSERT INTO public.event_totals SELECT event_id, count(*) FROM new_rows WHERE rsvp_status = 'going' GROUP BY event_id;
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'events', event_id, 'updated' FROM new_rows WHERE is_visible
    UNION ALL SELECT NULL, 'events', event_id, 'updated' FROM new_rows WHERE role = 'co_organizer';
  RETURN NULL;
END $function$;

-- function tell_platform_of_consent()
CREATE OR REPLACE FUNCTION public.tell_platform_of_consent()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$;

-- function tell_platform_of_sign_in()
CREATE OR REPLACE FUNCTION public.tell_platform_of_sign_in()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id) VALUES ('member.signed_in', NEW.user_id, NEW.client_id);
  RETURN NULL;
END $function$;

-- function announce_revocations(text,text[])
CREATE OR REPLACE FUNCTION public.announce_revocations(kind text, ids text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  IF cardinality(ids) > 100 THEN
    PERFORM pg_notify('revocations', 'all');
  ELSIF cardinality(ids) > 0 THEN
    PERFORM pg_notify('revocations', kind || ':' || id) FROM unnest(ids) id;
  END IF;
END $function$;

-- function announce_ended()
CREATE OR REPLACE FUNCTION public.announce_ended()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    PERFORM pg_notify('revocations', 'all');
  ELSIF TG_LEVEL = 'ROW' THEN
    PERFORM announce_revocations(TG_ARGV[0], ARRAY[OLD.id]);
  ELSE
    -- Expired rows need no announcement: their credentials are not cached.
    PERFORM announce_revocations(TG_ARGV[0], (SELECT array_agg(id) FROM old_rows WHERE expires_at IS NULL OR expires_at > now()));
  END IF;
  RETURN NULL;
END $function$;

-- function end_sign_ins()
CREATE OR REPLACE FUNCTION public.end_sign_ins()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$;

-- function tell_clients()
CREATE OR REPLACE FUNCTION public.tell_clients()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  INSERT INTO oauth_logouts (client_id, user_id, sid)
    SELECT c.id, OLD.user_id, gone.sid FROM jsonb_each_text(OLD.clients) AS gone (client_id, sid)
    JOIN oauth_clients c ON c.id = gone.client_id AND c.backchannel_logout_uri IS NOT NULL AND c.disabled_at IS NULL
    WHERE TG_OP = 'DELETE' OR NEW.clients->>gone.client_id IS DISTINCT FROM gone.sid
    ORDER BY c.id;
  RETURN NULL;
END $function$;

-- function fold_totals(integer)
CREATE OR REPLACE FUNCTION public.fold_totals(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
AS $function$
DECLARE
  folded integer := 0;
  n integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013003) THEN RETURN 0; END IF;
  -- Custom plans: a plan made for empty tables could search all rows for deltas.

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

  -- Leaves the deltas of locked achievements to a later call instead of waiting, for example for an import.
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
  RETURN folded + n;
END $function$;

-- function refuse_new_id()
CREATE OR REPLACE FUNCTION public.refuse_new_id()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The id of a row of %s never changes: insert a new row', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $function$;

-- function refuse_truncate()
CREATE OR REPLACE FUNCTION public.refuse_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  RAISE feature_not_supported USING
    MESSAGE = format('TRUNCATE of %s would leave totals wrong: use DELETE', TG_TABLE_NAME), TABLE = TG_TABLE_NAME;
END $function$;

-- function api_time(timestamp with time zone)
CREATE OR REPLACE FUNCTION public.api_time(value timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE STRICT
RETURN to_char((value AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD HH24:MI:SS'::text);

-- function local_time(timestamp with time zone,text)
CREATE OR REPLACE FUNCTION public.local_time(value timestamp with time zone, zone text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE STRICT
RETURN to_char((value AT TIME ZONE zone), 'YYYY-MM-DD HH24:MI:SS'::text);

-- function local_time_or_utc(timestamp with time zone,text)
CREATE OR REPLACE FUNCTION public.local_time_or_utc(value timestamp with time zone, zone text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE STRICT
 SET search_path TO 'public', 'pg_temp'
AS $function$
BEGIN
  RETURN local_time(value, zone);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN api_time(value);
END $function$;

-- function json_text(text)
CREATE OR REPLACE FUNCTION public.json_text(value text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE((to_json(value))::text, 'null'::text);

-- function percentage(bigint,bigint)
CREATE OR REPLACE FUNCTION public.percentage(part bigint, whole bigint)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (whole = 0) THEN 0.00 ELSE (0.01 * ((((20000 * part) + whole) / (2 * whole)))::numeric) END;

-- function rarity_tier(bigint,bigint)
CREATE OR REPLACE FUNCTION public.rarity_tier(earners bigint, eligible bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (eligible < 10) THEN 'unrated'::text WHEN ((100 * earners) >= (50 * eligible)) THEN 'common'::text WHEN ((100 * earners) >= (20 * eligible)) THEN 'uncommon'::text WHEN ((100 * earners) >= (5 * eligible)) THEN 'rare'::text WHEN ((100 * earners) >= eligible) THEN 'epic'::text ELSE 'legendary'::text END;

-- function endpoints_due()
CREATE OR REPLACE FUNCTION public.endpoints_due()
 RETURNS TABLE(endpoint_id text, due_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE ROWS 10
 SET search_path TO 'public', 'pg_temp'
 SET enable_sort TO 'off'
AS $function$
BEGIN
  RETURN QUERY SELECT e.id, first.due_at FROM webhook_endpoints e CROSS JOIN LATERAL (
    SELECT d.due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= now()
    ORDER BY d.due_at LIMIT 1
  ) first WHERE e.disabled_at IS NULL;
END $function$;

-- sequence connections_id_seq
CREATE SEQUENCE connections_id_seq AS bigint MINVALUE 1 MAXVALUE 9223372036854775807;

-- sequence oauth_refusals_place
CREATE SEQUENCE oauth_refusals_place AS smallint MINVALUE 0 MAXVALUE 9999 CYCLE;

-- table access_changes
CREATE TABLE access_changes (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  user_id bigint NOT NULL,
  client_id text NOT NULL,
  reason text,
  ended_at timestamp with time zone,
  scopes text[],
  access_ends_at timestamp with time zone
);

-- table achievement_total_deltas
CREATE TABLE achievement_total_deltas (
  achievement_id bigint NOT NULL,
  earners_count integer NOT NULL
);

-- table achievements
CREATE TABLE achievements (
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
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
  revealed text GENERATED ALWAYS AS (((((((('"key":'::text || stored_json_text(key)) || ',"name":'::text) || stored_json_text(name)) || ',"description":'::text) || stored_json_text(description)) || ',"icon_url":'::text) || stored_json_text(icon_url))) STORED NOT NULL
);

-- table api_key_usage
CREATE TABLE api_key_usage (
  key_id text NOT NULL,
  last_used_at timestamp with time zone,
  last_used_ip inet,
  uses_count bigint DEFAULT 0 NOT NULL,
  exposed_at timestamp with time zone,
  exposed_origin text
);

-- table api_keys
CREATE TABLE api_keys (
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
  ending_notified_at timestamp with time zone,
  ending_told_at timestamp with time zone,
  ended_told_at timestamp with time zone
);

-- table app_testers
CREATE TABLE app_testers (
  client_id text NOT NULL,
  username text NOT NULL,
  user_id bigint,
  invited_at timestamp with time zone DEFAULT now() NOT NULL,
  accepted_at timestamp with time zone
);

-- table auth_events
CREATE TABLE auth_events (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  occurred_at timestamp with time zone DEFAULT now() NOT NULL,
  type text NOT NULL,
  actor text NOT NULL,
  user_id bigint,
  client_id text,
  key_id text,
  ip inet,
  error_id text,
  details jsonb DEFAULT '{}'::jsonb NOT NULL
);

-- table calendar_links
CREATE TABLE calendar_links (
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  user_id bigint NOT NULL,
  slot smallint NOT NULL,
  name text NOT NULL,
  key bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone
);

-- table change_marks
CREATE TABLE change_marks (
  taken_at timestamp with time zone NOT NULL,
  snapshot text NOT NULL
);

-- table change_places
CREATE TABLE change_places (
  name text NOT NULL,
  changed_in bigint DEFAULT 0 NOT NULL,
  sequence bigint DEFAULT 0 NOT NULL,
  unfinished jsonb
);

-- table changes
CREATE TABLE changes (
  changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
  sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  user_id bigint,
  resource text NOT NULL,
  id bigint NOT NULL,
  kind text NOT NULL,
  changed_at timestamp with time zone DEFAULT now() NOT NULL
);

-- table compatible_migrations
CREATE TABLE compatible_migrations (
  name text NOT NULL
);

-- table connections
CREATE TABLE connections (
  user_id bigint NOT NULL,
  id bigint DEFAULT nextval('connections_id_seq'::regclass) NOT NULL,
  peer_id bigint NOT NULL,
  status text NOT NULL,
  source text,
  met_at_event_id bigint,
  requested_at timestamp with time zone DEFAULT now() NOT NULL,
  connected_at timestamp with time zone,
  peer_is_disabled boolean NOT NULL,
  peer_name text COLLATE "C" NOT NULL,
  peer_username text COLLATE "C" NOT NULL
);

-- table developer_request_counts
CREATE TABLE developer_request_counts (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  client_id text,
  key_id text,
  hour timestamp with time zone NOT NULL,
  method text NOT NULL,
  route text NOT NULL,
  status smallint NOT NULL,
  error text,
  requests bigint NOT NULL
);

-- table developer_requests
CREATE TABLE developer_requests (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
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
  duration_ms integer
);

-- table ended_refresh_tokens
CREATE TABLE ended_refresh_tokens (
  key bytea NOT NULL,
  client_id text NOT NULL,
  ended_at timestamp with time zone NOT NULL,
  reason text NOT NULL
);

-- table event_totals
CREATE TABLE event_totals (
  event_id bigint NOT NULL,
  attendees_count integer NOT NULL,
  is_delta boolean DEFAULT true NOT NULL
);

-- table events
CREATE TABLE events (
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
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
  card text GENERATED ALWAYS AS ((((((((((((((((((((((((((((('{"id":'::text || id) || ',"title":'::text) || stored_json_text(title)) || ',"summary":'::text) || stored_json_text(summary)) || ',"status":"'::text) || status) || '","visibility":"'::text) || visibility) || '","starts_at":"'::text) || stored_api_time(starts_at)) || '","ends_at":'::text) || stored_json_text(stored_api_time(ends_at))) || ',"timezone":'::text) || stored_json_text(timezone)) || ',"is_all_day":'::text) ||
CASE
    WHEN is_all_day THEN 'true'::text
    ELSE 'false'::text
END) || ',"is_online":'::text) ||
CASE
    WHEN is_online THEN 'true'::text
    ELSE 'false'::text
END) || ',"cover_image":'::text) || stored_json_text(cover_image)) || ',"capacity":'::text) || COALESCE((capacity)::text, 'null'::text)) || ',"created_at":"'::text) || stored_api_time(created_at)) || '","updated_at":"'::text) || stored_api_time(updated_at)) || '"'::text)) STORED NOT NULL,
  location text GENERATED ALWAYS AS (event_location(location_name, location_city, location_country_code, location_address, location_latitude, location_longitude)) STORED NOT NULL,
  is_draft boolean NOT NULL,
  is_deleted boolean NOT NULL,
  folded_title text COLLATE "C" GENERATED ALWAYS AS (fold_case(title)) STORED NOT NULL,
  changed_in bigint,
  revision integer DEFAULT 0 NOT NULL
);

-- table idempotent_responses
CREATE TABLE idempotent_responses (
  key_id text NOT NULL,
  idempotency_key text NOT NULL,
  body_hash bytea NOT NULL,
  response jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL
);

-- table login_throttle
CREATE TABLE login_throttle (
  key bytea NOT NULL,
  attempts integer NOT NULL,
  window_ends_at timestamp with time zone NOT NULL,
  blocks integer DEFAULT 0 NOT NULL,
  under_way timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL
);

-- table member_usage
CREATE TABLE member_usage (
  user_id bigint NOT NULL,
  day date NOT NULL,
  app_kind text NOT NULL,
  app_id text NOT NULL,
  scope text NOT NULL,
  uses bigint NOT NULL,
  last_used_at timestamp with time zone NOT NULL
);

-- table muted_notices
CREATE TABLE muted_notices (
  user_id bigint NOT NULL,
  notice text NOT NULL,
  muted_at timestamp with time zone DEFAULT now() NOT NULL
);

-- table notice_emails
CREATE TABLE notice_emails (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  user_id bigint NOT NULL,
  notice text NOT NULL,
  name text,
  is_bulk boolean NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone DEFAULT now() NOT NULL
);

-- table oauth_client_secrets
CREATE TABLE oauth_client_secrets (
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  client_id text NOT NULL,
  hash bytea NOT NULL,
  pepper_id bytea NOT NULL,
  last_four text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone
);

-- table oauth_clients
CREATE TABLE oauth_clients (
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
  backchannel_logout_uri text,
  profile text DEFAULT 'oauth21'::text NOT NULL,
  pkce text DEFAULT 'required'::text NOT NULL,
  secret_auth_method text,
  jwks_uri text,
  assertion_optional boolean DEFAULT false NOT NULL,
  longest_access text,
  application jsonb,
  applied_at timestamp with time zone,
  approved_at timestamp with time zone,
  rejection text,
  pending_changes jsonb
);

-- table oauth_consents
CREATE TABLE oauth_consents (
  user_id bigint NOT NULL,
  client_id text NOT NULL,
  granted text[] NOT NULL,
  rejected text[] NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  redirect_origins text[],
  seen_as text,
  duration text,
  access_ends_at timestamp with time zone
);

-- table oauth_grant_usage
CREATE TABLE oauth_grant_usage (
  grant_id text NOT NULL,
  last_used_at timestamp with time zone NOT NULL
);

-- table oauth_grants
CREATE TABLE oauth_grants (
  id text NOT NULL,
  user_id bigint NOT NULL,
  client_id text NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  access_ends_at timestamp with time zone DEFAULT (now() + '14 days'::interval),
  ending_notified_at timestamp with time zone,
  ending_told_at timestamp with time zone
);

-- table oauth_logouts
CREATE TABLE oauth_logouts (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  client_id text NOT NULL,
  user_id bigint NOT NULL,
  sid text NOT NULL,
  ended_at timestamp with time zone DEFAULT now() NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone DEFAULT now() NOT NULL
);

-- table oauth_refusals
CREATE TABLE oauth_refusals (
  place smallint DEFAULT nextval('oauth_refusals_place'::regclass) NOT NULL,
  occurred_at timestamp with time zone DEFAULT now() NOT NULL,
  error_id text NOT NULL,
  route text NOT NULL,
  error text NOT NULL,
  reason text NOT NULL,
  client_id text,
  redirect_uri text,
  ip inet
);

-- table oauth_sessions
CREATE TABLE oauth_sessions (
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
  clients jsonb DEFAULT '{}'::jsonb NOT NULL
);

-- table oauth_state
CREATE TABLE oauth_state (
  key bytea NOT NULL,
  model text NOT NULL,
  payload bytea,
  consumed_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  user_id bigint,
  client_id text,
  session_uid_key bytea
);

-- table oauth_tokens
CREATE TABLE oauth_tokens (
  key bytea NOT NULL,
  model text NOT NULL,
  grant_id text NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  consumed_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  successor bytea
);

-- table participants
CREATE TABLE participants (
  user_id bigint NOT NULL,
  event_id bigint NOT NULL,
  role text NOT NULL,
  rsvp_status text,
  responded_at timestamp with time zone,
  checked_in_at timestamp with time zone,
  starts_at timestamp with time zone NOT NULL,
  event_is_draft boolean NOT NULL,
  event_is_deleted boolean NOT NULL,
  is_visible boolean GENERATED ALWAYS AS (event_visible(role, event_is_draft, event_is_deleted)) STORED NOT NULL,
  changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint
);

-- table passkeys
CREATE TABLE passkeys (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
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
  last_used_at timestamp with time zone
);

-- table pending_members
CREATE TABLE pending_members (
  user_id bigint NOT NULL,
  keeps_profile boolean NOT NULL,
  record jsonb NOT NULL
);

-- table platform_changes
CREATE TABLE platform_changes (
  changed_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
  sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  type text NOT NULL,
  user_id bigint NOT NULL,
  by_id text,
  fields jsonb,
  scopes text[],
  changed_at timestamp with time zone DEFAULT now() NOT NULL,
  notice text,
  name text
);

-- table platform_total_deltas
CREATE TABLE platform_total_deltas (
  active_users_count integer NOT NULL
);

-- table platform_totals
CREATE TABLE platform_totals (
  id boolean DEFAULT true NOT NULL,
  active_users_count bigint DEFAULT 0 NOT NULL
);

-- table rate_limit_counts
CREATE TABLE rate_limit_counts (
  key text NOT NULL,
  window_number bigint NOT NULL,
  used integer NOT NULL,
  granted integer DEFAULT 0 NOT NULL
);

-- table rate_limit_instances
CREATE TABLE rate_limit_instances (
  one boolean DEFAULT true NOT NULL,
  latest uuid NOT NULL,
  latest_until timestamp with time zone NOT NULL,
  others_until timestamp with time zone NOT NULL,
  alone boolean NOT NULL
);

-- table record_versions
CREATE TABLE record_versions (
  type text NOT NULL,
  user_id bigint NOT NULL,
  id bigint NOT NULL,
  version bigint NOT NULL
);

-- table renamed_users
CREATE TABLE renamed_users (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  user_id bigint NOT NULL,
  settled_before bigint
);

-- table schema_versions
CREATE TABLE schema_versions (
  digest text NOT NULL,
  objects jsonb NOT NULL,
  applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- table signing_keys
CREATE TABLE signing_keys (
  kid text NOT NULL,
  status text NOT NULL,
  alg text NOT NULL,
  public_jwk jsonb NOT NULL,
  private_jwk bytea,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  activated_at timestamp with time zone,
  retired_at timestamp with time zone
);

-- table user_achievements
CREATE TABLE user_achievements (
  user_id bigint NOT NULL,
  achievement_id bigint NOT NULL,
  progress integer DEFAULT 0 NOT NULL,
  earned_at timestamp with time zone,
  pin_position smallint,
  user_is_disabled boolean NOT NULL
);

-- table user_totals
CREATE TABLE user_totals (
  user_id bigint NOT NULL,
  events_count integer DEFAULT 0 NOT NULL,
  connections_count integer DEFAULT 0 NOT NULL,
  achievements_count integer DEFAULT 0 NOT NULL,
  is_delta boolean DEFAULT true NOT NULL
);

-- table users
CREATE TABLE users (
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  username text NOT NULL,
  first_name text,
  last_name text,
  stored_display_name text,
  display_name text NOT NULL,
  bio text,
  profile_picture text,
  password_hash text,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  disabled_at timestamp with time zone,
  version bigint DEFAULT 1 NOT NULL,
  card text NOT NULL,
  sign_ins_valid_since timestamp with time zone,
  is_disabled boolean NOT NULL,
  folded_username text COLLATE "C" NOT NULL,
  folded_name text COLLATE "C" NOT NULL,
  edited_fields text[] DEFAULT '{}'::text[] NOT NULL,
  erased_at timestamp with time zone,
  external_id text,
  password_off_at timestamp with time zone,
  email text
);

-- table webhook_deliveries
CREATE TABLE webhook_deliveries (
  sequence bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
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
  duration_ms integer,
  details jsonb
);

-- table webhook_endpoints
CREATE TABLE webhook_endpoints (
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
  disabled_because text
);

-- constraint access_changes.access_changes_pkey
ALTER TABLE access_changes ADD CONSTRAINT access_changes_pkey PRIMARY KEY (id);

-- constraint achievements.achievements_category_check
ALTER TABLE achievements ADD CONSTRAINT achievements_category_check CHECK (((char_length(category) >= 1) AND (char_length(category) <= 100)));

-- constraint achievements.achievements_criteria_check
ALTER TABLE achievements ADD CONSTRAINT achievements_criteria_check CHECK ((char_length(criteria) <= 2000));

-- constraint achievements.achievements_description_check
ALTER TABLE achievements ADD CONSTRAINT achievements_description_check CHECK ((char_length(description) <= 2000));

-- constraint achievements.achievements_icon_url_check
ALTER TABLE achievements ADD CONSTRAINT achievements_icon_url_check CHECK ((char_length(icon_url) <= 2048));

-- constraint achievements.achievements_id_check
ALTER TABLE achievements ADD CONSTRAINT achievements_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint)));

-- constraint achievements.achievements_key_check
ALTER TABLE achievements ADD CONSTRAINT achievements_key_check CHECK (((char_length(key) >= 1) AND (char_length(key) <= 100)));

-- constraint achievements.achievements_name_check
ALTER TABLE achievements ADD CONSTRAINT achievements_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200)));

-- constraint achievements.achievements_pkey
ALTER TABLE achievements ADD CONSTRAINT achievements_pkey PRIMARY KEY (id);

-- constraint achievements.achievements_points_check
ALTER TABLE achievements ADD CONSTRAINT achievements_points_check CHECK ((points >= 0));

-- constraint achievements.achievements_retired_at_range_check
ALTER TABLE achievements ADD CONSTRAINT achievements_retired_at_range_check CHECK (is_showable_time(retired_at, '00:00:00'::interval));

-- constraint achievements.achievements_target_check
ALTER TABLE achievements ADD CONSTRAINT achievements_target_check CHECK ((target > 0));

-- constraint api_key_usage.api_key_usage_exposed_origin_check
ALTER TABLE api_key_usage ADD CONSTRAINT api_key_usage_exposed_origin_check CHECK ((char_length(exposed_origin) <= 300));

-- constraint api_key_usage.api_key_usage_pkey
ALTER TABLE api_key_usage ADD CONSTRAINT api_key_usage_pkey PRIMARY KEY (key_id);

-- constraint api_keys.api_keys_environment_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text])));

-- constraint api_keys.api_keys_expiry_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_expiry_check CHECK ((((expires_at IS NULL) = (no_expiry_reason IS NOT NULL)) OR (replaced_by IS NOT NULL)));

-- constraint api_keys.api_keys_hash_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_hash_check CHECK ((octet_length(hash) = 32));

-- constraint api_keys.api_keys_id_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_id_check CHECK ((id ~ '^[0-9A-Za-z]{12}$'::text));

-- constraint api_keys.api_keys_last_four_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_last_four_check CHECK ((char_length(last_four) = 4));

-- constraint api_keys.api_keys_name_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100)));

-- constraint api_keys.api_keys_no_expiry_reason_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_no_expiry_reason_check CHECK (((char_length(no_expiry_reason) >= 1) AND (char_length(no_expiry_reason) <= 500)));

-- constraint api_keys.api_keys_owner_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_check CHECK (
CASE
    WHEN (user_id IS NULL) THEN ((cardinality(scopes) > 0) AND (scopes <@ ARRAY['platform:read'::text, 'platform:write'::text]))
    ELSE (NOT (scopes && ARRAY['platform:read'::text, 'platform:write'::text]))
END);

-- constraint api_keys.api_keys_pepper_id_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pepper_id_check CHECK ((octet_length(pepper_id) = 4));

-- constraint api_keys.api_keys_pkey
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

-- constraint api_keys.api_keys_revocation_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_revocation_check CHECK (((revoked_at IS NULL) = (revocation_reason IS NULL)));

-- constraint api_keys.api_keys_revocation_reason_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_revocation_reason_check CHECK (((char_length(revocation_reason) >= 1) AND (char_length(revocation_reason) <= 500)));

-- constraint api_keys.api_keys_self_issued_check
ALTER TABLE api_keys ADD CONSTRAINT api_keys_self_issued_check CHECK (((NOT self_issued) OR ((user_id IS NOT NULL) AND (expires_at IS NOT NULL))));

-- constraint app_testers.app_testers_pkey
ALTER TABLE app_testers ADD CONSTRAINT app_testers_pkey PRIMARY KEY (client_id, username);

-- constraint auth_events.auth_events_actor_check
ALTER TABLE auth_events ADD CONSTRAINT auth_events_actor_check CHECK ((actor = ANY (ARRAY['user'::text, 'client'::text, 'admin'::text, 'system'::text])));

-- constraint auth_events.auth_events_pkey
ALTER TABLE auth_events ADD CONSTRAINT auth_events_pkey PRIMARY KEY (id);

-- constraint auth_events.auth_events_size_check
ALTER TABLE auth_events ADD CONSTRAINT auth_events_size_check CHECK (((octet_length(type) <= 64) AND (octet_length(client_id) <= 100) AND (octet_length(key_id) <= 100) AND (octet_length(error_id) <= 64) AND (octet_length((details)::text) <= 2000)));

-- constraint auth_events.auth_events_type_check
ALTER TABLE auth_events ADD CONSTRAINT auth_events_type_check CHECK ((type ~ '^[a-z_]+\.[a-z_]+$'::text));

-- constraint calendar_links.calendar_links_key_check
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_key_check CHECK ((octet_length(key) = 32));

-- constraint calendar_links.calendar_links_key_key
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_key_key UNIQUE (key);

-- constraint calendar_links.calendar_links_name_check
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60)));

-- constraint calendar_links.calendar_links_pkey
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_pkey PRIMARY KEY (id);

-- constraint calendar_links.calendar_links_slot_check
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_slot_check CHECK (((slot >= 1) AND (slot <= 10)));

-- constraint calendar_links.calendar_links_slot_key
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_slot_key UNIQUE (user_id, slot);

-- constraint change_marks.change_marks_pkey
ALTER TABLE change_marks ADD CONSTRAINT change_marks_pkey PRIMARY KEY (taken_at);

-- constraint change_marks.change_marks_snapshot_check
ALTER TABLE change_marks ADD CONSTRAINT change_marks_snapshot_check CHECK (((snapshot)::pg_snapshot IS NOT NULL));

-- constraint change_places.change_places_name_check
ALTER TABLE change_places ADD CONSTRAINT change_places_name_check CHECK ((name = ANY (ARRAY['coalesced'::text, 'swept'::text, 'told'::text, 'platform_swept'::text, 'restored'::text, 'identity'::text])));

-- constraint change_places.change_places_pkey
ALTER TABLE change_places ADD CONSTRAINT change_places_pkey PRIMARY KEY (name);

-- constraint changes.changes_pkey
ALTER TABLE changes ADD CONSTRAINT changes_pkey PRIMARY KEY (changed_in, sequence);

-- constraint compatible_migrations.compatible_migrations_pkey
ALTER TABLE compatible_migrations ADD CONSTRAINT compatible_migrations_pkey PRIMARY KEY (name);

-- constraint connections.connections_connected_at_check
ALTER TABLE connections ADD CONSTRAINT connections_connected_at_check CHECK (((status = 'accepted'::text) = (connected_at IS NOT NULL)));

-- constraint connections.connections_connected_at_range_check
ALTER TABLE connections ADD CONSTRAINT connections_connected_at_range_check CHECK (is_showable_time(connected_at, '00:00:00'::interval));

-- constraint connections.connections_id_check
ALTER TABLE connections ADD CONSTRAINT connections_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint)));

-- constraint connections.connections_pair_key
ALTER TABLE connections ADD CONSTRAINT connections_pair_key UNIQUE (peer_id, user_id);

-- constraint connections.connections_peer_check
ALTER TABLE connections ADD CONSTRAINT connections_peer_check CHECK ((peer_id <> user_id));

-- constraint connections.connections_pkey
ALTER TABLE connections ADD CONSTRAINT connections_pkey PRIMARY KEY (user_id, id);

-- constraint connections.connections_requested_at_range_check
ALTER TABLE connections ADD CONSTRAINT connections_requested_at_range_check CHECK (is_showable_time(requested_at, '00:00:00'::interval));

-- constraint connections.connections_source_check
ALTER TABLE connections ADD CONSTRAINT connections_source_check CHECK ((source = ANY (ARRAY['event'::text, 'search'::text, 'invite'::text, 'import'::text])));

-- constraint connections.connections_status_check
ALTER TABLE connections ADD CONSTRAINT connections_status_check CHECK ((status = ANY (ARRAY['accepted'::text, 'pending_sent'::text, 'pending_received'::text])));

-- constraint developer_request_counts.developer_request_counts_app_check
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_app_check CHECK ((num_nonnulls(client_id, key_id) = 1));

-- constraint developer_request_counts.developer_request_counts_error_check
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_error_check CHECK ((octet_length(error) <= 64));

-- constraint developer_request_counts.developer_request_counts_method_check
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_method_check CHECK ((octet_length(method) <= 20));

-- constraint developer_request_counts.developer_request_counts_pkey
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_pkey PRIMARY KEY (id);

-- constraint developer_request_counts.developer_request_counts_route_check
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_route_check CHECK ((octet_length(route) <= 100));

-- constraint developer_requests.developer_requests_app_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_app_check CHECK ((num_nonnulls(client_id, key_id) = 1));

-- constraint developer_requests.developer_requests_error_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_error_check CHECK ((octet_length(error) <= 64));

-- constraint developer_requests.developer_requests_error_id_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_error_id_check CHECK ((octet_length(error_id) <= 64));

-- constraint developer_requests.developer_requests_method_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_method_check CHECK ((octet_length(method) <= 20));

-- constraint developer_requests.developer_requests_parameter_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_parameter_check CHECK ((octet_length(parameter) <= 64));

-- constraint developer_requests.developer_requests_pkey
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_pkey PRIMARY KEY (id);

-- constraint developer_requests.developer_requests_reason_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_reason_check CHECK ((octet_length(reason) <= 64));

-- constraint developer_requests.developer_requests_route_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_route_check CHECK ((octet_length(route) <= 100));

-- constraint developer_requests.developer_requests_value_check
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_value_check CHECK ((octet_length(value) <= 300));

-- constraint ended_refresh_tokens.ended_refresh_tokens_key_check
ALTER TABLE ended_refresh_tokens ADD CONSTRAINT ended_refresh_tokens_key_check CHECK ((octet_length(key) = 32));

-- constraint ended_refresh_tokens.ended_refresh_tokens_pkey
ALTER TABLE ended_refresh_tokens ADD CONSTRAINT ended_refresh_tokens_pkey PRIMARY KEY (key);

-- constraint events.events_cancellation_reason_check
ALTER TABLE events ADD CONSTRAINT events_cancellation_reason_check CHECK ((char_length(cancellation_reason) <= 1000));

-- constraint events.events_cancelled_at_range_check
ALTER TABLE events ADD CONSTRAINT events_cancelled_at_range_check CHECK (is_showable_time(cancelled_at, '00:00:00'::interval));

-- constraint events.events_capacity_check
ALTER TABLE events ADD CONSTRAINT events_capacity_check CHECK ((capacity >= 0));

-- constraint events.events_check
ALTER TABLE events ADD CONSTRAINT events_check CHECK ((ends_at >= starts_at));

-- constraint events.events_copied_key
ALTER TABLE events ADD CONSTRAINT events_copied_key UNIQUE (starts_at, is_draft, is_deleted, id);

-- constraint events.events_cover_image_check
ALTER TABLE events ADD CONSTRAINT events_cover_image_check CHECK ((char_length(cover_image) <= 2048));

-- constraint events.events_created_at_range_check
ALTER TABLE events ADD CONSTRAINT events_created_at_range_check CHECK (is_showable_time(created_at, '00:00:00'::interval));

-- constraint events.events_deleted_at_range_check
ALTER TABLE events ADD CONSTRAINT events_deleted_at_range_check CHECK (is_showable_time(deleted_at, '00:00:00'::interval));

-- constraint events.events_description_check
ALTER TABLE events ADD CONSTRAINT events_description_check CHECK ((char_length(description) <= 20000));

-- constraint events.events_ends_at_range_check
ALTER TABLE events ADD CONSTRAINT events_ends_at_range_check CHECK (is_showable_time(ends_at, '1 day'::interval));

-- constraint events.events_id_check
ALTER TABLE events ADD CONSTRAINT events_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint)));

-- constraint events.events_location_address_check
ALTER TABLE events ADD CONSTRAINT events_location_address_check CHECK ((char_length(location_address) <= 500));

-- constraint events.events_location_city_check
ALTER TABLE events ADD CONSTRAINT events_location_city_check CHECK ((char_length(location_city) <= 200));

-- constraint events.events_location_country_code_check
ALTER TABLE events ADD CONSTRAINT events_location_country_code_check CHECK ((location_country_code ~ '^[A-Z]{2}$'::text));

-- constraint events.events_location_latitude_check
ALTER TABLE events ADD CONSTRAINT events_location_latitude_check CHECK (((location_latitude >= ('-90'::integer)::double precision) AND (location_latitude <= (90)::double precision)));

-- constraint events.events_location_longitude_check
ALTER TABLE events ADD CONSTRAINT events_location_longitude_check CHECK (((location_longitude >= ('-180'::integer)::double precision) AND (location_longitude <= (180)::double precision)));

-- constraint events.events_location_name_check
ALTER TABLE events ADD CONSTRAINT events_location_name_check CHECK ((char_length(location_name) <= 300));

-- constraint events.events_online_url_check
ALTER TABLE events ADD CONSTRAINT events_online_url_check CHECK ((char_length(online_url) <= 2048));

-- constraint events.events_pkey
ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (id);

-- constraint events.events_starts_at_range_check
ALTER TABLE events ADD CONSTRAINT events_starts_at_range_check CHECK (is_showable_time(starts_at, '1 day'::interval));

-- constraint events.events_status_check
ALTER TABLE events ADD CONSTRAINT events_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'scheduled'::text, 'ongoing'::text, 'completed'::text, 'cancelled'::text])));

-- constraint events.events_summary_check
ALTER TABLE events ADD CONSTRAINT events_summary_check CHECK ((char_length(summary) <= 1000));

-- constraint events.events_tags_check
ALTER TABLE events ADD CONSTRAINT events_tags_check CHECK ((cardinality(tags) <= 100));

-- constraint events.events_timezone_check
ALTER TABLE events ADD CONSTRAINT events_timezone_check CHECK ((('1970-01-01 00:00:00+00'::timestamp with time zone AT TIME ZONE timezone) IS NOT NULL));

-- constraint events.events_title_check
ALTER TABLE events ADD CONSTRAINT events_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 300)));

-- constraint events.events_updated_at_range_check
ALTER TABLE events ADD CONSTRAINT events_updated_at_range_check CHECK (is_showable_time(updated_at, '00:00:00'::interval));

-- constraint events.events_visibility_check
ALTER TABLE events ADD CONSTRAINT events_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'unlisted'::text, 'private'::text])));

-- constraint idempotent_responses.idempotent_responses_body_hash_check
ALTER TABLE idempotent_responses ADD CONSTRAINT idempotent_responses_body_hash_check CHECK ((octet_length(body_hash) = 32));

-- constraint idempotent_responses.idempotent_responses_idempotency_key_check
ALTER TABLE idempotent_responses ADD CONSTRAINT idempotent_responses_idempotency_key_check CHECK ((idempotency_key ~ '^[!-~]{1,200}$'::text));

-- constraint idempotent_responses.idempotent_responses_pkey
ALTER TABLE idempotent_responses ADD CONSTRAINT idempotent_responses_pkey PRIMARY KEY (key_id, idempotency_key);

-- constraint login_throttle.login_throttle_attempts_check
ALTER TABLE login_throttle ADD CONSTRAINT login_throttle_attempts_check CHECK ((attempts >= 0));

-- constraint login_throttle.login_throttle_blocks_check
ALTER TABLE login_throttle ADD CONSTRAINT login_throttle_blocks_check CHECK ((blocks >= 0));

-- constraint login_throttle.login_throttle_key_check
ALTER TABLE login_throttle ADD CONSTRAINT login_throttle_key_check CHECK ((octet_length(key) = 32));

-- constraint login_throttle.login_throttle_pkey
ALTER TABLE login_throttle ADD CONSTRAINT login_throttle_pkey PRIMARY KEY (key);

-- constraint member_usage.member_usage_app_kind_check
ALTER TABLE member_usage ADD CONSTRAINT member_usage_app_kind_check CHECK ((app_kind = ANY (ARRAY['client'::text, 'key'::text])));

-- constraint member_usage.member_usage_pkey
ALTER TABLE member_usage ADD CONSTRAINT member_usage_pkey PRIMARY KEY (user_id, day, app_kind, app_id, scope);

-- constraint member_usage.member_usage_uses_check
ALTER TABLE member_usage ADD CONSTRAINT member_usage_uses_check CHECK ((uses > 0));

-- constraint muted_notices.muted_notices_pkey
ALTER TABLE muted_notices ADD CONSTRAINT muted_notices_pkey PRIMARY KEY (user_id, notice);

-- constraint notice_emails.notice_emails_pkey
ALTER TABLE notice_emails ADD CONSTRAINT notice_emails_pkey PRIMARY KEY (id);

-- constraint oauth_client_secrets.oauth_client_secrets_hash_check
ALTER TABLE oauth_client_secrets ADD CONSTRAINT oauth_client_secrets_hash_check CHECK ((octet_length(hash) = 32));

-- constraint oauth_client_secrets.oauth_client_secrets_last_four_check
ALTER TABLE oauth_client_secrets ADD CONSTRAINT oauth_client_secrets_last_four_check CHECK ((char_length(last_four) = 4));

-- constraint oauth_client_secrets.oauth_client_secrets_pepper_id_check
ALTER TABLE oauth_client_secrets ADD CONSTRAINT oauth_client_secrets_pepper_id_check CHECK ((octet_length(pepper_id) = 4));

-- constraint oauth_client_secrets.oauth_client_secrets_pkey
ALTER TABLE oauth_client_secrets ADD CONSTRAINT oauth_client_secrets_pkey PRIMARY KEY (id);

-- constraint oauth_clients.oauth_clients_allowed_origins_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_allowed_origins_check CHECK ((cardinality(allowed_origins) <= 50));

-- constraint oauth_clients.oauth_clients_backchannel_logout_uri_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_backchannel_logout_uri_check CHECK (((char_length(backchannel_logout_uri) >= 1) AND (char_length(backchannel_logout_uri) <= 2000)));

-- constraint oauth_clients.oauth_clients_client_uri_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_client_uri_check CHECK ((char_length(client_uri) <= 2048));

-- constraint oauth_clients.oauth_clients_id_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_id_check CHECK ((id ~ '^[\x21-\x7e]{1,100}$'::text));

-- constraint oauth_clients.oauth_clients_id_token_signed_response_alg_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_id_token_signed_response_alg_check CHECK ((id_token_signed_response_alg = ANY (ARRAY['ES256'::text, 'RS256'::text])));

-- constraint oauth_clients.oauth_clients_logo_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_logo_check CHECK ((octet_length(logo) <= 65536));

-- constraint oauth_clients.oauth_clients_longest_access_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_longest_access_check CHECK ((longest_access = ANY (ARRAY['once'::text, '30'::text, '180'::text, 'unlimited'::text])));

-- constraint oauth_clients.oauth_clients_name_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100)));

-- constraint oauth_clients.oauth_clients_pkce_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_pkce_check CHECK ((pkce = ANY (ARRAY['required'::text, 'optional'::text, 'off'::text])));

-- constraint oauth_clients.oauth_clients_pkey
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);

-- constraint oauth_clients.oauth_clients_policy_uri_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_policy_uri_check CHECK ((char_length(policy_uri) <= 2048));

-- constraint oauth_clients.oauth_clients_post_logout_redirect_uris_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_post_logout_redirect_uris_check CHECK ((cardinality(post_logout_redirect_uris) <= 50));

-- constraint oauth_clients.oauth_clients_profile_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_profile_check CHECK ((profile = ANY (ARRAY['oauth21'::text, 'oidc'::text, 'fapi2'::text])));

-- constraint oauth_clients.oauth_clients_redirect_uris_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_redirect_uris_check CHECK (((cardinality(redirect_uris) >= 1) AND (cardinality(redirect_uris) <= 50)));

-- constraint oauth_clients.oauth_clients_secret_auth_method_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_secret_auth_method_check CHECK ((secret_auth_method = ANY (ARRAY['client_secret_basic'::text, 'client_secret_post'::text])));

-- constraint oauth_clients.oauth_clients_secrets_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_secrets_check CHECK (((secret_auth_method IS NULL) OR ((profile = 'oidc'::text) AND (type = 'web'::text) AND (NOT (jwks IS DISTINCT FROM '{"keys": []}'::jsonb)))));

-- constraint oauth_clients.oauth_clients_type_check
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_type_check CHECK ((type = ANY (ARRAY['web'::text, 'native'::text])));

-- constraint oauth_consents.oauth_consents_pkey
ALTER TABLE oauth_consents ADD CONSTRAINT oauth_consents_pkey PRIMARY KEY (user_id, client_id);

-- constraint oauth_grant_usage.oauth_grant_usage_pkey
ALTER TABLE oauth_grant_usage ADD CONSTRAINT oauth_grant_usage_pkey PRIMARY KEY (grant_id);

-- constraint oauth_grants.oauth_grants_pkey
ALTER TABLE oauth_grants ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);

-- constraint oauth_logouts.oauth_logouts_pkey
ALTER TABLE oauth_logouts ADD CONSTRAINT oauth_logouts_pkey PRIMARY KEY (id);

-- constraint oauth_refusals.oauth_refusals_client_id_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_client_id_check CHECK ((octet_length(client_id) <= 100));

-- constraint oauth_refusals.oauth_refusals_error_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_error_check CHECK ((octet_length(error) <= 64));

-- constraint oauth_refusals.oauth_refusals_error_id_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_error_id_check CHECK ((octet_length(error_id) <= 64));

-- constraint oauth_refusals.oauth_refusals_pkey
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_pkey PRIMARY KEY (place);

-- constraint oauth_refusals.oauth_refusals_place_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_place_check CHECK (((place >= 0) AND (place <= 9999)));

-- constraint oauth_refusals.oauth_refusals_reason_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_reason_check CHECK ((octet_length(reason) <= 64));

-- constraint oauth_refusals.oauth_refusals_redirect_uri_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_redirect_uri_check CHECK ((octet_length(redirect_uri) <= 200));

-- constraint oauth_refusals.oauth_refusals_route_check
ALTER TABLE oauth_refusals ADD CONSTRAINT oauth_refusals_route_check CHECK ((octet_length(route) <= 100));

-- constraint oauth_sessions.oauth_sessions_key_check
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_key_check CHECK ((octet_length(key) = 32));

-- constraint oauth_sessions.oauth_sessions_key_key
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_key_key UNIQUE (key);

-- constraint oauth_sessions.oauth_sessions_pkey
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_pkey PRIMARY KEY (uid_key);

-- constraint oauth_sessions.oauth_sessions_public_id_key
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_public_id_key UNIQUE (public_id);

-- constraint oauth_sessions.oauth_sessions_uid_key_check
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_uid_key_check CHECK ((octet_length(uid_key) = 32));

-- constraint oauth_sessions.oauth_sessions_upstream_session_key_check
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_upstream_session_key_check CHECK ((octet_length(upstream_session_key) = 32));

-- constraint oauth_sessions.oauth_sessions_upstream_subject_key_check
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_upstream_subject_key_check CHECK ((octet_length(upstream_subject_key) = 32));

-- constraint oauth_sessions.oauth_sessions_user_agent_check
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_user_agent_check CHECK ((char_length(user_agent) <= 300));

-- constraint oauth_state.oauth_state_key_check
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_key_check CHECK ((octet_length(key) = 32));

-- constraint oauth_state.oauth_state_model_check
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_model_check CHECK ((model = ANY (ARRAY['Interaction'::text, 'PushedAuthorizationRequest'::text, 'ReplayDetection'::text, 'UpstreamSignIn'::text, 'PasskeySignIn'::text, 'PasskeyRegistration'::text, 'PasswordReset'::text])));

-- constraint oauth_state.oauth_state_pkey
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_pkey PRIMARY KEY (key);

-- constraint oauth_tokens.oauth_tokens_key_check
ALTER TABLE oauth_tokens ADD CONSTRAINT oauth_tokens_key_check CHECK ((octet_length(key) = 32));

-- constraint oauth_tokens.oauth_tokens_model_check
ALTER TABLE oauth_tokens ADD CONSTRAINT oauth_tokens_model_check CHECK ((model = ANY (ARRAY['AuthorizationCode'::text, 'AccessToken'::text, 'RefreshToken'::text])));

-- constraint oauth_tokens.oauth_tokens_pkey
ALTER TABLE oauth_tokens ADD CONSTRAINT oauth_tokens_pkey PRIMARY KEY (key);

-- constraint participants.participants_checked_in_at_range_check
ALTER TABLE participants ADD CONSTRAINT participants_checked_in_at_range_check CHECK (is_showable_time(checked_in_at, '00:00:00'::interval));

-- constraint participants.participants_pkey
ALTER TABLE participants ADD CONSTRAINT participants_pkey PRIMARY KEY (user_id, event_id);

-- constraint participants.participants_responded_at_range_check
ALTER TABLE participants ADD CONSTRAINT participants_responded_at_range_check CHECK (is_showable_time(responded_at, '00:00:00'::interval));

-- constraint participants.participants_role_check
ALTER TABLE participants ADD CONSTRAINT participants_role_check CHECK ((role = ANY (ARRAY['organizer'::text, 'co_organizer'::text, 'attendee'::text, 'invitee'::text])));

-- constraint participants.participants_rsvp_status_check
ALTER TABLE participants ADD CONSTRAINT participants_rsvp_status_check CHECK (
CASE role
    WHEN 'attendee'::text THEN ((rsvp_status IS NOT NULL) AND (rsvp_status = ANY (ARRAY['going'::text, 'maybe'::text, 'waitlisted'::text])))
    WHEN 'invitee'::text THEN ((rsvp_status IS NOT NULL) AND (rsvp_status = ANY (ARRAY['pending'::text, 'declined'::text])))
    ELSE (rsvp_status IS NULL)
END);

-- constraint passkeys.passkeys_credential_id_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_credential_id_check CHECK (((octet_length(credential_id) >= 1) AND (octet_length(credential_id) <= 1023)));

-- constraint passkeys.passkeys_credential_id_key
ALTER TABLE passkeys ADD CONSTRAINT passkeys_credential_id_key UNIQUE (credential_id);

-- constraint passkeys.passkeys_name_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60)));

-- constraint passkeys.passkeys_pkey
ALTER TABLE passkeys ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);

-- constraint passkeys.passkeys_public_key_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_public_key_check CHECK (((octet_length(public_key) >= 1) AND (octet_length(public_key) <= 2048)));

-- constraint passkeys.passkeys_sign_count_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_sign_count_check CHECK (((sign_count >= 0) AND (sign_count <= '4294967295'::bigint)));

-- constraint passkeys.passkeys_transports_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_transports_check CHECK ((cardinality(transports) <= 10));

-- constraint passkeys.passkeys_user_handle_check
ALTER TABLE passkeys ADD CONSTRAINT passkeys_user_handle_check CHECK (((octet_length(user_handle) >= 1) AND (octet_length(user_handle) <= 64)));

-- constraint pending_members.pending_members_pkey
ALTER TABLE pending_members ADD CONSTRAINT pending_members_pkey PRIMARY KEY (user_id);

-- constraint platform_changes.platform_changes_pkey
ALTER TABLE platform_changes ADD CONSTRAINT platform_changes_pkey PRIMARY KEY (changed_in, sequence);

-- constraint platform_changes.platform_changes_type_check
ALTER TABLE platform_changes ADD CONSTRAINT platform_changes_type_check CHECK ((type = ANY (ARRAY['profile.updated'::text, 'consent.granted'::text, 'consent.revoked'::text, 'member.signed_in'::text, 'notice'::text])));

-- constraint platform_totals.platform_totals_id_check
ALTER TABLE platform_totals ADD CONSTRAINT platform_totals_id_check CHECK (id);

-- constraint platform_totals.platform_totals_pkey
ALTER TABLE platform_totals ADD CONSTRAINT platform_totals_pkey PRIMARY KEY (id);

-- constraint rate_limit_counts.rate_limit_counts_pkey
ALTER TABLE rate_limit_counts ADD CONSTRAINT rate_limit_counts_pkey PRIMARY KEY (key);

-- constraint rate_limit_instances.rate_limit_instances_one_check
ALTER TABLE rate_limit_instances ADD CONSTRAINT rate_limit_instances_one_check CHECK (one);

-- constraint rate_limit_instances.rate_limit_instances_pkey
ALTER TABLE rate_limit_instances ADD CONSTRAINT rate_limit_instances_pkey PRIMARY KEY (one);

-- constraint record_versions.record_versions_pkey
ALTER TABLE record_versions ADD CONSTRAINT record_versions_pkey PRIMARY KEY (type, user_id, id);

-- constraint record_versions.record_versions_version_check
ALTER TABLE record_versions ADD CONSTRAINT record_versions_version_check CHECK (((version >= 0) AND (version <= '9007199254740991'::bigint)));

-- constraint renamed_users.renamed_users_pkey
ALTER TABLE renamed_users ADD CONSTRAINT renamed_users_pkey PRIMARY KEY (id);

-- constraint schema_versions.schema_versions_pkey
ALTER TABLE schema_versions ADD CONSTRAINT schema_versions_pkey PRIMARY KEY (digest);

-- constraint signing_keys.signing_keys_alg_check
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_alg_check CHECK ((alg = ANY (ARRAY['ES256'::text, 'RS256'::text])));

-- constraint signing_keys.signing_keys_pkey
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);

-- constraint signing_keys.signing_keys_private_check
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_private_check CHECK (((private_jwk IS NULL) = (status = 'retired'::text)));

-- constraint signing_keys.signing_keys_status_check
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_status_check CHECK ((status = ANY (ARRAY['next'::text, 'current'::text, 'previous'::text, 'retired'::text])));

-- constraint user_achievements.user_achievements_earned_at_range_check
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_earned_at_range_check CHECK (is_showable_time(earned_at, '00:00:00'::interval));

-- constraint user_achievements.user_achievements_pin_earned_check
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_pin_earned_check CHECK (((pin_position IS NULL) OR (earned_at IS NOT NULL)));

-- constraint user_achievements.user_achievements_pin_position_check
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_pin_position_check CHECK (((pin_position >= 1) AND (pin_position <= 6)));

-- constraint user_achievements.user_achievements_pkey
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_pkey PRIMARY KEY (user_id, achievement_id);

-- constraint user_achievements.user_achievements_progress_check
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_progress_check CHECK ((progress >= 0));

-- constraint users.users_bio_check
ALTER TABLE users ADD CONSTRAINT users_bio_check CHECK ((char_length(bio) <= 500));

-- constraint users.users_created_at_range_check
ALTER TABLE users ADD CONSTRAINT users_created_at_range_check CHECK (is_showable_time(created_at, '00:00:00'::interval));

-- constraint users.users_disabled_at_range_check
ALTER TABLE users ADD CONSTRAINT users_disabled_at_range_check CHECK (is_showable_time(disabled_at, '00:00:00'::interval));

-- constraint users.users_edited_fields_check
ALTER TABLE users ADD CONSTRAINT users_edited_fields_check CHECK ((edited_fields <@ ARRAY['first_name'::text, 'last_name'::text, 'bio'::text, 'profile_picture'::text]));

-- constraint users.users_email_check
ALTER TABLE users ADD CONSTRAINT users_email_check CHECK (((char_length(email) >= 3) AND (char_length(email) <= 254)));

-- constraint users.users_erased_check
ALTER TABLE users ADD CONSTRAINT users_erased_check CHECK (((erased_at IS NULL) OR ((disabled_at IS NOT NULL) AND (username = ('erased-'::text || id)) AND (num_nonnulls(password_hash, first_name, last_name, stored_display_name, bio, profile_picture) = 0))));

-- constraint users.users_erased_email_check
ALTER TABLE users ADD CONSTRAINT users_erased_email_check CHECK (((erased_at IS NULL) OR (email IS NULL)));

-- constraint users.users_erased_external_id_check
ALTER TABLE users ADD CONSTRAINT users_erased_external_id_check CHECK (((erased_at IS NULL) OR (external_id IS NULL)));

-- constraint users.users_external_id_check
ALTER TABLE users ADD CONSTRAINT users_external_id_check CHECK (((char_length(external_id) >= 1) AND (char_length(external_id) <= 255)));

-- constraint users.users_external_id_key
ALTER TABLE users ADD CONSTRAINT users_external_id_key UNIQUE (external_id);

-- constraint users.users_first_name_check
ALTER TABLE users ADD CONSTRAINT users_first_name_check CHECK ((char_length(first_name) <= 100));

-- constraint users.users_id_check
ALTER TABLE users ADD CONSTRAINT users_id_check CHECK (((id >= 1) AND (id <= '9007199254740991'::bigint)));

-- constraint users.users_is_disabled_key
ALTER TABLE users ADD CONSTRAINT users_is_disabled_key UNIQUE (is_disabled, id);

-- constraint users.users_last_name_check
ALTER TABLE users ADD CONSTRAINT users_last_name_check CHECK ((char_length(last_name) <= 100));

-- constraint users.users_password_hash_check
ALTER TABLE users ADD CONSTRAINT users_password_hash_check CHECK ((char_length(password_hash) <= 500));

-- constraint users.users_pkey
ALTER TABLE users ADD CONSTRAINT users_pkey PRIMARY KEY (id);

-- constraint users.users_profile_picture_check
ALTER TABLE users ADD CONSTRAINT users_profile_picture_check CHECK ((char_length(profile_picture) <= 2048));

-- constraint users.users_stored_display_name_check
ALTER TABLE users ADD CONSTRAINT users_stored_display_name_check CHECK ((char_length(stored_display_name) <= 200));

-- constraint users.users_username_check
ALTER TABLE users ADD CONSTRAINT users_username_check CHECK (((char_length(username) >= 1) AND (char_length(username) <= 100)));

-- constraint webhook_deliveries.webhook_deliveries_ended_check
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_ended_check CHECK (((status = 'pending'::text) = (ended_at IS NULL)));

-- constraint webhook_deliveries.webhook_deliveries_error_check
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_error_check CHECK ((char_length(error) <= 200));

-- constraint webhook_deliveries.webhook_deliveries_id_key
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_id_key UNIQUE (id);

-- constraint webhook_deliveries.webhook_deliveries_pkey
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (sequence);

-- constraint webhook_deliveries.webhook_deliveries_status_check
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text, 'withheld'::text])));

-- constraint webhook_endpoints.webhook_endpoints_credential_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_credential_check CHECK ((num_nonnulls(client_id, key_id) <= 1));

-- constraint webhook_endpoints.webhook_endpoints_disabled_because_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_disabled_because_check CHECK ((disabled_because = ANY (ARRAY['admin'::text, 'failing'::text, 'gone'::text])));

-- constraint webhook_endpoints.webhook_endpoints_disabled_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_disabled_check CHECK (((disabled_at IS NULL) = (disabled_because IS NULL)));

-- constraint webhook_endpoints.webhook_endpoints_pkey
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);

-- constraint webhook_endpoints.webhook_endpoints_previous_secret_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_previous_secret_check CHECK (((previous_secret IS NULL) = (previous_secret_until IS NULL)));

-- constraint webhook_endpoints.webhook_endpoints_types_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_types_check CHECK ((cardinality(types) > 0));

-- constraint webhook_endpoints.webhook_endpoints_url_check
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_url_check CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2000)));

-- index access_changes_user_id_idx
CREATE INDEX access_changes_user_id_idx ON public.access_changes USING btree (user_id, client_id);

-- index achievements_key_key
CREATE UNIQUE INDEX achievements_key_key ON public.achievements USING btree (key);

-- index api_keys_created_at_idx
CREATE INDEX api_keys_created_at_idx ON public.api_keys USING btree (created_at);

-- index api_keys_ending_idx
CREATE INDEX api_keys_ending_idx ON public.api_keys USING btree (expires_at) WHERE ((ending_notified_at IS NULL) AND (revoked_at IS NULL) AND (replaced_by IS NULL) AND (user_id IS NOT NULL));

-- index api_keys_user_id_idx
CREATE INDEX api_keys_user_id_idx ON public.api_keys USING btree (user_id, created_at);

-- index app_testers_user_id_idx
CREATE INDEX app_testers_user_id_idx ON public.app_testers USING btree (user_id);

-- index auth_events_client_id_idx
CREATE INDEX auth_events_client_id_idx ON public.auth_events USING btree (client_id, occurred_at DESC) WHERE (client_id IS NOT NULL);

-- index auth_events_error_id_idx
CREATE INDEX auth_events_error_id_idx ON public.auth_events USING btree (error_id) WHERE (error_id IS NOT NULL);

-- index auth_events_key_id_idx
CREATE INDEX auth_events_key_id_idx ON public.auth_events USING btree (key_id, occurred_at DESC) WHERE (key_id IS NOT NULL);

-- index auth_events_occurred_at_idx
CREATE INDEX auth_events_occurred_at_idx ON public.auth_events USING btree (occurred_at DESC, id DESC);

-- index auth_events_user_id_idx
CREATE INDEX auth_events_user_id_idx ON public.auth_events USING btree (user_id, occurred_at DESC);

-- index changes_changed_at_idx
CREATE INDEX changes_changed_at_idx ON public.changes USING btree (changed_at);

-- index changes_of_idx
CREATE INDEX changes_of_idx ON public.changes USING btree (user_id, resource, id, changed_in, sequence);

-- index connections_id_idx
CREATE INDEX connections_id_idx ON public.connections USING btree (id);

-- index connections_met_at_event_idx
CREATE INDEX connections_met_at_event_idx ON public.connections USING btree (met_at_event_id) WHERE (met_at_event_id IS NOT NULL);

-- index connections_name_idx
CREATE INDEX connections_name_idx ON public.connections USING btree (user_id, status, peer_name, id) INCLUDE (peer_username) WHERE (NOT peer_is_disabled);

-- index connections_recent_idx
CREATE INDEX connections_recent_idx ON public.connections USING btree (user_id, status, connected_at DESC, id) WHERE (NOT peer_is_disabled);

-- index developer_request_counts_hour_idx
CREATE INDEX developer_request_counts_hour_idx ON public.developer_request_counts USING btree (hour);

-- index developer_request_counts_key_id_idx
CREATE INDEX developer_request_counts_key_id_idx ON public.developer_request_counts USING btree (key_id, hour) WHERE (key_id IS NOT NULL);

-- index developer_request_counts_once_idx
CREATE UNIQUE INDEX developer_request_counts_once_idx ON public.developer_request_counts USING btree (client_id, key_id, hour, method, route, status, error) NULLS NOT DISTINCT;

-- index developer_requests_client_id_idx
CREATE INDEX developer_requests_client_id_idx ON public.developer_requests USING btree (client_id, occurred_at DESC, id DESC) WHERE (client_id IS NOT NULL);

-- index developer_requests_key_id_idx
CREATE INDEX developer_requests_key_id_idx ON public.developer_requests USING btree (key_id, occurred_at DESC, id DESC) WHERE (key_id IS NOT NULL);

-- index ended_refresh_tokens_ended_at_idx
CREATE INDEX ended_refresh_tokens_ended_at_idx ON public.ended_refresh_tokens USING btree (ended_at);

-- index event_totals_delta_idx
CREATE INDEX event_totals_delta_idx ON public.event_totals USING btree (event_id) WHERE is_delta;

-- index event_totals_event_idx
CREATE INDEX event_totals_event_idx ON public.event_totals USING btree (event_id) INCLUDE (attendees_count);

-- index events_organizer_id_idx
CREATE INDEX events_organizer_id_idx ON public.events USING btree (organizer_id);

-- index idempotent_responses_created_at_idx
CREATE INDEX idempotent_responses_created_at_idx ON public.idempotent_responses USING btree (created_at);

-- index login_throttle_window_ends_at_idx
CREATE INDEX login_throttle_window_ends_at_idx ON public.login_throttle USING btree (window_ends_at);

-- index member_usage_day_idx
CREATE INDEX member_usage_day_idx ON public.member_usage USING btree (day);

-- index notice_emails_created_at_idx
CREATE INDEX notice_emails_created_at_idx ON public.notice_emails USING btree (created_at);

-- index notice_emails_due_idx
CREATE INDEX notice_emails_due_idx ON public.notice_emails USING btree (is_bulk, due_at);

-- index notice_emails_user_id_idx
CREATE INDEX notice_emails_user_id_idx ON public.notice_emails USING btree (user_id);

-- index oauth_client_secrets_client_idx
CREATE INDEX oauth_client_secrets_client_idx ON public.oauth_client_secrets USING btree (client_id);

-- index oauth_client_secrets_expires_idx
CREATE INDEX oauth_client_secrets_expires_idx ON public.oauth_client_secrets USING btree (expires_at);

-- index oauth_clients_backchannel_logout_idx
CREATE INDEX oauth_clients_backchannel_logout_idx ON public.oauth_clients USING btree (id) WHERE (backchannel_logout_uri IS NOT NULL);

-- index oauth_clients_owner_id_idx
CREATE INDEX oauth_clients_owner_id_idx ON public.oauth_clients USING btree (owner_id) WHERE (owner_id IS NOT NULL);

-- index oauth_consents_client_id_idx
CREATE INDEX oauth_consents_client_id_idx ON public.oauth_consents USING btree (client_id);

-- index oauth_grants_access_ends_at_idx
CREATE INDEX oauth_grants_access_ends_at_idx ON public.oauth_grants USING btree (access_ends_at);

-- index oauth_grants_client_id_idx
CREATE INDEX oauth_grants_client_id_idx ON public.oauth_grants USING btree (client_id);

-- index oauth_grants_ending_idx
CREATE INDEX oauth_grants_ending_idx ON public.oauth_grants USING btree (access_ends_at) WHERE (ending_notified_at IS NULL);

-- index oauth_grants_expires_at_idx
CREATE INDEX oauth_grants_expires_at_idx ON public.oauth_grants USING btree (expires_at);

-- index oauth_grants_untold_idx
CREATE INDEX oauth_grants_untold_idx ON public.oauth_grants USING btree (client_id, access_ends_at) WHERE (ending_told_at IS NULL);

-- index oauth_grants_user_id_idx
CREATE INDEX oauth_grants_user_id_idx ON public.oauth_grants USING btree (user_id, client_id);

-- index oauth_logouts_due_idx
CREATE INDEX oauth_logouts_due_idx ON public.oauth_logouts USING btree (client_id, due_at);

-- index oauth_logouts_ended_at_idx
CREATE INDEX oauth_logouts_ended_at_idx ON public.oauth_logouts USING btree (ended_at);

-- index oauth_logouts_user_idx
CREATE INDEX oauth_logouts_user_idx ON public.oauth_logouts USING btree (user_id);

-- index oauth_refusals_error_id_idx
CREATE INDEX oauth_refusals_error_id_idx ON public.oauth_refusals USING btree (error_id);

-- index oauth_refusals_occurred_at_idx
CREATE INDEX oauth_refusals_occurred_at_idx ON public.oauth_refusals USING btree (occurred_at);

-- index oauth_sessions_expires_at_idx
CREATE INDEX oauth_sessions_expires_at_idx ON public.oauth_sessions USING btree (expires_at);

-- index oauth_sessions_upstream_session_key_idx
CREATE INDEX oauth_sessions_upstream_session_key_idx ON public.oauth_sessions USING btree (upstream_session_key) WHERE (upstream_session_key IS NOT NULL);

-- index oauth_sessions_upstream_subject_key_idx
CREATE INDEX oauth_sessions_upstream_subject_key_idx ON public.oauth_sessions USING btree (upstream_subject_key) WHERE (upstream_subject_key IS NOT NULL);

-- index oauth_sessions_user_id_idx
CREATE INDEX oauth_sessions_user_id_idx ON public.oauth_sessions USING btree (user_id) WHERE (user_id IS NOT NULL);

-- index oauth_state_expires_at_idx
CREATE INDEX oauth_state_expires_at_idx ON public.oauth_state USING btree (expires_at);

-- index oauth_state_user_id_idx
CREATE INDEX oauth_state_user_id_idx ON public.oauth_state USING btree (user_id) WHERE (user_id IS NOT NULL);

-- index oauth_tokens_code_expires_at_idx
CREATE INDEX oauth_tokens_code_expires_at_idx ON public.oauth_tokens USING btree (expires_at) WHERE (model = 'AuthorizationCode'::text);

-- index oauth_tokens_grant_id_idx
CREATE INDEX oauth_tokens_grant_id_idx ON public.oauth_tokens USING btree (grant_id);

-- index oauth_tokens_other_expires_at_idx
CREATE INDEX oauth_tokens_other_expires_at_idx ON public.oauth_tokens USING btree (expires_at) WHERE (model <> 'AuthorizationCode'::text);

-- index oauth_tokens_successor_idx
CREATE INDEX oauth_tokens_successor_idx ON public.oauth_tokens USING btree (consumed_at) WHERE (successor IS NOT NULL);

-- index participants_calendar_idx
CREATE INDEX participants_calendar_idx ON public.participants USING btree (user_id, starts_at DESC, event_id) WHERE is_visible;

-- index participants_co_organizers_idx
CREATE INDEX participants_co_organizers_idx ON public.participants USING btree (event_id, user_id) WHERE (role = 'co_organizer'::text);

-- index participants_event_user_idx
CREATE INDEX participants_event_user_idx ON public.participants USING btree (event_id, user_id);

-- index passkeys_user_id_idx
CREATE INDEX passkeys_user_id_idx ON public.passkeys USING btree (user_id, id);

-- index platform_changes_changed_at_idx
CREATE INDEX platform_changes_changed_at_idx ON public.platform_changes USING btree (changed_at);

-- index platform_changes_user_id_idx
CREATE INDEX platform_changes_user_id_idx ON public.platform_changes USING btree (user_id);

-- index rate_limit_counts_window_idx
CREATE INDEX rate_limit_counts_window_idx ON public.rate_limit_counts USING btree (to_timestamp(((window_number * 60))::double precision));

-- index signing_keys_status_key
CREATE UNIQUE INDEX signing_keys_status_key ON public.signing_keys USING btree (alg, status) WHERE (status <> 'retired'::text);

-- index user_achievements_achievement_idx
CREATE INDEX user_achievements_achievement_idx ON public.user_achievements USING btree (achievement_id) WHERE (earned_at IS NOT NULL);

-- index user_achievements_pin_key
CREATE UNIQUE INDEX user_achievements_pin_key ON public.user_achievements USING btree (user_id, pin_position) WHERE (pin_position IS NOT NULL);

-- index user_totals_delta_idx
CREATE INDEX user_totals_delta_idx ON public.user_totals USING btree (user_id) WHERE is_delta;

-- index user_totals_user_idx
CREATE INDEX user_totals_user_idx ON public.user_totals USING btree (user_id);

-- index users_imported_hash_kind_idx
CREATE INDEX users_imported_hash_kind_idx ON public.users USING btree (imported_hash_kind(password_hash)) WHERE (imported_hash_kind(password_hash) IS NOT NULL);

-- index users_username_key
CREATE UNIQUE INDEX users_username_key ON public.users USING btree (folded_username);

-- index webhook_deliveries_due_idx
CREATE INDEX webhook_deliveries_due_idx ON public.webhook_deliveries USING btree (endpoint_id, due_at, sequence) WHERE (status = 'pending'::text);

-- index webhook_deliveries_ended_at_idx
CREATE INDEX webhook_deliveries_ended_at_idx ON public.webhook_deliveries USING btree (ended_at) WHERE (status <> 'pending'::text);

-- index webhook_deliveries_endpoint_idx
CREATE INDEX webhook_deliveries_endpoint_idx ON public.webhook_deliveries USING btree (endpoint_id, sequence);

-- index webhook_deliveries_leased_idx
CREATE INDEX webhook_deliveries_leased_idx ON public.webhook_deliveries USING btree (endpoint_id, leased_until) WHERE (leased_until IS NOT NULL);

-- index webhook_deliveries_order_idx
CREATE INDEX webhook_deliveries_order_idx ON public.webhook_deliveries USING btree (endpoint_id, user_id, sequence) WHERE (status = 'pending'::text);

-- index webhook_deliveries_user_idx
CREATE INDEX webhook_deliveries_user_idx ON public.webhook_deliveries USING btree (user_id) WHERE (user_id <> 0);

-- index webhook_endpoints_client_id_idx
CREATE INDEX webhook_endpoints_client_id_idx ON public.webhook_endpoints USING btree (client_id) WHERE (client_id IS NOT NULL);

-- index webhook_endpoints_key_id_idx
CREATE INDEX webhook_endpoints_key_id_idx ON public.webhook_endpoints USING btree (key_id) WHERE (key_id IS NOT NULL);

-- constraint api_key_usage.api_key_usage_key_id_fkey
ALTER TABLE api_key_usage ADD CONSTRAINT api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id);

-- constraint api_keys.api_keys_replaced_by_fkey
ALTER TABLE api_keys ADD CONSTRAINT api_keys_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES api_keys(id);

-- constraint api_keys.api_keys_user_id_fkey
ALTER TABLE api_keys ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

-- constraint app_testers.app_testers_client_id_fkey
ALTER TABLE app_testers ADD CONSTRAINT app_testers_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint app_testers.app_testers_user_id_fkey
ALTER TABLE app_testers ADD CONSTRAINT app_testers_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint calendar_links.calendar_links_user_id_fkey
ALTER TABLE calendar_links ADD CONSTRAINT calendar_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

-- constraint connections.connections_met_at_event_id_fkey
ALTER TABLE connections ADD CONSTRAINT connections_met_at_event_id_fkey FOREIGN KEY (met_at_event_id) REFERENCES events(id);

-- constraint connections.connections_peer_fkey
ALTER TABLE connections ADD CONSTRAINT connections_peer_fkey FOREIGN KEY (peer_id, peer_is_disabled) REFERENCES users(id, is_disabled) ON UPDATE CASCADE;

-- constraint connections.connections_user_id_fkey
ALTER TABLE connections ADD CONSTRAINT connections_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

-- constraint developer_request_counts.developer_request_counts_client_id_fkey
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint developer_request_counts.developer_request_counts_key_id_fkey
ALTER TABLE developer_request_counts ADD CONSTRAINT developer_request_counts_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;

-- constraint developer_requests.developer_requests_client_id_fkey
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint developer_requests.developer_requests_key_id_fkey
ALTER TABLE developer_requests ADD CONSTRAINT developer_requests_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;

-- constraint events.events_organizer_id_fkey
ALTER TABLE events ADD CONSTRAINT events_organizer_id_fkey FOREIGN KEY (organizer_id) REFERENCES users(id);

-- constraint idempotent_responses.idempotent_responses_key_id_fkey
ALTER TABLE idempotent_responses ADD CONSTRAINT idempotent_responses_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;

-- constraint member_usage.member_usage_user_id_fkey
ALTER TABLE member_usage ADD CONSTRAINT member_usage_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

-- constraint muted_notices.muted_notices_user_id_fkey
ALTER TABLE muted_notices ADD CONSTRAINT muted_notices_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint oauth_client_secrets.oauth_client_secrets_client_id_fkey
ALTER TABLE oauth_client_secrets ADD CONSTRAINT oauth_client_secrets_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint oauth_clients.oauth_clients_owner_id_fkey
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES users(id);

-- constraint oauth_consents.oauth_consents_client_id_fkey
ALTER TABLE oauth_consents ADD CONSTRAINT oauth_consents_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint oauth_consents.oauth_consents_user_id_fkey
ALTER TABLE oauth_consents ADD CONSTRAINT oauth_consents_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint oauth_grant_usage.oauth_grant_usage_grant_id_fkey
ALTER TABLE oauth_grant_usage ADD CONSTRAINT oauth_grant_usage_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;

-- constraint oauth_grants.oauth_grants_client_id_fkey
ALTER TABLE oauth_grants ADD CONSTRAINT oauth_grants_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint oauth_grants.oauth_grants_user_id_fkey
ALTER TABLE oauth_grants ADD CONSTRAINT oauth_grants_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint oauth_logouts.oauth_logouts_client_id_fkey
ALTER TABLE oauth_logouts ADD CONSTRAINT oauth_logouts_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint oauth_sessions.oauth_sessions_user_id_fkey
ALTER TABLE oauth_sessions ADD CONSTRAINT oauth_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint oauth_state.oauth_state_user_id_fkey
ALTER TABLE oauth_state ADD CONSTRAINT oauth_state_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint oauth_tokens.oauth_tokens_grant_id_fkey
ALTER TABLE oauth_tokens ADD CONSTRAINT oauth_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES oauth_grants(id) ON DELETE CASCADE;

-- constraint participants.participants_event_fkey
ALTER TABLE participants ADD CONSTRAINT participants_event_fkey FOREIGN KEY (event_id, starts_at, event_is_draft, event_is_deleted) REFERENCES events(id, starts_at, is_draft, is_deleted) ON UPDATE CASCADE;

-- constraint participants.participants_user_id_fkey
ALTER TABLE participants ADD CONSTRAINT participants_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

-- constraint passkeys.passkeys_user_id_fkey
ALTER TABLE passkeys ADD CONSTRAINT passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;

-- constraint user_achievements.user_achievements_achievement_id_fkey
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_achievement_id_fkey FOREIGN KEY (achievement_id) REFERENCES achievements(id);

-- constraint user_achievements.user_achievements_user_fkey
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_user_fkey FOREIGN KEY (user_id, user_is_disabled) REFERENCES users(id, is_disabled) ON UPDATE CASCADE;

-- constraint webhook_deliveries.webhook_deliveries_endpoint_id_fkey
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE;

-- constraint webhook_endpoints.webhook_endpoints_client_id_fkey
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_client_id_fkey FOREIGN KEY (client_id) REFERENCES oauth_clients(id) ON DELETE CASCADE;

-- constraint webhook_endpoints.webhook_endpoints_key_id_fkey
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE;

-- trigger achievement_total_deltas.achievement_total_deltas_refuse_truncate
CREATE TRIGGER achievement_total_deltas_refuse_truncate BEFORE TRUNCATE ON public.achievement_total_deltas FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger achievement_total_deltas.achievement_total_deltas_refuse_truncate
ALTER TABLE achievement_total_deltas ENABLE ALWAYS TRIGGER achievement_total_deltas_refuse_truncate;

-- trigger achievements.achievements_record_change
CREATE TRIGGER achievements_record_change AFTER UPDATE ON public.achievements FOR EACH ROW WHEN (((((((old.revealed IS DISTINCT FROM new.revealed) OR (old.category IS DISTINCT FROM new.category)) OR (old.points IS DISTINCT FROM new.points)) OR (old.is_hidden IS DISTINCT FROM new.is_hidden)) OR (old.criteria IS DISTINCT FROM new.criteria)) OR (old.target IS DISTINCT FROM new.target))) EXECUTE FUNCTION record_achievement_change();

-- trigger achievements.achievements_record_change
ALTER TABLE achievements ENABLE ALWAYS TRIGGER achievements_record_change;

-- trigger achievements.achievements_refuse_new_id
CREATE TRIGGER achievements_refuse_new_id BEFORE UPDATE ON public.achievements FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION refuse_new_id();

-- trigger achievements.achievements_refuse_new_id
ALTER TABLE achievements ENABLE ALWAYS TRIGGER achievements_refuse_new_id;

-- trigger api_keys.announce_truncate
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.api_keys FOR EACH STATEMENT EXECUTE FUNCTION announce_ended();

-- trigger api_keys.announce_truncate
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER announce_truncate;

-- trigger api_keys.api_keys_announce_delete
CREATE TRIGGER api_keys_announce_delete AFTER DELETE ON public.api_keys REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('key');

-- trigger api_keys.api_keys_announce_delete
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER api_keys_announce_delete;

-- trigger api_keys.api_keys_announce_update
CREATE TRIGGER api_keys_announce_update AFTER UPDATE ON public.api_keys REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('key');

-- trigger api_keys.api_keys_announce_update
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER api_keys_announce_update;

-- trigger auth_events.auth_events_are_never_changed
CREATE TRIGGER auth_events_are_never_changed BEFORE UPDATE ON public.auth_events FOR EACH ROW EXECUTE FUNCTION auth_events_refuse();

-- trigger auth_events.auth_events_are_never_changed
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_changed;

-- trigger auth_events.auth_events_are_never_emptied
CREATE TRIGGER auth_events_are_never_emptied BEFORE TRUNCATE ON public.auth_events FOR EACH STATEMENT EXECUTE FUNCTION auth_events_refuse();

-- trigger auth_events.auth_events_are_never_emptied
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_emptied;

-- trigger auth_events.auth_events_give_notice
CREATE TRIGGER auth_events_give_notice AFTER INSERT ON public.auth_events FOR EACH ROW WHEN (((new.user_id IS NOT NULL) AND ((new.type = ANY (ARRAY['key.ending'::text, 'access.ending'::text])) OR ((new.actor <> 'system'::text) AND (new.type = ANY (ARRAY['key.created'::text, 'key.rotated'::text, 'calendar_link.created'::text, 'client.reviewed'::text, 'passkey.added'::text, 'passkey.removed'::text, 'user.password_set'::text])))))) EXECUTE FUNCTION give_notice_of_event();

-- trigger auth_events.auth_events_give_notice
ALTER TABLE auth_events ENABLE TRIGGER auth_events_give_notice;

-- trigger auth_events.auth_events_stay_a_week
CREATE TRIGGER auth_events_stay_a_week BEFORE DELETE ON public.auth_events FOR EACH ROW WHEN ((old.occurred_at > (now() - '7 days'::interval))) EXECUTE FUNCTION auth_events_refuse();

-- trigger auth_events.auth_events_stay_a_week
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_stay_a_week;

-- trigger auth_events.auth_events_tell_platform
CREATE TRIGGER auth_events_tell_platform AFTER INSERT ON public.auth_events FOR EACH ROW WHEN (((new.type = 'sign_in.succeeded'::text) AND (new.user_id IS NOT NULL))) EXECUTE FUNCTION tell_platform_of_sign_in();

-- trigger auth_events.auth_events_tell_platform
ALTER TABLE auth_events ENABLE TRIGGER auth_events_tell_platform;

-- trigger connections.connections_changed
CREATE TRIGGER connections_changed AFTER UPDATE OF user_id, id, peer_id, status, source, met_at_event_id, requested_at, connected_at, peer_is_disabled ON public.connections FOR EACH ROW EXECUTE FUNCTION connections_changed();

-- trigger connections.connections_changed
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_changed;

-- trigger connections.connections_copy_peer
CREATE TRIGGER connections_copy_peer BEFORE INSERT OR UPDATE OF peer_id ON public.connections FOR EACH ROW EXECUTE FUNCTION connections_copy_peer();

-- trigger connections.connections_copy_peer
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_copy_peer;

-- trigger connections.connections_inserted
CREATE TRIGGER connections_inserted AFTER INSERT ON public.connections REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION connections_inserted();

-- trigger connections.connections_inserted
ALTER TABLE connections ENABLE TRIGGER connections_inserted;

-- trigger connections.connections_refuse_truncate
CREATE TRIGGER connections_refuse_truncate BEFORE TRUNCATE ON public.connections FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger connections.connections_refuse_truncate
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_refuse_truncate;

-- trigger connections.connections_removed
CREATE TRIGGER connections_removed AFTER DELETE ON public.connections FOR EACH ROW EXECUTE FUNCTION connections_changed();

-- trigger connections.connections_removed
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_removed;

-- trigger event_totals.event_totals_refuse_truncate
CREATE TRIGGER event_totals_refuse_truncate BEFORE TRUNCATE ON public.event_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger event_totals.event_totals_refuse_truncate
ALTER TABLE event_totals ENABLE ALWAYS TRIGGER event_totals_refuse_truncate;

-- trigger events.events_derive
CREATE TRIGGER events_derive BEFORE INSERT OR UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION events_derive();

-- trigger events.events_derive
ALTER TABLE events ENABLE ALWAYS TRIGGER events_derive;

-- trigger events.events_record_change
CREATE TRIGGER events_record_change AFTER UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION record_event_change();

-- trigger events.events_record_change
ALTER TABLE events ENABLE ALWAYS TRIGGER events_record_change;

-- trigger events.events_refuse_new_id
CREATE TRIGGER events_refuse_new_id BEFORE UPDATE ON public.events FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION refuse_new_id();

-- trigger events.events_refuse_new_id
ALTER TABLE events ENABLE ALWAYS TRIGGER events_refuse_new_id;

-- trigger oauth_clients.oauth_clients_announce
CREATE TRIGGER oauth_clients_announce AFTER DELETE OR UPDATE OF disabled_at ON public.oauth_clients FOR EACH ROW EXECUTE FUNCTION announce_ended('client');

-- trigger oauth_clients.oauth_clients_announce
ALTER TABLE oauth_clients ENABLE ALWAYS TRIGGER oauth_clients_announce;

-- trigger oauth_consents.narrow_grants
CREATE TRIGGER narrow_grants AFTER UPDATE OF granted ON public.oauth_consents FOR EACH ROW WHEN ((NOT (old.granted <@ new.granted))) EXECUTE FUNCTION narrow_grants();

-- trigger oauth_consents.narrow_grants
ALTER TABLE oauth_consents ENABLE ALWAYS TRIGGER narrow_grants;

-- trigger oauth_consents.oauth_consents_tell_platform
CREATE TRIGGER oauth_consents_tell_platform AFTER INSERT OR DELETE OR UPDATE OF granted ON public.oauth_consents FOR EACH ROW EXECUTE FUNCTION tell_platform_of_consent();

-- trigger oauth_consents.oauth_consents_tell_platform
ALTER TABLE oauth_consents ENABLE TRIGGER oauth_consents_tell_platform;

-- trigger oauth_grants."Keep_end"
CREATE TRIGGER "Keep_end" AFTER DELETE ON public.oauth_grants FOR EACH ROW EXECUTE FUNCTION keep_end_of_access();

-- trigger oauth_grants."Keep_end"
ALTER TABLE oauth_grants ENABLE TRIGGER "Keep_end";

-- trigger oauth_grants."Note_end"
CREATE TRIGGER "Note_end" AFTER DELETE ON public.oauth_grants FOR EACH ROW EXECUTE FUNCTION note_ended_access();

-- trigger oauth_grants."Note_end"
ALTER TABLE oauth_grants ENABLE TRIGGER "Note_end";

-- trigger oauth_grants.note_changed_access
CREATE TRIGGER note_changed_access AFTER UPDATE OF payload, access_ends_at ON public.oauth_grants FOR EACH ROW WHEN (((old.payload IS DISTINCT FROM new.payload) OR (old.access_ends_at IS DISTINCT FROM new.access_ends_at))) EXECUTE FUNCTION note_changed_access();

-- trigger oauth_grants.note_changed_access
ALTER TABLE oauth_grants ENABLE TRIGGER note_changed_access;

-- trigger oauth_grants.oauth_grants_announce
CREATE TRIGGER oauth_grants_announce AFTER DELETE ON public.oauth_grants REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('grant');

-- trigger oauth_grants.oauth_grants_announce
ALTER TABLE oauth_grants ENABLE ALWAYS TRIGGER oauth_grants_announce;

-- trigger oauth_sessions.tell_clients_of_end
CREATE TRIGGER tell_clients_of_end AFTER DELETE ON public.oauth_sessions FOR EACH ROW WHEN (((old.clients <> '{}'::jsonb) AND (old.expires_at > now()))) EXECUTE FUNCTION tell_clients();

-- trigger oauth_sessions.tell_clients_of_end
ALTER TABLE oauth_sessions ENABLE ALWAYS TRIGGER tell_clients_of_end;

-- trigger oauth_sessions.tell_clients_of_loss
CREATE TRIGGER tell_clients_of_loss AFTER UPDATE OF clients ON public.oauth_sessions FOR EACH ROW WHEN ((NOT (new.clients @> old.clients))) EXECUTE FUNCTION tell_clients();

-- trigger oauth_sessions.tell_clients_of_loss
ALTER TABLE oauth_sessions ENABLE ALWAYS TRIGGER tell_clients_of_loss;

-- trigger oauth_tokens.announce_truncate
CREATE TRIGGER announce_truncate BEFORE TRUNCATE ON public.oauth_tokens FOR EACH STATEMENT EXECUTE FUNCTION announce_ended();

-- trigger oauth_tokens.announce_truncate
ALTER TABLE oauth_tokens ENABLE ALWAYS TRIGGER announce_truncate;

-- trigger oauth_tokens.keep_end_of_unused_access
CREATE TRIGGER keep_end_of_unused_access AFTER DELETE ON public.oauth_tokens FOR EACH ROW WHEN (((old.model = 'RefreshToken'::text) AND (old.consumed_at IS NULL))) EXECUTE FUNCTION keep_end_of_unused_access();

-- trigger oauth_tokens.keep_end_of_unused_access
ALTER TABLE oauth_tokens ENABLE TRIGGER keep_end_of_unused_access;

-- trigger oauth_tokens.note_new_access
CREATE TRIGGER note_new_access AFTER UPDATE OF consumed_at ON public.oauth_tokens FOR EACH ROW WHEN (((old.model = 'AuthorizationCode'::text) AND (old.consumed_at IS NULL) AND (new.consumed_at IS NOT NULL))) EXECUTE FUNCTION note_new_access();

-- trigger oauth_tokens.note_new_access
ALTER TABLE oauth_tokens ENABLE TRIGGER note_new_access;

-- trigger participants.participants_changed
CREATE TRIGGER participants_changed AFTER UPDATE ON public.participants FOR EACH ROW WHEN ((((((((old.user_id IS DISTINCT FROM new.user_id) OR (old.event_id IS DISTINCT FROM new.event_id)) OR (old.is_visible IS DISTINCT FROM new.is_visible)) OR (old.role IS DISTINCT FROM new.role)) OR (old.rsvp_status IS DISTINCT FROM new.rsvp_status)) OR (old.responded_at IS DISTINCT FROM new.responded_at)) OR (old.checked_in_at IS DISTINCT FROM new.checked_in_at))) EXECUTE FUNCTION participants_changed();

-- trigger participants.participants_changed
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_changed;

-- trigger participants.participants_derive
CREATE TRIGGER participants_derive BEFORE INSERT OR UPDATE ON public.participants FOR EACH ROW EXECUTE FUNCTION participants_derive();

-- trigger participants.participants_derive
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_derive;

-- trigger participants.participants_inserted
CREATE TRIGGER participants_inserted AFTER INSERT ON public.participants REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION participants_inserted();

-- trigger participants.participants_inserted
ALTER TABLE participants ENABLE TRIGGER participants_inserted;

-- trigger participants.participants_refuse_truncate
CREATE TRIGGER participants_refuse_truncate BEFORE TRUNCATE ON public.participants FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger participants.participants_refuse_truncate
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_refuse_truncate;

-- trigger participants.participants_removed
CREATE TRIGGER participants_removed AFTER DELETE ON public.participants FOR EACH ROW EXECUTE FUNCTION participants_changed();

-- trigger participants.participants_removed
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_removed;

-- trigger platform_total_deltas.platform_total_deltas_refuse_truncate
CREATE TRIGGER platform_total_deltas_refuse_truncate BEFORE TRUNCATE ON public.platform_total_deltas FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger platform_total_deltas.platform_total_deltas_refuse_truncate
ALTER TABLE platform_total_deltas ENABLE ALWAYS TRIGGER platform_total_deltas_refuse_truncate;

-- trigger platform_totals.platform_totals_refuse_truncate
CREATE TRIGGER platform_totals_refuse_truncate BEFORE TRUNCATE ON public.platform_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger platform_totals.platform_totals_refuse_truncate
ALTER TABLE platform_totals ENABLE ALWAYS TRIGGER platform_totals_refuse_truncate;

-- trigger user_achievements.user_achievements_changed
CREATE TRIGGER user_achievements_changed AFTER UPDATE OF user_id, achievement_id, progress, earned_at, pin_position, user_is_disabled ON public.user_achievements FOR EACH ROW EXECUTE FUNCTION user_achievements_changed();

-- trigger user_achievements.user_achievements_changed
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_changed;

-- trigger user_achievements.user_achievements_copy_user
CREATE TRIGGER user_achievements_copy_user BEFORE INSERT OR UPDATE OF user_id ON public.user_achievements FOR EACH ROW EXECUTE FUNCTION user_achievements_copy_user();

-- trigger user_achievements.user_achievements_copy_user
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_copy_user;

-- trigger user_achievements.user_achievements_inserted
CREATE TRIGGER user_achievements_inserted AFTER INSERT ON public.user_achievements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION user_achievements_inserted();

-- trigger user_achievements.user_achievements_inserted
ALTER TABLE user_achievements ENABLE TRIGGER user_achievements_inserted;

-- trigger user_achievements.user_achievements_refuse_truncate
CREATE TRIGGER user_achievements_refuse_truncate BEFORE TRUNCATE ON public.user_achievements FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger user_achievements.user_achievements_refuse_truncate
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_refuse_truncate;

-- trigger user_achievements.user_achievements_removed
CREATE TRIGGER user_achievements_removed AFTER DELETE ON public.user_achievements FOR EACH ROW EXECUTE FUNCTION user_achievements_changed();

-- trigger user_achievements.user_achievements_removed
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_removed;

-- trigger user_totals.user_totals_refuse_truncate
CREATE TRIGGER user_totals_refuse_truncate BEFORE TRUNCATE ON public.user_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();

-- trigger user_totals.user_totals_refuse_truncate
ALTER TABLE user_totals ENABLE ALWAYS TRIGGER user_totals_refuse_truncate;

-- trigger users.end_sign_ins
CREATE TRIGGER end_sign_ins AFTER UPDATE OF disabled_at, sign_ins_valid_since, password_hash, password_off_at, email ON public.users FOR EACH ROW WHEN ((((((old.disabled_at IS DISTINCT FROM new.disabled_at) OR (old.sign_ins_valid_since IS DISTINCT FROM new.sign_ins_valid_since)) OR (old.password_hash IS DISTINCT FROM new.password_hash)) OR (old.password_off_at IS DISTINCT FROM new.password_off_at)) OR (old.email IS DISTINCT FROM new.email))) EXECUTE FUNCTION end_sign_ins();

-- trigger users.end_sign_ins
ALTER TABLE users ENABLE ALWAYS TRIGGER end_sign_ins;

-- trigger users.users_changed
CREATE TRIGGER users_changed AFTER UPDATE OF username, first_name, last_name, stored_display_name, bio, profile_picture, created_at, disabled_at ON public.users FOR EACH ROW EXECUTE FUNCTION users_changed();

-- trigger users.users_changed
ALTER TABLE users ENABLE ALWAYS TRIGGER users_changed;

-- trigger users.users_derive
CREATE TRIGGER users_derive BEFORE INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION users_derive();

-- trigger users.users_derive
ALTER TABLE users ENABLE ALWAYS TRIGGER users_derive;

-- trigger users.users_erased_are_kept
CREATE TRIGGER users_erased_are_kept BEFORE DELETE ON public.users FOR EACH ROW WHEN ((old.erased_at IS NOT NULL)) EXECUTE FUNCTION users_refuse_return();

-- trigger users.users_erased_are_kept
ALTER TABLE users ENABLE ALWAYS TRIGGER users_erased_are_kept;

-- trigger users.users_inserted
CREATE TRIGGER users_inserted AFTER INSERT ON public.users REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION users_inserted();

-- trigger users.users_inserted
ALTER TABLE users ENABLE TRIGGER users_inserted;

-- trigger users.users_refuse_new_id
CREATE TRIGGER users_refuse_new_id BEFORE UPDATE ON public.users FOR EACH ROW WHEN ((old.id <> new.id)) EXECUTE FUNCTION refuse_new_id();

-- trigger users.users_refuse_new_id
ALTER TABLE users ENABLE ALWAYS TRIGGER users_refuse_new_id;

-- trigger users.users_removed
CREATE TRIGGER users_removed AFTER DELETE ON public.users FOR EACH ROW EXECUTE FUNCTION users_changed();

-- trigger users.users_removed
ALTER TABLE users ENABLE ALWAYS TRIGGER users_removed;

-- trigger users.users_stay_erased
CREATE TRIGGER users_stay_erased BEFORE UPDATE ON public.users FOR EACH ROW WHEN (((old.erased_at IS NOT NULL) AND (new.erased_at IS DISTINCT FROM old.erased_at))) EXECUTE FUNCTION users_refuse_return();

-- trigger users.users_stay_erased
ALTER TABLE users ENABLE ALWAYS TRIGGER users_stay_erased;
