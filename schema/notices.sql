-- Stores one notice per event, in its transaction: a record for the platform, and an email if the member has an address and accepts emails.
CREATE OR REPLACE FUNCTION give_notice(of_member bigint, of_notice text, about_id text, about_name text) RETURNS void
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO platform_changes (type, user_id, by_id, notice, name) VALUES ('notice', of_member, about_id, of_notice, about_name);
  INSERT INTO notice_emails (user_id, notice, name, is_bulk)
    SELECT u.id, of_notice, about_name, of_notice LIKE '%.ending' FROM users u
    WHERE u.id = of_member AND u.email IS NOT NULL AND u.disabled_at IS NULL
      AND NOT EXISTS (SELECT FROM muted_notices m WHERE m.user_id = u.id AND m.notice = of_notice);
END $$;

CREATE OR REPLACE FUNCTION give_notice_of_event() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM give_notice(NEW.user_id, NEW.type, COALESCE(NEW.details->>'replaced_by', NEW.key_id, NEW.client_id), COALESCE(
    (SELECT name FROM api_keys WHERE id = NEW.key_id),
    (SELECT name FROM oauth_clients WHERE id = NEW.client_id),
    (SELECT name FROM calendar_links WHERE id = (NEW.details->>'link')::bigint),
    (SELECT name FROM passkeys WHERE id = (NEW.details->>'passkey')::bigint)));
  RETURN NULL;
END $$;

-- The same list is NOTICES in src/audit/notices.ts; consent.granted comes from oauth_consents. As `system`, only the demo creates them.
CREATE OR REPLACE TRIGGER auth_events_give_notice AFTER INSERT ON auth_events FOR EACH ROW
  WHEN (NEW.user_id IS NOT NULL AND (NEW.type IN ('key.ending', 'access.ending') OR NEW.actor <> 'system' AND NEW.type IN (
    'key.created', 'key.rotated', 'calendar_link.created', 'client.reviewed', 'passkey.added', 'passkey.removed', 'user.password_set')))
  EXECUTE FUNCTION give_notice_of_event();

-- Records, once per key, that a key in use ends within 7 days. A concurrent call skips locked keys.
CREATE OR REPLACE FUNCTION report_ending_keys(most integer) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
END $$;

-- Records, once per chosen end, that access in use ends within 7 days. Returns the last of the `most` grants read, null at the end.
CREATE OR REPLACE FUNCTION report_ending_access(most integer, after jsonb) RETURNS jsonb
  LANGUAGE plpgsql SET search_path = public, pg_temp SET enable_sort = off AS $$
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
END $$;
