import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * PostgreSQL inlines a function of SQL only where it is no stricter than what it calls: api_time and json_text were declared IMMUTABLE,
 * as stored columns need them, over functions that are STABLE, so each call of theirs started an executor of its own: 2 to 4 us for
 * every time and text of every item. Stored columns keep those functions, under other names; queries get STABLE ones.
 *
 * And a share in percent is divided as integers: a third of what it costs as numerics, with the same result.
 */
export class InlineFunctionsOfLists1763700122000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER FUNCTION api_time(timestamptz) RENAME TO stored_api_time;
CREATE FUNCTION api_time(value timestamptz) RETURNS text
  LANGUAGE sql STABLE STRICT PARALLEL SAFE
  RETURN to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS');

ALTER FUNCTION json_text(text) RENAME TO stored_json_text;
CREATE FUNCTION json_text(value text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN COALESCE(to_json(value)::text, 'null');

CREATE OR REPLACE FUNCTION percentage(part bigint, whole bigint) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN whole = 0 THEN 0.00 ELSE 0.01 * ((20000 * part + whole) / (2 * whole)) END;

INSERT INTO compatible_migrations (name) VALUES ('InlineFunctionsOfLists1763700122000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'InlineFunctionsOfLists1763700122000';

CREATE OR REPLACE FUNCTION percentage(part bigint, whole bigint) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN whole = 0 THEN 0.00 ELSE round(100.0 * part / whole, 2) END;

DROP FUNCTION json_text(text);
ALTER FUNCTION stored_json_text(text) RENAME TO json_text;
DROP FUNCTION api_time(timestamptz);
ALTER FUNCTION stored_api_time(timestamptz) RENAME TO api_time`);
  }
}
