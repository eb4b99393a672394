import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The audit trail holds nothing that a caller sent, is bounded row by row, and can be swept, but for what is young.
 * Refusals that concern no member stand in a ring of 10,000 instead.
 */
export class BoundAuditTrail1763700011000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TRIGGER auth_events_are_insert_only ON auth_events;
DROP FUNCTION auth_events_are_insert_only;

-- What was recorded until now in the words of whoever was refused.
UPDATE auth_events SET details = details - 'reason' - 'origin'
  WHERE type IN ('token.refused', 'authorization.refused', 'key.exposed') AND details ?| ARRAY['reason', 'origin'];
UPDATE auth_events SET details = '{"clipped": true}' WHERE octet_length(details::text) > 2000;

ALTER TABLE auth_events ADD CONSTRAINT auth_events_size_check CHECK (
  octet_length(type) <= 64 AND octet_length(client_id) <= 100 AND octet_length(key_id) <= 100
  AND octet_length(error_id) <= 64 AND octet_length(details::text) <= 2000
);
CREATE INDEX auth_events_client_id_idx ON auth_events (client_id, occurred_at DESC) WHERE client_id IS NOT NULL;
CREATE INDEX auth_events_key_id_idx ON auth_events (key_id, occurred_at DESC) WHERE key_id IS NOT NULL;
CREATE INDEX auth_events_error_id_idx ON auth_events (error_id) WHERE error_id IS NOT NULL;

-- Whoever gets hold of the server's own role cannot take away fresh traces. ALWAYS: session_replication_role is no way around.
CREATE FUNCTION auth_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'auth_events: % is refused; rows may be deleted when they are 7 days old', TG_OP;
END $$;
CREATE TRIGGER auth_events_are_never_changed BEFORE UPDATE OR TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_refuse();
CREATE TRIGGER auth_events_stay_a_week BEFORE DELETE ON auth_events FOR EACH ROW
  WHEN (OLD.occurred_at > now() - interval '7 days') EXECUTE FUNCTION auth_events_refuse();
ALTER TABLE auth_events ENABLE ALWAYS TRIGGER auth_events_are_never_changed,
  ENABLE ALWAYS TRIGGER auth_events_stay_a_week;

CREATE SEQUENCE oauth_refusals_place AS smallint MINVALUE 0 MAXVALUE 9999 CYCLE;
CREATE TABLE oauth_refusals (
  place smallint PRIMARY KEY DEFAULT nextval('oauth_refusals_place') CHECK (place BETWEEN 0 AND 9999),
  occurred_at timestamptz NOT NULL DEFAULT now(),
  error_id text NOT NULL CHECK (octet_length(error_id) <= 64),
  route text NOT NULL CHECK (octet_length(route) <= 100),
  error text NOT NULL CHECK (octet_length(error) <= 64),
  reason text NOT NULL CHECK (octet_length(reason) <= 64),
  client_id text CHECK (octet_length(client_id) <= 100),
  redirect_uri text CHECK (octet_length(redirect_uri) <= 200),
  ip inet
) WITH (fillfactor = 50);
ALTER SEQUENCE oauth_refusals_place OWNED BY oauth_refusals.place;
CREATE INDEX oauth_refusals_error_id_idx ON oauth_refusals (error_id);
CREATE INDEX oauth_refusals_occurred_at_idx ON oauth_refusals (occurred_at);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP TABLE oauth_refusals;
DROP TRIGGER auth_events_are_never_changed ON auth_events;
DROP TRIGGER auth_events_stay_a_week ON auth_events;
DROP FUNCTION auth_events_refuse;
DROP INDEX auth_events_client_id_idx;
DROP INDEX auth_events_key_id_idx;
DROP INDEX auth_events_error_id_idx;
ALTER TABLE auth_events DROP CONSTRAINT auth_events_size_check;

CREATE FUNCTION auth_events_are_insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'auth_events is insert only';
END $$;
CREATE TRIGGER auth_events_are_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON auth_events
  FOR EACH STATEMENT EXECUTE FUNCTION auth_events_are_insert_only();
`);
  }
}
