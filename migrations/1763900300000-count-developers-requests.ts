import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Hourly counts of each developed app's requests by result, and the durations of the last ones. */
export class CountDevelopersRequests1763900300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE developer_requests ADD COLUMN duration_ms integer;
CREATE TABLE developer_request_counts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client_id text REFERENCES oauth_clients (id) ON DELETE CASCADE,
  key_id text REFERENCES api_keys (id) ON DELETE CASCADE,
  -- Start of the hour.
  hour timestamptz NOT NULL,
  method text NOT NULL CHECK (octet_length(method) <= 20),
  route text NOT NULL CHECK (octet_length(route) <= 100),
  status smallint NOT NULL,
  error text CHECK (octet_length(error) <= 64),
  requests bigint NOT NULL,
  CONSTRAINT developer_request_counts_app_check CHECK (num_nonnulls(client_id, key_id) = 1)
);
CREATE UNIQUE INDEX developer_request_counts_once_idx
  ON developer_request_counts (client_id, key_id, hour, method, route, status, error) NULLS NOT DISTINCT;
CREATE INDEX developer_request_counts_key_id_idx ON developer_request_counts (key_id, hour) WHERE key_id IS NOT NULL;
CREATE INDEX developer_request_counts_hour_idx ON developer_request_counts (hour);
INSERT INTO compatible_migrations (name) VALUES ('CountDevelopersRequests1763900300000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'CountDevelopersRequests1763900300000';
DROP TABLE developer_request_counts;
ALTER TABLE developer_requests DROP COLUMN duration_ms;
`);
  }
}
