import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The functions that earlier migrations created; their triggers call them. */
const FUNCTIONS = `achievements_keep_count_on_replication, announce_revocations, announce_truncate, api_keys_announce, api_time,
auth_events_refuse, auth_events_refuse_change, coalesce_changes, committed_after, connections_copy_peer,
copy_names, count_achievements, count_active_users, count_attendees, count_connections, count_events,
count_new_achievements, count_new_connections, count_new_participants, count_new_users, end_calendar_links,
end_password_resets, end_sign_ins, event_location, event_visible, events_copy_on_replication, events_derive,
events_refuse_endless, fold_case, fold_totals, imported_hash_kind, is_showable_time, json_text, last_mark_before,
local_time, local_time_or_utc, mark_change, mark_event_change, narrow_grants, oauth_clients_announce_deleted,
oauth_clients_announce_disabled, oauth_clients_end_with_owner, oauth_grants_announce, participants_copy_event,
percentage, rarity_tier, record_achievement_change, record_connection_change, record_earning_change,
record_event_change, record_new_connections, record_new_earnings, record_new_participants,
record_participant_change, record_pins, record_user_change, refuse_new_id, refuse_truncate, shown_name,
stored_api_time, stored_json_text, take_change_mark, tell_platform_of_consent, tell_platform_of_sign_in,
user_achievements_copy_user, user_card, users_announce_disabled, users_bump_version, users_copy_on_replication,
users_derive, users_move_sign_ins_valid_since, users_queue_names, was_hidden`;

/**
 * From here on, functions and triggers are in schema/, which is applied after the migrations whenever it changes. The first versions stay
 * here for a downgrade.
 *
 * The owner runs this table's statements, so no other role may write to it. The previous version still works.
 */
export class RepeatFunctions1763802100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE schema_versions (
  digest text PRIMARY KEY,
  -- Each statement by the name with which DROP removes its object.
  objects jsonb NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE schema_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY schema_versions_read ON schema_versions FOR SELECT USING (true);

WITH functions AS (
  SELECT oid, proname FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace AND proname = ANY ('{${FUNCTIONS}}')
)
INSERT INTO schema_versions (digest, objects) SELECT 'migrations', jsonb_object_agg(name, statement) FROM (
  SELECT 'FUNCTION ' || proname AS name, pg_get_functiondef(oid) AS statement FROM functions
  UNION ALL
  SELECT format('TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass), format('%s; ALTER TABLE %s %s TRIGGER %I', pg_get_triggerdef(t.oid),
    t.tgrelid::regclass, CASE t.tgenabled WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE' END, t.tgname)
  FROM pg_trigger t JOIN functions f ON f.oid = t.tgfoid
) made;

INSERT INTO compatible_migrations (name) VALUES ('RepeatFunctions1763802100000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'RepeatFunctions1763802100000';

DO $$
DECLARE
  statement text;
BEGIN
  PERFORM set_config('check_function_bodies', 'off', true);
  FOR statement IN
    SELECT DISTINCT 'DROP ' || replace(name, 'TRIGGER', 'TRIGGER IF EXISTS') FROM schema_versions, jsonb_object_keys(objects) name
      WHERE name LIKE 'TRIGGER %'
    UNION ALL SELECT 'DROP FUNCTION IF EXISTS ' || string_agg(DISTINCT replace(name, 'FUNCTION ', ''), ', ')
      FROM schema_versions v, jsonb_object_keys(objects) name WHERE name LIKE 'FUNCTION %'
        AND NOT EXISTS (SELECT FROM schema_versions f WHERE f.digest = 'migrations' AND f.objects ? name) HAVING count(*) > 0
  LOOP EXECUTE statement; END LOOP;
  FOR statement IN SELECT value FROM schema_versions, jsonb_each_text(objects) WHERE digest = 'migrations' ORDER BY key
  LOOP EXECUTE statement; END LOOP;
END $$;

DROP TABLE schema_versions`);
  }
}
