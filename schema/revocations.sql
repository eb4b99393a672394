CREATE OR REPLACE FUNCTION announce_revocations(kind text, ids text[]) RETURNS void
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF cardinality(ids) > 100 THEN
    PERFORM pg_notify('revocations', 'all');
  ELSIF cardinality(ids) > 0 THEN
    PERFORM pg_notify('revocations', kind || ':' || id) FROM unnest(ids) id;
  END IF;
END $$;

-- Announces changed or deleted rows, as the kind that the trigger names; TRUNCATE announces `all`.
CREATE OR REPLACE FUNCTION announce_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
END $$;

CREATE OR REPLACE TRIGGER api_keys_announce_update AFTER UPDATE ON api_keys REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('key');
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER api_keys_announce_update;

CREATE OR REPLACE TRIGGER api_keys_announce_delete AFTER DELETE ON api_keys REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('key');
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER api_keys_announce_delete;

CREATE OR REPLACE TRIGGER announce_truncate BEFORE TRUNCATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION announce_ended();
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER announce_truncate;

CREATE OR REPLACE TRIGGER oauth_grants_announce AFTER DELETE ON oauth_grants REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION announce_ended('grant');
ALTER TABLE oauth_grants ENABLE ALWAYS TRIGGER oauth_grants_announce;

CREATE OR REPLACE TRIGGER oauth_clients_announce AFTER DELETE OR UPDATE OF disabled_at ON oauth_clients
  FOR EACH ROW EXECUTE FUNCTION announce_ended('client');
ALTER TABLE oauth_clients ENABLE ALWAYS TRIGGER oauth_clients_announce;

-- This trigger also covers oauth_clients and oauth_grants: TRUNCATE of either table includes oauth_tokens.
CREATE OR REPLACE TRIGGER announce_truncate BEFORE TRUNCATE ON oauth_tokens
  FOR EACH STATEMENT EXECUTE FUNCTION announce_ended();
ALTER TABLE oauth_tokens ENABLE ALWAYS TRIGGER announce_truncate;
