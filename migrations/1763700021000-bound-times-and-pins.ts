import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Trigger functions of earlier migrations, and what they call: they find their tables whoever writes, by whatever path. */
const WITHOUT_SEARCH_PATH = [
  'announce_revocations',
  'announce_truncate',
  'api_keys_announce',
  'auth_events_refuse',
  'end_sign_ins',
  'oauth_clients_announce_deleted',
  'oauth_clients_announce_disabled',
  'oauth_grants_announce',
  'users_announce_disabled',
  'users_move_sign_ins_valid_since',
];

const forEachOfThem = (action: string) => `
DO $$ DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace
      AND proname IN (${WITHOUT_SEARCH_PATH.map((name) => `'${name}'`).join(', ')}) LOOP
    EXECUTE format('ALTER FUNCTION %s ${action}', f);
  END LOOP;
END $$`;

/** Columns of a moment. Those of events leave a day on either side, for the local time of their zone. */
const MOMENTS: Readonly<Record<string, readonly string[]>> = {
  users: ['created_at', 'disabled_at'],
  events: ['starts_at', 'ends_at', 'created_at', 'updated_at', 'cancelled_at', 'deleted_at'],
  participants: ['responded_at', 'checked_in_at'],
  connections: ['requested_at', 'connected_at'],
  achievements: ['retired_at'],
  user_achievements: ['earned_at'],
};

const timeChecks = Object.entries(MOMENTS).map(([table, columns]) => ({
  table,
  checks: columns.map((column) => ({
    name: `${table}_${column}_range_check`,
    sql: `is_showable_time(${column}, ${table === 'events' && ['starts_at', 'ends_at'].includes(column) ? `'1 day'` : `'0'`})`,
  })),
}));

/**
 * What a writer could store and the API could not show: times outside the years 1 to 9999. Pins are unique where there are
 * any. Migrations that older programs can live with say so in `compatible_migrations`.
 */
export class BoundTimesAndPins1763700021000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Whether the API can show the moment, and its local time where \`margin\` is a day: a finite one of the years 1 to 9999.
CREATE FUNCTION is_showable_time(value timestamptz, margin interval) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN value >= timestamptz '0001-01-01 00:00:00Z' + margin AND value < timestamptz '9999-12-31 24:00:00Z' - margin;

-- What an event's card is made of. A constraint would come too late: of an endless time the card is NULL, and that is refused first.
CREATE FUNCTION events_refuse_endless() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  endless text := CASE WHEN NOT isfinite(NEW.starts_at) THEN 'starts_at' WHEN NOT isfinite(NEW.created_at) THEN 'created_at'
    ELSE 'updated_at' END;
BEGIN
  RAISE check_violation USING MESSAGE = format('%s of event %s has no end: it is to be a time of the years 1 to 9999', endless, NEW.id),
    TABLE = 'events', COLUMN = endless, CONSTRAINT = format('events_%s_range_check', endless);
END $$;
CREATE TRIGGER events_refuse_endless BEFORE INSERT OR UPDATE ON events FOR EACH ROW
  WHEN (NOT (isfinite(NEW.starts_at) AND isfinite(NEW.created_at) AND isfinite(NEW.updated_at)))
  EXECUTE FUNCTION events_refuse_endless();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_refuse_endless;

-- local_time, in UTC where the system knows the time zone no more. Slow: for those who met such a zone.
CREATE FUNCTION local_time_or_utc(value timestamptz, zone text) RETURNS text
  LANGUAGE plpgsql STABLE STRICT SET search_path = public, pg_temp AS $$
BEGIN
  RETURN local_time(value, zone);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN api_time(value);
END $$;

ALTER TABLE user_achievements DROP CONSTRAINT user_achievements_pin_key;
CREATE UNIQUE INDEX user_achievements_pin_key ON user_achievements (user_id, pin_position) WHERE pin_position IS NOT NULL;

-- Names of migrations over which programs that do not know them go on working.
CREATE TABLE compatible_migrations (name text PRIMARY KEY);
`);
    for (const { table, checks } of timeChecks) {
      await runner.query(
        `ALTER TABLE ${table} ${checks.map(({ name, sql }) => `ADD CONSTRAINT ${name} CHECK (${sql}) NOT VALID`).join(', ')}`,
      );
    }
    await runner.query(forEachOfThem('SET search_path = public, pg_temp'));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(forEachOfThem('RESET search_path'));
    for (const { table, checks } of timeChecks) {
      await runner.query(
        `ALTER TABLE ${table} ${checks.map(({ name }) => `DROP CONSTRAINT ${name}`).join(', ')}`,
      );
    }
    await runner.query(`
DROP FUNCTION events_refuse_endless CASCADE;
DROP TABLE compatible_migrations;
DROP INDEX user_achievements_pin_key;
ALTER TABLE user_achievements ADD CONSTRAINT user_achievements_pin_key UNIQUE (user_id, pin_position);
DROP FUNCTION is_showable_time, local_time_or_utc;
`);
  }
}
