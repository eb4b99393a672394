import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Webhooks (docs/developers/webhooks.md): who is told of changes, and every message that is or was to be sent. An older program sends none, and
 * ends what belongs to a credential by the same foreign keys.
 */
export class CreateWebhooks1763700090000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE webhook_endpoints (
  id text PRIMARY KEY,
  url text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2000),
  types text[] NOT NULL CHECK (cardinality(types) > 0),
  -- Whose eyes it sees members with; neither: the platform's.
  client_id text REFERENCES oauth_clients (id) ON DELETE CASCADE,
  key_id text REFERENCES api_keys (id) ON DELETE CASCADE,
  -- Encrypted, as the next.
  secret bytea NOT NULL,
  -- Signs, too, until then.
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Since when no message was taken.
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_because text CHECK (disabled_because IN ('admin', 'failing')),
  CONSTRAINT webhook_endpoints_credential_check CHECK (num_nonnulls(client_id, key_id) <= 1),
  CONSTRAINT webhook_endpoints_previous_secret_check CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
  CONSTRAINT webhook_endpoints_disabled_check CHECK ((disabled_at IS NULL) = (disabled_because IS NULL))
);
CREATE INDEX webhook_endpoints_client_id_idx ON webhook_endpoints (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX webhook_endpoints_key_id_idx ON webhook_endpoints (key_id) WHERE key_id IS NOT NULL;

CREATE TABLE webhook_deliveries (
  -- The order in which an endpoint's messages are sent: that of the changes.
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- What receivers know the message by.
  id uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT webhook_deliveries_id_key UNIQUE,
  endpoint_id text NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  type text NOT NULL,
  -- The member whose lists it is about; 0: of nobody alone. No foreign key: an erased member's rows are deleted by hand.
  user_id bigint NOT NULL,
  -- Of the event, connection, achievement or profile; 0 of a test.
  thing_id bigint NOT NULL,
  changed_at timestamptz NOT NULL,
  -- withheld: the credential might not know of it any more. dead: it was given up.
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'dead', 'withheld')),
  -- That have ended.
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  -- An instance is sending it; when it has not said how that went by then, it is anybody's again.
  leased_until timestamptz,
  attempted_at timestamptz,
  -- Of the last attempt: what was answered, or why nothing was.
  response_status integer,
  error text CHECK (char_length(error) <= 200),
  ended_at timestamptz,
  CONSTRAINT webhook_deliveries_ended_check CHECK ((status = 'pending') = (ended_at IS NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (endpoint_id, due_at, sequence) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_order_idx ON webhook_deliveries (endpoint_id, user_id, sequence) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_leased_idx ON webhook_deliveries (endpoint_id) WHERE leased_until IS NOT NULL;
CREATE INDEX webhook_deliveries_endpoint_idx ON webhook_deliveries (endpoint_id, sequence);
CREATE INDEX webhook_deliveries_user_idx ON webhook_deliveries (user_id) WHERE user_id <> 0;
CREATE INDEX webhook_deliveries_ended_at_idx ON webhook_deliveries (ended_at) WHERE status <> 'pending';

-- How far changes were told to endpoints.
ALTER TABLE change_places DROP CONSTRAINT change_places_name_check;
ALTER TABLE change_places ADD CONSTRAINT change_places_name_check CHECK (name IN ('coalesced', 'swept', 'told'));
INSERT INTO change_places (name) VALUES ('told');
INSERT INTO compatible_migrations (name) VALUES ('CreateWebhooks1763700090000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'CreateWebhooks1763700090000';
DELETE FROM change_places WHERE name = 'told';
ALTER TABLE change_places DROP CONSTRAINT change_places_name_check;
ALTER TABLE change_places ADD CONSTRAINT change_places_name_check CHECK (name IN ('coalesced', 'swept'));
DROP TABLE webhook_deliveries, webhook_endpoints;
`);
  }
}
