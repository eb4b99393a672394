import type { MigrationInterface, QueryRunner } from 'typeorm';
import { CreatePlatform1763700000000 } from './1763700000000-create-platform.js';

/**
 * The function fold_totals. Triggers know by `public_user_api.folds` that it is the one who writes. It is set in the body: as a SET of
 * the function (so it was here until 1763700120000) PostgreSQL 15 lets nobody but a superuser write it.
 */
export const FOLD_TOTALS = `
-- Puts one row in place of at most so many changes of each kind and what was folded before, in one statement each, so that the sum
-- is the same to every snapshot. One at a time in the whole database, whoever calls; where another is at it, nothing is done.
CREATE OR REPLACE FUNCTION fold_totals(most integer) RETURNS integer LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
DECLARE
  folded integer := 0;
  n integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013003) THEN RETURN 0; END IF;
  PERFORM set_config('public_user_api.folds', 'yes', true);

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

  -- Those of achievements that somebody is writing, an import say, wait until that has ended; nobody waits for it.
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
  PERFORM set_config('public_user_api.folds', '', true);
  RETURN folded + n;
END $$;
`;

/**
 * What decides stands in the member's own row, and totals are a base and its deltas.
 *
 * Copies: `participants` carries what visibility and order need of the event, `connections` what lists need of the other
 * person, `user_achievements` whether the member is disabled. What decides who sees what is part of a composite foreign key with
 * ON UPDATE CASCADE, so PostgreSQL itself keeps it true, at every isolation level; who writes need not know it, a BEFORE trigger
 * fills it in. The names in `connections`, by which lists are searched and sorted, follow within seconds: `copy_names` copies
 * them a few rows at a time, so that nobody's rename takes as long as they have connections.
 *
 * Totals: a change appends a row, computed from the row's own old and new state alone: nothing is locked, nothing is waited
 * for. What must be exact at every moment is the sum of an owner's rows in one table (`user_totals`, `event_totals`); what may be
 * a second old (`achievements.earners_count`, `platform_totals`) is read without its deltas. `fold_totals` keeps the rows few.
 *
 * Takes ACCESS EXCLUSIVE locks, and rewrites users, events, participants and connections: docs/operators/writing-programs.md says
 * for how long. Constraints are NOT VALID here, which says nothing about what is written from then on; what was there before is
 * looked through by a migration of its own, beside everybody.
 */
export class CopyWhatDecidesAndAppendTotals1763700020000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // The triggers that locked rows and counted from other tables; with their functions.
    await runner.query(`
DROP FUNCTION users_bump_version, users_inserted, users_deleted, users_lock_for_disable, users_disabled_or_enabled,
  participants_changed, events_visibility_changed, connections_changed, user_achievements_changed, changed_rows CASCADE;
`);

    await runner.query(`
-- Text that is compared or sorted stands folded, by code points: no version of a locale library changes its order.
ALTER TABLE users
  ADD is_disabled boolean NOT NULL GENERATED ALWAYS AS (disabled_at IS NOT NULL) STORED,
  ADD folded_username text COLLATE "C" NOT NULL GENERATED ALWAYS AS (fold_case(username)) STORED,
  ADD folded_name text COLLATE "C" NOT NULL
    GENERATED ALWAYS AS (fold_case(shown_name(stored_display_name, first_name, last_name, username))) STORED;
-- Plain from here on, and kept by a trigger: where there is a BEFORE trigger, PostgreSQL takes every generated column for changed,
-- and as these are parts of keys, an UPDATE of a bio would lock the member against everybody who inserts a reference to them.
ALTER TABLE users
  ALTER is_disabled DROP EXPRESSION,
  ALTER folded_username DROP EXPRESSION,
  ALTER folded_name DROP EXPRESSION;
CREATE FUNCTION users_derive() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  NEW.is_disabled := NEW.disabled_at IS NOT NULL;
  NEW.folded_username := fold_case(NEW.username);
  NEW.folded_name := fold_case(shown_name(NEW.stored_display_name, NEW.first_name, NEW.last_name, NEW.username));
  RETURN NEW;
END $$;
CREATE TRIGGER users_derive BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION users_derive();
DROP INDEX users_username_key;
CREATE UNIQUE INDEX users_username_key ON users (folded_username);
-- What user_achievements and connections refer to. The id comes last: else PostgreSQL takes this wide index for the key.
ALTER TABLE users ADD CONSTRAINT users_is_disabled_key UNIQUE (is_disabled, id);

DROP FUNCTION event_visible(text, text, timestamptz);
-- THE access rule of events: what a relation of this role may see. participants.is_visible is its only use.
CREATE FUNCTION event_visible(role text, is_draft boolean, is_deleted boolean) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN NOT is_deleted AND (NOT is_draft OR role IN ('organizer', 'co_organizer'));

-- A total is the sum of its rows: what was folded, and each change since. So a change only ever appends, and one look-up reads it.
CREATE TABLE event_totals (
  event_id bigint NOT NULL,
  attendees_count integer NOT NULL,
  -- Whether the row is a change that was not folded yet.
  is_delta boolean NOT NULL DEFAULT true
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1);
INSERT INTO event_totals SELECT id, attendees_count, false FROM events WHERE attendees_count <> 0 ORDER BY id;
CREATE INDEX event_totals_event_idx ON event_totals (event_id) INCLUDE (attendees_count);
CREATE INDEX event_totals_delta_idx ON event_totals (event_id) WHERE is_delta;

ALTER TABLE participants DROP CONSTRAINT participants_event_fkey;
ALTER TABLE events
  DROP attendees_count,
  DROP CONSTRAINT events_id_starts_at_key,
  ADD is_draft boolean NOT NULL GENERATED ALWAYS AS (status = 'draft') STORED,
  ADD is_deleted boolean NOT NULL GENERATED ALWAYS AS (deleted_at IS NOT NULL) STORED,
  ADD folded_title text COLLATE "C" NOT NULL GENERATED ALWAYS AS (fold_case(title)) STORED;
-- As with users.
ALTER TABLE events ALTER is_draft DROP EXPRESSION, ALTER is_deleted DROP EXPRESSION;
CREATE FUNCTION events_derive() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  NEW.is_draft := NEW.status = 'draft';
  NEW.is_deleted := NEW.deleted_at IS NOT NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER events_derive BEFORE INSERT OR UPDATE ON events FOR EACH ROW EXECUTE FUNCTION events_derive();
-- What participants refer to.
ALTER TABLE events ADD CONSTRAINT events_copied_key UNIQUE (starts_at, is_draft, is_deleted, id);

ALTER TABLE participants
  ADD event_is_draft boolean NOT NULL DEFAULT false,
  ADD event_is_deleted boolean NOT NULL DEFAULT false;
UPDATE participants p SET event_is_draft = e.is_draft, event_is_deleted = e.is_deleted
  FROM events e WHERE e.id = p.event_id AND (e.is_draft OR e.is_deleted);
DROP INDEX participants_calendar_idx, participants_event_idx;
ALTER TABLE participants
  ALTER event_is_draft DROP DEFAULT,
  ALTER event_is_deleted DROP DEFAULT,
  ADD is_visible boolean NOT NULL GENERATED ALWAYS AS (event_visible(role, event_is_draft, event_is_deleted)) STORED;
CREATE INDEX participants_calendar_idx ON participants (user_id, starts_at DESC, event_id) WHERE is_visible;
CREATE INDEX participants_event_idx ON participants (event_id, role);
ALTER TABLE participants ADD CONSTRAINT participants_event_fkey
  FOREIGN KEY (event_id, starts_at, event_is_draft, event_is_deleted)
  REFERENCES events (id, starts_at, is_draft, is_deleted) ON UPDATE CASCADE NOT VALID;

-- Each row is written once more, and no index beside it: an UPDATE of all would take several times as long. The table stays
-- the same one, with whatever rights others were given on it.
CREATE TEMP TABLE kept_connections ON COMMIT DROP AS
  SELECT c.*, u.is_disabled, u.folded_name, u.folded_username
    FROM connections c JOIN users u ON u.id = c.peer_id ORDER BY c.user_id, c.id;
TRUNCATE connections;
DROP INDEX connections_recent_idx, connections_id_idx, connections_peer_idx, connections_met_at_event_idx;
ALTER TABLE connections
  DROP CONSTRAINT connections_pkey,
  DROP CONSTRAINT connections_pair_key,
  DROP CONSTRAINT connections_user_id_fkey,
  DROP CONSTRAINT connections_peer_id_fkey,
  DROP CONSTRAINT connections_met_at_event_id_fkey,
  ADD peer_is_disabled boolean NOT NULL,
  ADD peer_name text COLLATE "C" NOT NULL,
  ADD peer_username text COLLATE "C" NOT NULL;
INSERT INTO connections TABLE kept_connections;
ALTER TABLE connections
  ADD CONSTRAINT connections_pkey PRIMARY KEY (user_id, id),
  ADD CONSTRAINT connections_pair_key UNIQUE (user_id, peer_id),
  ADD CONSTRAINT connections_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) NOT VALID,
  ADD CONSTRAINT connections_met_at_event_id_fkey FOREIGN KEY (met_at_event_id) REFERENCES events (id) NOT VALID;
CREATE INDEX connections_recent_idx ON connections (user_id, status, connected_at DESC, id) WHERE NOT peer_is_disabled;
CREATE INDEX connections_name_idx ON connections (user_id, status, peer_name, id) INCLUDE (peer_username)
  WHERE NOT peer_is_disabled;
CREATE INDEX connections_id_idx ON connections (id);
CREATE INDEX connections_peer_idx ON connections (peer_id);
CREATE INDEX connections_met_at_event_idx ON connections (met_at_event_id) WHERE met_at_event_id IS NOT NULL;
ALTER TABLE connections ADD CONSTRAINT connections_peer_fkey
  FOREIGN KEY (peer_id, peer_is_disabled)
  REFERENCES users (id, is_disabled) ON UPDATE CASCADE NOT VALID;

ALTER TABLE user_achievements
  DROP CONSTRAINT user_achievements_user_id_fkey,
  ADD user_is_disabled boolean NOT NULL DEFAULT false;
UPDATE user_achievements a SET user_is_disabled = true FROM users u WHERE u.id = a.user_id AND u.is_disabled;
ALTER TABLE user_achievements
  ALTER user_is_disabled DROP DEFAULT,
  ADD CONSTRAINT user_achievements_user_fkey
    FOREIGN KEY (user_id, user_is_disabled) REFERENCES users (id, is_disabled) ON UPDATE CASCADE NOT VALID;

-- The base of a total is derived: no constraint may turn a writer away because of it.
ALTER TABLE achievements DROP CONSTRAINT achievements_earners_count_check;
ALTER TABLE platform_totals DROP CONSTRAINT platform_totals_active_users_count_check;
ALTER TABLE user_totals
  DROP CONSTRAINT user_totals_pkey,
  DROP CONSTRAINT user_totals_user_id_fkey,
  DROP CONSTRAINT user_totals_events_count_check,
  DROP CONSTRAINT user_totals_connections_count_check,
  DROP CONSTRAINT user_totals_achievements_count_check,
  ALTER events_count TYPE integer,
  ALTER connections_count TYPE integer,
  ALTER achievements_count TYPE integer,
  ADD is_delta boolean NOT NULL DEFAULT false;
ALTER TABLE user_totals ALTER is_delta SET DEFAULT true;
ALTER TABLE user_totals SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1);
CREATE INDEX user_totals_user_idx ON user_totals (user_id);
CREATE INDEX user_totals_delta_idx ON user_totals (user_id) WHERE is_delta;
`);

    await runner.query(`
-- What may be a minute old is read where it was folded to, and these by fold_totals alone: for achievements.earners_count
-- and platform_totals. Written and deleted all the time: vacuumed by number of rows.
CREATE TABLE achievement_total_deltas (
  achievement_id bigint NOT NULL,
  earners_count integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE platform_total_deltas (
  active_users_count integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
`);
    await runner.query(FOLD_TOTALS);

    await runner.query(`
CREATE FUNCTION users_bump_version() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
CREATE TRIGGER users_bump_version BEFORE UPDATE ON users FOR EACH ROW
  WHEN ((OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM
    (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at))
  EXECUTE FUNCTION users_bump_version();

-- Copies. FOR KEY SHARE is what the foreign key takes anyway: taken first, what was read is still so when it checks.
-- Where a table is replicated into this database, its rows may come before those that they refer to.
CREATE FUNCTION participants_copy_event() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  SELECT starts_at, is_draft, is_deleted INTO NEW.starts_at, NEW.event_is_draft, NEW.event_is_deleted
    FROM events WHERE id = NEW.event_id FOR KEY SHARE;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no event %s', NEW.event_id),
        TABLE = 'participants', CONSTRAINT = 'participants_event_fkey';
    END IF;
    NEW.starts_at := 'epoch';
    NEW.event_is_draft := true;
    NEW.event_is_deleted := true;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER participants_copy_event BEFORE INSERT ON participants FOR EACH ROW
  WHEN (NEW.starts_at IS NULL OR NEW.event_is_draft IS NULL OR NEW.event_is_deleted IS NULL)
  EXECUTE FUNCTION participants_copy_event();
CREATE TRIGGER participants_copy_other_event BEFORE UPDATE ON participants FOR EACH ROW
  WHEN (NEW.event_id <> OLD.event_id) EXECUTE FUNCTION participants_copy_event();

CREATE FUNCTION connections_copy_peer() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') = 'read committed' THEN
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM users WHERE id = NEW.peer_id FOR KEY SHARE;
  ELSE
    -- Fails where a member was renamed since this transaction began: it would store a name of before, and copy_names be done.
    SELECT is_disabled, folded_name, folded_username INTO NEW.peer_is_disabled, NEW.peer_name, NEW.peer_username
      FROM users WHERE id = NEW.peer_id FOR SHARE;
  END IF;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.peer_id),
        TABLE = 'connections', CONSTRAINT = 'connections_peer_fkey';
    END IF;
    NEW.peer_is_disabled := true;
    NEW.peer_name := '';
    NEW.peer_username := '';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER connections_copy_peer BEFORE INSERT ON connections FOR EACH ROW
  WHEN (NEW.peer_is_disabled IS NULL OR NEW.peer_name IS NULL OR NEW.peer_username IS NULL)
  EXECUTE FUNCTION connections_copy_peer();
CREATE TRIGGER connections_copy_other_peer BEFORE UPDATE ON connections FOR EACH ROW
  WHEN (NEW.peer_id <> OLD.peer_id) EXECUTE FUNCTION connections_copy_peer();

-- Members whose names changed and are not copied everywhere; a row for each change.
CREATE TABLE renamed_users (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL,
  -- NULL until every copy was compared once. Then all transactions before this one must have ended: one of them may have read the
  -- name of before, and a connection that it adds be seen only now. The number of a transaction (xid8).
  settled_before bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE FUNCTION users_queue_names() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO renamed_users (user_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER users_queue_names AFTER UPDATE ON users FOR EACH ROW
  WHEN ((OLD.folded_name, OLD.folded_username) <> (NEW.folded_name, NEW.folded_username))
  EXECUTE FUNCTION users_queue_names();

-- Copies the names of renamed members to at most so many connections. Returns how many steps it did; 0 when nothing is left that
-- could be done now. It waits for nobody: what somebody else is changing is copied by a later call. One at a time in the whole
-- database, whoever calls; where another is at it, nothing is done.
CREATE FUNCTION copy_names(most integer) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  batch bigint[];
  copied integer;
  ended integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(7862013006) THEN RETURN 0; END IF;
  batch := ARRAY(SELECT id FROM renamed_users
    WHERE settled_before IS NULL OR settled_before <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY id LIMIT 100);
  IF batch = '{}' THEN RETURN 0; END IF;

  UPDATE connections c SET peer_name = u.folded_name, peer_username = u.folded_username FROM users u
    WHERE u.id = c.peer_id AND c.ctid = ANY (ARRAY(
      SELECT o.ctid FROM users n JOIN connections o ON o.peer_id = n.id
        WHERE n.id = ANY (ARRAY(SELECT user_id FROM renamed_users WHERE id = ANY (batch)))
          AND (o.peer_name, o.peer_username) <> (n.folded_name, n.folded_username)
        LIMIT most FOR NO KEY UPDATE OF o SKIP LOCKED));
  GET DIAGNOSTICS copied = ROW_COUNT;
  IF copied = most THEN RETURN copied; END IF;

  WITH alike AS (
    SELECT r.id FROM renamed_users r WHERE r.id = ANY (batch) AND NOT EXISTS (
      SELECT FROM users n JOIN connections o ON o.peer_id = n.id
        WHERE n.id = r.user_id AND (o.peer_name, o.peer_username) <> (n.folded_name, n.folded_username))
  ), compared AS (
    UPDATE renamed_users SET settled_before = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      WHERE id IN (SELECT id FROM alike) AND settled_before IS NULL
  ), settled AS (
    DELETE FROM renamed_users WHERE id IN (SELECT id FROM alike) AND settled_before IS NOT NULL
  ) SELECT count(*) INTO ended FROM alike;
  RETURN copied + ended;
END $$;

CREATE FUNCTION user_achievements_copy_user() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  SELECT is_disabled INTO NEW.user_is_disabled FROM users WHERE id = NEW.user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    IF current_setting('session_replication_role') <> 'replica' THEN
      RAISE foreign_key_violation USING MESSAGE = format('There is no user %s', NEW.user_id),
        TABLE = 'user_achievements', CONSTRAINT = 'user_achievements_user_fkey';
    END IF;
    NEW.user_is_disabled := true;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER user_achievements_copy_user BEFORE INSERT ON user_achievements FOR EACH ROW
  WHEN (NEW.user_is_disabled IS NULL) EXECUTE FUNCTION user_achievements_copy_user();
CREATE TRIGGER user_achievements_copy_other_user BEFORE UPDATE ON user_achievements FOR EACH ROW
  WHEN (NEW.user_id <> OLD.user_id) EXECUTE FUNCTION user_achievements_copy_user();

-- Foreign keys do nothing where changes are replicated into this database: these do it there, and only there.
-- What was folded there comes with the row of an achievement: it is counted here instead.
CREATE FUNCTION achievements_keep_count_on_replication() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF current_setting('public_user_api.folds', true) IS DISTINCT FROM 'yes' THEN
    NEW.earners_count := CASE TG_OP WHEN 'UPDATE' THEN OLD.earners_count ELSE 0 END;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER achievements_keep_count_on_replication BEFORE INSERT OR UPDATE ON achievements FOR EACH ROW
  EXECUTE FUNCTION achievements_keep_count_on_replication();

CREATE FUNCTION events_copy_on_replication() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE participants
    SET starts_at = NEW.starts_at, event_is_draft = NEW.is_draft, event_is_deleted = NEW.is_deleted
    WHERE event_id = NEW.id
      AND (starts_at, event_is_draft, event_is_deleted) IS DISTINCT FROM (NEW.starts_at, NEW.is_draft, NEW.is_deleted);
  RETURN NULL;
END $$;
CREATE TRIGGER events_copy_on_replication AFTER INSERT OR UPDATE ON events FOR EACH ROW
  EXECUTE FUNCTION events_copy_on_replication();

CREATE FUNCTION users_copy_on_replication() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE connections
    SET peer_is_disabled = NEW.is_disabled, peer_name = NEW.folded_name, peer_username = NEW.folded_username
    WHERE peer_id = NEW.id AND (peer_is_disabled, peer_name, peer_username)
      IS DISTINCT FROM (NEW.is_disabled, NEW.folded_name, NEW.folded_username);
  UPDATE user_achievements SET user_is_disabled = NEW.is_disabled
    WHERE user_id = NEW.id AND user_is_disabled <> NEW.is_disabled;
  RETURN NULL;
END $$;
CREATE TRIGGER users_copy_on_replication AFTER INSERT OR UPDATE ON users FOR EACH ROW
  EXECUTE FUNCTION users_copy_on_replication();
`);

    await runner.query(`
-- Totals. Each function looks at what changed alone, and appends. Row by row, but for what is inserted: that may be millions
-- at once, and is summed up by statement; where changes are replicated into this database only triggers of rows fire.
CREATE FUNCTION count_active_users() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND NOT OLD.is_disabled THEN INSERT INTO platform_total_deltas VALUES (-1); END IF;
  IF TG_OP <> 'DELETE' AND NOT NEW.is_disabled THEN INSERT INTO platform_total_deltas VALUES (1); END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION count_new_users() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO platform_total_deltas SELECT count(*) FROM new_rows WHERE NOT is_disabled HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE TRIGGER users_count_new AFTER INSERT ON users REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_users();
CREATE TRIGGER users_count_on_replication AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION count_active_users();
CREATE TRIGGER users_update_count AFTER UPDATE ON users FOR EACH ROW
  WHEN (OLD.is_disabled <> NEW.is_disabled) EXECUTE FUNCTION count_active_users();
CREATE TRIGGER users_delete_count AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION count_active_users();

CREATE FUNCTION count_events() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.is_visible THEN
    INSERT INTO user_totals (user_id, events_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_visible THEN
    INSERT INTO user_totals (user_id, events_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER participants_count_on_replication AFTER INSERT ON participants FOR EACH ROW
  WHEN (NEW.is_visible) EXECUTE FUNCTION count_events();
CREATE TRIGGER participants_update_count AFTER UPDATE ON participants FOR EACH ROW
  WHEN (OLD.is_visible <> NEW.is_visible OR OLD.user_id <> NEW.user_id) EXECUTE FUNCTION count_events();
CREATE TRIGGER participants_delete_count AFTER DELETE ON participants FOR EACH ROW
  WHEN (OLD.is_visible) EXECUTE FUNCTION count_events();

CREATE FUNCTION count_attendees() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.rsvp_status = 'going' THEN
    INSERT INTO event_totals VALUES (OLD.event_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.rsvp_status = 'going' THEN
    INSERT INTO event_totals VALUES (NEW.event_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER participants_attendee_on_replication AFTER INSERT ON participants FOR EACH ROW
  WHEN (NEW.rsvp_status = 'going') EXECUTE FUNCTION count_attendees();
CREATE FUNCTION count_new_participants() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO user_totals (user_id, events_count)
    SELECT user_id, count(*) FROM new_rows WHERE is_visible GROUP BY user_id;
  INSERT INTO event_totals SELECT event_id, count(*) FROM new_rows WHERE rsvp_status = 'going' GROUP BY event_id;
  RETURN NULL;
END $$;
CREATE TRIGGER participants_count_new AFTER INSERT ON participants REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_participants();
CREATE TRIGGER participants_update_attendee AFTER UPDATE ON participants FOR EACH ROW
  WHEN ((OLD.rsvp_status = 'going') IS DISTINCT FROM (NEW.rsvp_status = 'going') OR OLD.event_id <> NEW.event_id)
  EXECUTE FUNCTION count_attendees();
CREATE TRIGGER participants_delete_attendee AFTER DELETE ON participants FOR EACH ROW
  WHEN (OLD.rsvp_status = 'going') EXECUTE FUNCTION count_attendees();

CREATE FUNCTION count_connections() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.status = 'accepted' AND NOT OLD.peer_is_disabled THEN
    INSERT INTO user_totals (user_id, connections_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.status = 'accepted' AND NOT NEW.peer_is_disabled THEN
    INSERT INTO user_totals (user_id, connections_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION count_new_connections() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO user_totals (user_id, connections_count)
    SELECT user_id, count(*) FROM new_rows WHERE status = 'accepted' AND NOT peer_is_disabled GROUP BY user_id;
  RETURN NULL;
END $$;
CREATE TRIGGER connections_count_new AFTER INSERT ON connections REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_connections();
CREATE TRIGGER connections_count_on_replication AFTER INSERT ON connections FOR EACH ROW
  WHEN (NEW.status = 'accepted' AND NOT NEW.peer_is_disabled) EXECUTE FUNCTION count_connections();
CREATE TRIGGER connections_update_count AFTER UPDATE ON connections FOR EACH ROW
  WHEN ((OLD.status = 'accepted' AND NOT OLD.peer_is_disabled) <> (NEW.status = 'accepted' AND NOT NEW.peer_is_disabled)
    OR OLD.user_id <> NEW.user_id) EXECUTE FUNCTION count_connections();
CREATE TRIGGER connections_delete_count AFTER DELETE ON connections FOR EACH ROW
  WHEN (OLD.status = 'accepted' AND NOT OLD.peer_is_disabled) EXECUTE FUNCTION count_connections();

CREATE FUNCTION count_achievements() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.earned_at IS NOT NULL THEN
    INSERT INTO user_totals (user_id, achievements_count) VALUES (OLD.user_id, -1);
    IF NOT OLD.user_is_disabled THEN INSERT INTO achievement_total_deltas VALUES (OLD.achievement_id, -1); END IF;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.earned_at IS NOT NULL THEN
    INSERT INTO user_totals (user_id, achievements_count) VALUES (NEW.user_id, 1);
    IF NOT NEW.user_is_disabled THEN INSERT INTO achievement_total_deltas VALUES (NEW.achievement_id, 1); END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION count_new_achievements() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO user_totals (user_id, achievements_count)
    SELECT user_id, count(*) FROM new_rows WHERE earned_at IS NOT NULL GROUP BY user_id;
  INSERT INTO achievement_total_deltas SELECT achievement_id, count(*) FROM new_rows
    WHERE earned_at IS NOT NULL AND NOT user_is_disabled GROUP BY achievement_id;
  RETURN NULL;
END $$;
CREATE TRIGGER user_achievements_count_new AFTER INSERT ON user_achievements REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_achievements();
CREATE TRIGGER user_achievements_count_on_replication AFTER INSERT ON user_achievements FOR EACH ROW
  WHEN (NEW.earned_at IS NOT NULL) EXECUTE FUNCTION count_achievements();
CREATE TRIGGER user_achievements_update_count AFTER UPDATE ON user_achievements FOR EACH ROW
  WHEN ((OLD.earned_at IS NULL, OLD.user_is_disabled, OLD.user_id, OLD.achievement_id)
    IS DISTINCT FROM (NEW.earned_at IS NULL, NEW.user_is_disabled, NEW.user_id, NEW.achievement_id))
  EXECUTE FUNCTION count_achievements();
CREATE TRIGGER user_achievements_delete_count AFTER DELETE ON user_achievements FOR EACH ROW
  WHEN (OLD.earned_at IS NOT NULL) EXECUTE FUNCTION count_achievements();

-- What no trigger could count.
CREATE FUNCTION refuse_new_id() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE restrict_violation USING MESSAGE = format('The id of a row of %s never changes: insert a new row', TG_TABLE_NAME),
    TABLE = TG_TABLE_NAME;
END $$;
CREATE TRIGGER users_refuse_new_id BEFORE UPDATE ON users FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();
CREATE TRIGGER events_refuse_new_id BEFORE UPDATE ON events FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();
CREATE TRIGGER achievements_refuse_new_id BEFORE UPDATE ON achievements FOR EACH ROW
  WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION refuse_new_id();

CREATE FUNCTION refuse_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  RAISE feature_not_supported USING
    MESSAGE = format('TRUNCATE of %s would leave totals wrong: use DELETE', TG_TABLE_NAME), TABLE = TG_TABLE_NAME;
END $$;
`);
    await runner.query(
      COUNTED_TABLES.map(
        (table) => `CREATE TRIGGER ${table}_refuse_truncate BEFORE TRUNCATE ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate();`,
      ).join('\n'),
    );
    // Replicated changes are counted and refused like any other.
    await runner.query(
      ALWAYS.map(([table, trigger]) => `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${trigger};`).join('\n'),
    );
    await runner.query(
      ON_REPLICATION.map(
        ([table, trigger]) => `ALTER TABLE ${table} ENABLE REPLICA TRIGGER ${trigger};`,
      ).join('\n'),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP FUNCTION copy_names, users_queue_names, achievements_keep_count_on_replication, users_bump_version, participants_copy_event, connections_copy_peer, user_achievements_copy_user,
  events_copy_on_replication, users_copy_on_replication, count_active_users, count_events, count_attendees,
  count_connections, count_achievements, count_new_users, count_new_participants, count_new_connections,
  count_new_achievements, refuse_new_id, refuse_truncate, users_derive, events_derive CASCADE;
DO $$ BEGIN
  LOOP
    EXIT WHEN fold_totals(100000) = 0;
  END LOOP;
END $$;
DROP FUNCTION fold_totals;
DROP TABLE achievement_total_deltas, platform_total_deltas, renamed_users;

ALTER TABLE user_achievements DROP CONSTRAINT user_achievements_user_fkey;
ALTER TABLE user_achievements
  DROP user_is_disabled,
  ADD CONSTRAINT user_achievements_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id);
DROP INDEX connections_recent_idx, connections_name_idx;
ALTER TABLE connections
  DROP CONSTRAINT connections_peer_fkey,
  DROP peer_is_disabled,
  DROP peer_name,
  DROP peer_username,
  ADD CONSTRAINT connections_peer_id_fkey FOREIGN KEY (peer_id) REFERENCES users (id);
CREATE INDEX connections_recent_idx ON connections (user_id, status, connected_at DESC, id);

DROP INDEX participants_calendar_idx;
ALTER TABLE participants
  DROP CONSTRAINT participants_event_fkey,
  DROP is_visible;
ALTER TABLE participants
  DROP event_is_draft,
  DROP event_is_deleted;
CREATE INDEX participants_calendar_idx ON participants (user_id, starts_at DESC, event_id);
DROP FUNCTION event_visible(text, boolean, boolean);
CREATE FUNCTION event_visible(role text, status text, deleted_at timestamptz) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN deleted_at IS NULL AND (status <> 'draft' OR role IN ('organizer', 'co_organizer'));
ALTER TABLE events
  DROP CONSTRAINT events_copied_key,
  DROP is_draft,
  DROP is_deleted,
  DROP folded_title,
  ADD CONSTRAINT events_id_starts_at_key UNIQUE (id, starts_at),
  ADD attendees_count bigint NOT NULL DEFAULT 0 CHECK (attendees_count >= 0);
UPDATE events e SET attendees_count = t.attendees_count FROM event_totals t WHERE t.event_id = e.id;
ALTER TABLE participants ADD CONSTRAINT participants_event_fkey FOREIGN KEY (event_id, starts_at)
  REFERENCES events (id, starts_at) ON UPDATE CASCADE;

DROP INDEX users_username_key;
ALTER TABLE users
  DROP CONSTRAINT users_is_disabled_key,
  DROP is_disabled,
  DROP folded_username,
  DROP folded_name;
CREATE UNIQUE INDEX users_username_key ON users (fold_case(username));

ALTER TABLE achievements ADD CHECK (earners_count >= 0);
DROP TABLE event_totals;
DROP INDEX user_totals_user_idx;
ALTER TABLE user_totals
  DROP is_delta,
  ALTER events_count TYPE bigint,
  ALTER connections_count TYPE bigint,
  ALTER achievements_count TYPE bigint,
  ADD PRIMARY KEY (user_id);
ALTER TABLE user_totals RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay,
  autovacuum_vacuum_insert_threshold);
DELETE FROM user_totals t WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = t.user_id);
INSERT INTO user_totals (user_id) SELECT id FROM users ON CONFLICT DO NOTHING;
ALTER TABLE user_totals
  ADD FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
  ADD CHECK (events_count >= 0),
  ADD CHECK (connections_count >= 0),
  ADD CHECK (achievements_count >= 0);
ALTER TABLE platform_totals ADD CHECK (active_users_count >= 0);
`);
    await runner.query(await triggersOfTheFirstMigration());
  }
}

/** Tables whose rows are counted or are what is counted. */
const COUNTED_TABLES = [
  'users',
  'events',
  'participants',
  'connections',
  'achievements',
  'user_achievements',
  'user_totals',
  'event_totals',
  'platform_totals',
  'achievement_total_deltas',
  'platform_total_deltas',
];

const ALWAYS: readonly (readonly [table: string, trigger: string])[] = [
  ...['users', 'participants', 'connections', 'user_achievements'].flatMap((table) =>
    ['update', 'delete'].map((change) => [table, `${table}_${change}_count`] as const),
  ),
  ...['update', 'delete'].map((change) => ['participants', `participants_${change}_attendee`] as const),
  ['users', 'users_derive'],
  ['users', 'users_queue_names'],
  ['events', 'events_derive'],
  ['participants', 'participants_copy_event'],
  ['participants', 'participants_copy_other_event'],
  ['connections', 'connections_copy_peer'],
  ['connections', 'connections_copy_other_peer'],
  ['user_achievements', 'user_achievements_copy_user'],
  ['user_achievements', 'user_achievements_copy_other_user'],
  ...['users', 'events', 'achievements'].map((table) => [table, `${table}_refuse_new_id`] as const),
  ...COUNTED_TABLES.map((table) => [table, `${table}_refuse_truncate`] as const),
];

/** Those that fire where changes are replicated into this database, and only there. */
const ON_REPLICATION: readonly (readonly [table: string, trigger: string])[] = [
  ['achievements', 'achievements_keep_count_on_replication'],
  ['events', 'events_copy_on_replication'],
  ['users', 'users_copy_on_replication'],
  ['users', 'users_count_on_replication'],
  ['participants', 'participants_count_on_replication'],
  ['participants', 'participants_attendee_on_replication'],
  ['connections', 'connections_count_on_replication'],
  ['user_achievements', 'user_achievements_count_on_replication'],
];

/** What stands in the second statement of the first migration, which never changes. */
async function triggersOfTheFirstMigration(): Promise<string> {
  const statements: string[] = [];
  const recorder = { query: (sql: string) => Promise.resolve(statements.push(sql)) };
  await new CreatePlatform1763700000000().up(recorder as unknown as QueryRunner);
  return statements[1]!;
}
