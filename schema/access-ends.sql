-- The actor that ends access in this transaction, as set by `endedBy` in src/database/sql.ts.
CREATE OR REPLACE FUNCTION access_ended_by() RETURNS text LANGUAGE sql STABLE
  RETURN CASE current_setting('public_user_api.ended_by', true) WHEN 'user' THEN 'member' WHEN 'client' THEN 'app' ELSE 'platform' END;

-- When and why access ended: the earliest of the token's end, the grant's end and the end that the member chose decides.
CREATE OR REPLACE FUNCTION end_of_access(token_end timestamptz, grant_end timestamptz, chosen_end timestamptz,
  OUT ended_at timestamptz, OUT reason text) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT LEAST(token_end, grant_end, chosen_end, now()), CASE
    WHEN LEAST(token_end, grant_end, chosen_end) > now() THEN access_ended_by()
    WHEN chosen_end <= LEAST(token_end, grant_end, chosen_end) THEN 'expired' ELSE 'unused' END
$$;

-- Stores why access ended. The error to an app that sends its last refresh token, or the previous one, contains this reason.
CREATE OR REPLACE FUNCTION keep_end_of_access() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO ended_refresh_tokens (key, client_id, ended_at, reason)
    SELECT t.key, OLD.client_id, e.ended_at, e.reason
    FROM oauth_tokens t CROSS JOIN LATERAL end_of_access(t.expires_at, OLD.expires_at, OLD.access_ends_at) e
    WHERE t.grant_id = OLD.id AND t.model = 'RefreshToken' AND (t.consumed_at IS NULL OR t.successor IS NOT NULL)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

-- Runs before the trigger that deletes the grant's tokens (RI_…): PostgreSQL runs triggers in the order of their names.
CREATE OR REPLACE TRIGGER "Keep_end" AFTER DELETE ON oauth_grants FOR EACH ROW EXECUTE FUNCTION keep_end_of_access();

-- A token that expires without use is deleted before its grant.
CREATE OR REPLACE FUNCTION keep_end_of_unused_access() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO ended_refresh_tokens (key, client_id, ended_at, reason)
    SELECT OLD.key, g.client_id, e.ended_at, e.reason
    FROM oauth_grants g CROSS JOIN LATERAL end_of_access(OLD.expires_at, g.expires_at, g.access_ends_at) e
    WHERE g.id = OLD.grant_id
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER keep_end_of_unused_access AFTER DELETE ON oauth_tokens FOR EACH ROW
  WHEN (OLD.model = 'RefreshToken' AND OLD.consumed_at IS NULL) EXECUTE FUNCTION keep_end_of_unused_access();
