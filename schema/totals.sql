-- Compacts at most `most` deltas of each kind into counters, one statement per kind, so that the sum is the same in every snapshot.
CREATE OR REPLACE FUNCTION fold_totals(most integer) RETURNS integer
  LANGUAGE plpgsql SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  folded integer := 0;
  n integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013003) THEN RETURN 0; END IF;
  -- Custom plans: a plan made for empty tables could search all rows for deltas.

  WITH deltas AS (
    DELETE FROM user_totals WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM user_totals WHERE is_delta ORDER BY user_id LIMIT most))
      RETURNING user_id, events_count, connections_count, achievements_count
  ), bases AS (
    DELETE FROM user_totals WHERE NOT is_delta AND user_id = ANY (ARRAY(SELECT DISTINCT user_id FROM deltas))
      RETURNING user_id, events_count, connections_count, achievements_count
  ), sums AS (
    INSERT INTO user_totals (user_id, events_count, connections_count, achievements_count, is_delta)
      SELECT user_id, sum(events_count), sum(connections_count), sum(achievements_count), false
        FROM (TABLE deltas UNION ALL TABLE bases) parts GROUP BY user_id
  ) SELECT count(*) INTO n FROM deltas;
  folded := folded + n;

  WITH deltas AS (
    DELETE FROM event_totals WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM event_totals WHERE is_delta ORDER BY event_id LIMIT most))
      RETURNING event_id, attendees_count
  ), bases AS (
    DELETE FROM event_totals WHERE NOT is_delta AND event_id = ANY (ARRAY(SELECT DISTINCT event_id FROM deltas))
      RETURNING event_id, attendees_count
  ), sums AS (
    INSERT INTO event_totals (event_id, attendees_count, is_delta)
      SELECT event_id, sum(attendees_count), false FROM (TABLE deltas UNION ALL TABLE bases) parts GROUP BY event_id
  ) SELECT count(*) INTO n FROM deltas;
  folded := folded + n;

  -- Leaves the deltas of locked achievements to a later call instead of waiting, for example for an import.
  IF EXISTS (SELECT FROM achievement_total_deltas) THEN
    WITH free AS MATERIALIZED (
      SELECT id FROM achievements FOR NO KEY UPDATE SKIP LOCKED
    ), deltas AS (
      DELETE FROM achievement_total_deltas WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM achievement_total_deltas
          WHERE achievement_id NOT IN (SELECT id FROM achievements EXCEPT SELECT id FROM free) LIMIT most))
        RETURNING achievement_id, earners_count
    ), sums AS (
      UPDATE achievements a SET earners_count = a.earners_count + d.earners_count
        FROM (SELECT achievement_id, sum(earners_count) AS earners_count FROM deltas GROUP BY achievement_id) d
        WHERE a.id = d.achievement_id AND d.earners_count <> 0
    ) SELECT count(*) INTO n FROM deltas;
    folded := folded + n;
  END IF;

  WITH deltas AS (
    DELETE FROM platform_total_deltas WHERE ctid = ANY (ARRAY(SELECT ctid FROM platform_total_deltas LIMIT most))
      RETURNING active_users_count
  ), sums AS (
    UPDATE platform_totals SET active_users_count = active_users_count + (SELECT sum(active_users_count) FROM deltas)
      WHERE EXISTS (SELECT FROM deltas)
  ) SELECT count(*) INTO n FROM deltas;
  RETURN folded + n;
END $$;

-- Rejects a change of an id: no trigger would move the row's counter to the new id.
CREATE OR REPLACE FUNCTION refuse_new_id() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The id of a row of %s never changes: insert a new row', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $$;

-- Members, events and achievements need no such trigger: TRUNCATE of these includes the tables that reference them.
CREATE OR REPLACE FUNCTION refuse_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE feature_not_supported USING
    MESSAGE = format('TRUNCATE of %s would leave totals wrong: use DELETE', TG_TABLE_NAME), TABLE = TG_TABLE_NAME;
END $$;

CREATE OR REPLACE TRIGGER achievement_total_deltas_refuse_truncate BEFORE TRUNCATE ON achievement_total_deltas
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE achievement_total_deltas ENABLE ALWAYS TRIGGER achievement_total_deltas_refuse_truncate;

CREATE OR REPLACE TRIGGER achievements_refuse_new_id BEFORE UPDATE ON achievements FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();
ALTER TABLE achievements ENABLE ALWAYS TRIGGER achievements_refuse_new_id;

CREATE OR REPLACE TRIGGER connections_refuse_truncate BEFORE TRUNCATE ON connections
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE connections ENABLE ALWAYS TRIGGER connections_refuse_truncate;

CREATE OR REPLACE TRIGGER event_totals_refuse_truncate BEFORE TRUNCATE ON event_totals
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE event_totals ENABLE ALWAYS TRIGGER event_totals_refuse_truncate;

CREATE OR REPLACE TRIGGER events_refuse_new_id BEFORE UPDATE ON events FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_refuse_new_id;

CREATE OR REPLACE TRIGGER participants_refuse_truncate BEFORE TRUNCATE ON participants
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_refuse_truncate;

CREATE OR REPLACE TRIGGER platform_total_deltas_refuse_truncate BEFORE TRUNCATE ON platform_total_deltas
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE platform_total_deltas ENABLE ALWAYS TRIGGER platform_total_deltas_refuse_truncate;

CREATE OR REPLACE TRIGGER platform_totals_refuse_truncate BEFORE TRUNCATE ON platform_totals
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE platform_totals ENABLE ALWAYS TRIGGER platform_totals_refuse_truncate;

CREATE OR REPLACE TRIGGER user_achievements_refuse_truncate BEFORE TRUNCATE ON user_achievements
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE user_achievements ENABLE ALWAYS TRIGGER user_achievements_refuse_truncate;

CREATE OR REPLACE TRIGGER user_totals_refuse_truncate BEFORE TRUNCATE ON user_totals
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();
ALTER TABLE user_totals ENABLE ALWAYS TRIGGER user_totals_refuse_truncate;

CREATE OR REPLACE TRIGGER users_refuse_new_id BEFORE UPDATE ON users FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();
ALTER TABLE users ENABLE ALWAYS TRIGGER users_refuse_new_id;
