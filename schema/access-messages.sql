CREATE OR REPLACE FUNCTION granted_scopes(payload jsonb) RETURNS text[] LANGUAGE sql STABLE
  RETURN ARRAY(SELECT DISTINCT scope FROM jsonb_each_text(payload->'resources') resource, unnest(string_to_array(resource.value, ' ')) scope
    ORDER BY scope);

-- The access that an app has to a member's data now, through all grants except one.
CREATE OR REPLACE FUNCTION access_of(of_member bigint, of_client text, other_than text,
  OUT is_live boolean, OUT scopes text[], OUT ends_at timestamptz) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  WITH live AS (
    SELECT granted_scopes(g.payload) AS scopes, g.access_ends_at FROM oauth_grants g
    WHERE g.user_id = of_member AND g.client_id = of_client AND g.id IS DISTINCT FROM other_than
      AND LEAST(g.expires_at, g.access_ends_at) > now()
      AND EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id AND t.model <> 'AuthorizationCode' AND t.expires_at > now())
  ) SELECT EXISTS (SELECT FROM live), ARRAY(SELECT DISTINCT scope FROM live, unnest(live.scopes) scope ORDER BY scope),
    (SELECT CASE WHEN bool_and(access_ends_at IS NOT NULL) THEN max(access_ends_at) END FROM live)
$$;

-- Whether a grant's code was redeemed. If not, the sweeper sets the grant's end of access to its start (END_GRANTS in oauth.entity.ts).
CREATE OR REPLACE FUNCTION gave_access(of_grant text, created_at timestamptz, access_ends_at timestamptz) RETURNS boolean
  LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT (access_ends_at > created_at) IS NOT FALSE AND NOT EXISTS (
    SELECT FROM oauth_tokens t WHERE t.grant_id = of_grant AND t.model = 'AuthorizationCode' AND t.consumed_at IS NULL)
$$;

-- Runs at each code exchange: PL/pgSQL keeps the plan, and qualified names make SET search_path unnecessary.
CREATE OR REPLACE FUNCTION is_told_of_access(of_client text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM public.webhook_endpoints e WHERE e.client_id = of_client AND e.disabled_at IS NULL
    AND e.types && '{access.changed,access.ended}');
END $$;

-- tell_apps_of_access turns these notes into messages a moment later, when the remaining grants of the member and app are known.
CREATE OR REPLACE FUNCTION note_ended_access() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF is_told_of_access(OLD.client_id) AND gave_access(OLD.id, OLD.created_at, OLD.access_ends_at) THEN
    INSERT INTO access_changes (user_id, client_id, reason, ended_at, scopes, access_ends_at)
      SELECT OLD.user_id, OLD.client_id, e.reason, e.ended_at, granted_scopes(OLD.payload), OLD.access_ends_at
      FROM end_of_access('infinity', OLD.expires_at, OLD.access_ends_at) e;
  END IF;
  RETURN NULL;
END $$;

-- The name, like "Keep_end", sorts before the trigger that deletes the grant's tokens.
CREATE OR REPLACE TRIGGER "Note_end" AFTER DELETE ON oauth_grants FOR EACH ROW EXECUTE FUNCTION note_ended_access();

CREATE OR REPLACE FUNCTION note_changed_access() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  -- Also before the code is redeemed: the code exchange may have read the old grant and reported it to the app.
  IF (NEW.access_ends_at > NEW.created_at) IS NOT FALSE AND is_told_of_access(NEW.client_id) THEN
    INSERT INTO access_changes (user_id, client_id) VALUES (NEW.user_id, NEW.client_id);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER note_changed_access AFTER UPDATE OF payload, access_ends_at ON oauth_grants FOR EACH ROW
  WHEN ((OLD.payload, OLD.access_ends_at) IS DISTINCT FROM (NEW.payload, NEW.access_ends_at)) EXECUTE FUNCTION note_changed_access();

-- Another sign-in of the member in the app may give the app more access.
CREATE OR REPLACE FUNCTION note_new_access() RETURNS trigger LANGUAGE plpgsql AS $$
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
END $$;

CREATE OR REPLACE TRIGGER note_new_access AFTER UPDATE OF consumed_at ON oauth_tokens FOR EACH ROW
  WHEN (OLD.model = 'AuthorizationCode' AND OLD.consumed_at IS NULL AND NEW.consumed_at IS NOT NULL) EXECUTE FUNCTION note_new_access();

CREATE OR REPLACE FUNCTION tell_endpoints(of_client text, of_key text, of_member bigint, of_type text, of_scopes text[], of_end timestamptz,
  of_reason text) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  made integer;
BEGIN
  INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, details)
    SELECT e.id, of_type, of_member, 0, now(), jsonb_build_object('scopes', of_scopes, 'access_ends_at', api_time(of_end), 'reason', of_reason)
    FROM webhook_endpoints e
    WHERE (e.client_id = of_client OR e.key_id = of_key) AND e.disabled_at IS NULL AND of_type = ANY (e.types) ORDER BY e.id;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;

-- Turns notes into messages, one per member and app; only one caller runs at a time. Access ends when the last grant is deleted.
CREATE OR REPLACE FUNCTION tell_apps_of_access(most integer) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
END $$;

-- Whether the app's access was used after `since` and ends with this grant, since no other grant of the member lasts longer.
CREATE OR REPLACE FUNCTION ends_in_use(of_grant text, since timestamptz) RETURNS boolean
  LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM oauth_grants g WHERE g.id = of_grant
    AND g.expires_at > now() AND g.access_ends_at > g.created_at + interval '1 hour' -- not one-time access
    AND EXISTS (SELECT FROM oauth_grants o JOIN oauth_grant_usage s ON s.grant_id = o.id
      WHERE o.user_id = g.user_id AND o.client_id = g.client_id AND s.last_used_at > since)
    AND NOT EXISTS (SELECT FROM oauth_grants o WHERE o.user_id = g.user_id AND o.client_id = g.client_id AND o.expires_at > now()
      AND (o.access_ends_at IS NULL OR (o.access_ends_at, o.id) > (g.access_ends_at, g.id)))
    AND EXISTS (SELECT FROM oauth_clients c WHERE c.id = g.client_id AND c.disabled_at IS NULL)
    AND EXISTS (SELECT FROM users u WHERE u.id = g.user_id AND u.disabled_at IS NULL));
END $$;

-- Notifies apps, once per grant, that access in use ends within 7 days. Pages through the grants as report_ending_access does.
CREATE OR REPLACE FUNCTION tell_of_ending_access(most integer, after jsonb) RETURNS jsonb
  LANGUAGE plpgsql SET search_path = public, pg_temp SET enable_sort = off AS $$
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
END $$;

-- Notifies a key's endpoints twice: when the key ends within 7 days, and when it has ended.
CREATE OR REPLACE FUNCTION tell_of_ending_keys(most integer) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
END $$;
