import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Data of `/status`: probes of the instances, and operators' reports of incidents. */
export class KeepStatus1763900350000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE status_hours (
  hour timestamptz PRIMARY KEY,
  latencies smallint[] NOT NULL CHECK (cardinality(latencies) = 60)
);
CREATE TABLE incidents (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  title text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 200),
  state text NOT NULL CHECK (state IN ('investigating', 'identified', 'monitoring', 'resolved')),
  updates jsonb NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX incidents_resolved_idx ON incidents (updated_at) WHERE state = 'resolved';
INSERT INTO compatible_migrations (name) VALUES ('KeepStatus1763900350000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'KeepStatus1763900350000';
DROP TABLE incidents;
DROP TABLE status_hours;
`);
  }
}
