import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What changed of what members' APIs show (docs/operators/changes.md): a row in the transaction of each change, whoever writes.
 *
 * One row a changed source, not one for each member who sees it: an event that is renamed is one row, and whose lists it
 * is in is found when a member's changes are read. So is whether a thing is still there: what a row says is that it must be looked at.
 * A shared row says `removed` where everybody lost sight of it, and `returned` where a member was enabled again.
 *
 * Order is the number of the transaction, then the sequence. It is the order of commits for whoever reads only what no open
 * transaction can add to: `changed_in < pg_snapshot_xmin(pg_current_snapshot())`.
 */
export class RecordChanges1763700070000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE changes (
  -- Number of the transaction (xid8, which entities cannot say).
  changed_in bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  sequence bigint GENERATED ALWAYS AS IDENTITY,
  -- Whose list it is. NULL: of everybody in whose lists it is.
  user_id bigint,
  -- people: a member, as others see them; id is that of the member, and of a profile, too.
  resource text NOT NULL CHECK (resource IN ('profile', 'events', 'connections', 'achievements', 'people')),
  id bigint NOT NULL,
  kind text NOT NULL CHECK (kind IN ('updated', 'removed', 'returned')),
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (changed_in, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX changes_member_idx ON changes (user_id, changed_in, sequence) WHERE user_id IS NOT NULL;
CREATE INDEX changes_shared_idx ON changes (resource, id, changed_in, sequence) WHERE user_id IS NULL;
CREATE INDEX changes_changed_at_idx ON changes (changed_at);

-- How far each of those who go through all changes has come. swept: the last that is gone for good.
CREATE TABLE change_places (
  name text PRIMARY KEY CHECK (name IN ('coalesced', 'swept')),
  changed_in bigint NOT NULL DEFAULT 0,
  sequence bigint NOT NULL DEFAULT 0
);
INSERT INTO change_places (name) VALUES ('coalesced'), ('swept');
`);
    await runner.query(`
CREATE FUNCTION record_user_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF OLD.card <> NEW.card OR OLD.is_disabled <> NEW.is_disabled THEN
    INSERT INTO changes (resource, id, kind)
      VALUES ('people', NEW.id, CASE
        WHEN NEW.is_disabled AND NOT OLD.is_disabled THEN 'removed'
        WHEN OLD.is_disabled AND NOT NEW.is_disabled THEN 'returned' ELSE 'updated' END);
  END IF;
  IF (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at) THEN
    INSERT INTO changes (user_id, resource, id, kind) VALUES (NEW.id, 'profile', NEW.id, 'updated');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER users_record_change AFTER UPDATE ON users FOR EACH ROW
  WHEN (OLD.is_disabled <> NEW.is_disabled OR OLD.card <> NEW.card
    OR (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
      IS DISTINCT FROM (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at))
  EXECUTE FUNCTION record_user_change();

CREATE FUNCTION record_event_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO changes (resource, id, kind)
    VALUES ('events', NEW.id, CASE
      WHEN NOT (OLD.is_draft OR OLD.is_deleted) AND (NEW.is_draft OR NEW.is_deleted) THEN 'removed' ELSE 'updated' END);
  -- Nobody else is to know that there was a draft.
  IF OLD.is_draft AND NOT OLD.is_deleted AND NEW.is_deleted THEN
    INSERT INTO changes (user_id, resource, id, kind) SELECT user_id, 'events', NEW.id, 'removed' FROM participants
      WHERE event_id = NEW.id AND event_visible(role, true, false);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER events_record_change AFTER UPDATE ON events FOR EACH ROW EXECUTE FUNCTION record_event_change();

-- What was never seen is not told of when it goes, either.
CREATE FUNCTION was_hidden(resource text, id bigint) RETURNS boolean LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM changes c WHERE c.user_id IS NULL AND c.resource = $1 AND c.id = $2 AND c.kind = 'removed')
$$;

CREATE FUNCTION record_participant_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.event_id) <> (NEW.user_id, NEW.event_id)) THEN
    IF OLD.is_visible OR was_hidden('events', OLD.event_id) THEN
      INSERT INTO changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'events', OLD.event_id, 'removed');
    END IF;
    IF OLD.role = 'co_organizer' THEN
      INSERT INTO changes (resource, id, kind) VALUES ('events', OLD.event_id, 'updated');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.is_visible OR (TG_OP = 'UPDATE' AND OLD.is_visible) THEN
    INSERT INTO changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'events', NEW.event_id, CASE WHEN NEW.is_visible THEN 'updated' ELSE 'removed' END);
  END IF;
  -- Everybody sees who organises it.
  IF (NEW.role = 'co_organizer') <> (TG_OP = 'UPDATE' AND OLD.role = 'co_organizer' AND OLD.user_id = NEW.user_id AND OLD.event_id = NEW.event_id) THEN
    INSERT INTO changes (resource, id, kind) VALUES ('events', NEW.event_id, 'updated');
  END IF;
  RETURN NULL;
END $$;
-- What is copied from the event alone is the event's change.
CREATE TRIGGER participants_record_change AFTER UPDATE ON participants FOR EACH ROW
  WHEN ((OLD.user_id, OLD.event_id, OLD.role, OLD.rsvp_status, OLD.responded_at, OLD.checked_in_at)
    IS DISTINCT FROM (NEW.user_id, NEW.event_id, NEW.role, NEW.rsvp_status, NEW.responded_at, NEW.checked_in_at))
  EXECUTE FUNCTION record_participant_change();
CREATE TRIGGER participants_record_removal AFTER DELETE ON participants FOR EACH ROW EXECUTE FUNCTION record_participant_change();
CREATE TRIGGER participants_record_on_replication AFTER INSERT ON participants FOR EACH ROW EXECUTE FUNCTION record_participant_change();
CREATE FUNCTION record_new_participants() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO changes (user_id, resource, id, kind)
    SELECT user_id, 'events', event_id, 'updated' FROM new_rows WHERE is_visible
    UNION ALL SELECT NULL, 'events', event_id, 'updated' FROM new_rows WHERE role = 'co_organizer';
  RETURN NULL;
END $$;
CREATE TRIGGER participants_record_new AFTER INSERT ON participants REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION record_new_participants();

CREATE FUNCTION record_connection_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.id) <> (NEW.user_id, NEW.id)) THEN
    IF NOT OLD.peer_is_disabled OR was_hidden('people', OLD.peer_id) THEN
      INSERT INTO changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'connections', OLD.id, 'removed');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NOT NEW.peer_is_disabled OR (TG_OP = 'UPDATE' AND NOT OLD.peer_is_disabled) THEN
    INSERT INTO changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'connections', NEW.id, CASE WHEN NEW.peer_is_disabled THEN 'removed' ELSE 'updated' END);
  END IF;
  RETURN NULL;
END $$;
-- What is copied from the other person alone is that person's change.
CREATE TRIGGER connections_record_change AFTER UPDATE ON connections FOR EACH ROW
  WHEN ((OLD.user_id, OLD.id, OLD.peer_id, OLD.status, OLD.source, OLD.met_at_event_id, OLD.requested_at, OLD.connected_at)
    IS DISTINCT FROM (NEW.user_id, NEW.id, NEW.peer_id, NEW.status, NEW.source, NEW.met_at_event_id, NEW.requested_at, NEW.connected_at))
  EXECUTE FUNCTION record_connection_change();
CREATE TRIGGER connections_record_removal AFTER DELETE ON connections FOR EACH ROW EXECUTE FUNCTION record_connection_change();
CREATE TRIGGER connections_record_on_replication AFTER INSERT ON connections FOR EACH ROW EXECUTE FUNCTION record_connection_change();
CREATE FUNCTION record_new_connections() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO changes (user_id, resource, id, kind)
    SELECT user_id, 'connections', id, 'updated' FROM new_rows WHERE NOT peer_is_disabled;
  RETURN NULL;
END $$;
CREATE TRIGGER connections_record_new AFTER INSERT ON connections REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION record_new_connections();

CREATE FUNCTION record_earning_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  -- Not read where there is none: OLD of an INSERT, NEW of a DELETE.
  old_pin smallint := CASE WHEN TG_OP <> 'INSERT' THEN OLD.pin_position END;
  new_pin smallint := CASE WHEN TG_OP <> 'DELETE' THEN NEW.pin_position END;
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.achievement_id) <> (NEW.user_id, NEW.achievement_id)) THEN
    IF OLD.earned_at IS NOT NULL THEN
      INSERT INTO changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'achievements', OLD.achievement_id, 'removed');
    END IF;
    IF old_pin IS NOT NULL THEN PERFORM record_pins(OLD.user_id); END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.earned_at IS NOT NULL OR (TG_OP = 'UPDATE' AND OLD.earned_at IS NOT NULL) THEN
    INSERT INTO changes (user_id, resource, id, kind) VALUES (NEW.user_id, 'achievements', NEW.achievement_id,
      CASE WHEN NEW.earned_at IS NULL THEN 'removed' ELSE 'updated' END);
  END IF;
  IF new_pin IS DISTINCT FROM old_pin THEN PERFORM record_pins(NEW.user_id); END IF;
  RETURN NULL;
END $$;
-- Places close up: where one changes, others do.
CREATE FUNCTION record_pins(of_user bigint) RETURNS void LANGUAGE sql SET search_path = public, pg_temp AS $$
  INSERT INTO changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM user_achievements WHERE user_id = of_user AND pin_position IS NOT NULL
$$;
CREATE TRIGGER user_achievements_record_change AFTER UPDATE ON user_achievements FOR EACH ROW
  WHEN ((OLD.earned_at IS NOT NULL OR NEW.earned_at IS NOT NULL)
    AND (OLD.user_id, OLD.achievement_id, OLD.progress, OLD.earned_at, OLD.pin_position)
      IS DISTINCT FROM (NEW.user_id, NEW.achievement_id, NEW.progress, NEW.earned_at, NEW.pin_position))
  EXECUTE FUNCTION record_earning_change();
CREATE TRIGGER user_achievements_record_removal AFTER DELETE ON user_achievements FOR EACH ROW
  WHEN (OLD.earned_at IS NOT NULL) EXECUTE FUNCTION record_earning_change();
CREATE TRIGGER user_achievements_record_on_replication AFTER INSERT ON user_achievements FOR EACH ROW
  WHEN (NEW.earned_at IS NOT NULL) EXECUTE FUNCTION record_earning_change();
CREATE FUNCTION record_new_earnings() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM new_rows WHERE earned_at IS NOT NULL;
  PERFORM record_pins(user_id) FROM new_rows WHERE pin_position IS NOT NULL GROUP BY user_id;
  RETURN NULL;
END $$;
CREATE TRIGGER user_achievements_record_new AFTER INSERT ON user_achievements REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION record_new_earnings();

CREATE FUNCTION record_achievement_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO changes (resource, id, kind) VALUES ('achievements', NEW.id, 'updated');
  RETURN NULL;
END $$;
-- Rarities change with every member, and are as old as they say.
CREATE TRIGGER achievements_record_change AFTER UPDATE ON achievements FOR EACH ROW
  WHEN ((OLD.revealed, OLD.category, OLD.points, OLD.is_hidden, OLD.criteria, OLD.target)
    IS DISTINCT FROM (NEW.revealed, NEW.category, NEW.points, NEW.is_hidden, NEW.criteria, NEW.target))
  EXECUTE FUNCTION record_achievement_change();

-- Of what was written of the same thing among the next so many changes, the last is kept. Returns how many were looked at; 0 when
-- there are no more, or somebody else is at it. Whoever reads on from before has the last one still before them.
CREATE FUNCTION coalesce_changes(most integer) RETURNS integer LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  place change_places;
  reached change_places;
  seen integer;
BEGIN
  SELECT * INTO place FROM change_places WHERE name = 'coalesced' FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  -- A number beyond all of this server's is from another one, of which this database was a dump.
  IF place.changed_in >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN
    place.changed_in := 0;
  END IF;
  WITH next AS MATERIALIZED (
    SELECT changed_in, sequence, user_id, resource, id, kind FROM changes
      WHERE (changed_in, sequence) > (place.changed_in, place.sequence)
        AND changed_in < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      ORDER BY changed_in, sequence LIMIT most
  ), numbered AS (
    SELECT changed_in, sequence,
      row_number() OVER (PARTITION BY user_id, resource, id, kind ORDER BY changed_in DESC, sequence DESC) AS n FROM next
  ), gone AS (
    DELETE FROM changes c USING numbered d WHERE d.n > 1 AND c.changed_in = d.changed_in AND c.sequence = d.sequence
  ), last AS (
    SELECT changed_in, sequence FROM next ORDER BY changed_in DESC, sequence DESC LIMIT 1
  ) SELECT (SELECT count(*) FROM next), 'coalesced', last.changed_in, last.sequence INTO seen, reached.name, reached.changed_in, reached.sequence
    FROM last;
  IF seen > 0 THEN
    UPDATE change_places SET changed_in = reached.changed_in, sequence = reached.sequence WHERE name = 'coalesced';
  END IF;
  RETURN COALESCE(seen, 0);
END $$;

INSERT INTO compatible_migrations (name) VALUES ('RecordChanges1763700070000');
`);
    // Replicated changes are changes like any other.
    await runner.query(
      [
        ...ALWAYS.map(([table, trigger]) => `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${trigger};`),
        ...['participants', 'connections', 'user_achievements'].map(
          (table) => `ALTER TABLE ${table} ENABLE REPLICA TRIGGER ${table}_record_on_replication;`,
        ),
      ].join('\n'),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'RecordChanges1763700070000';
DROP FUNCTION coalesce_changes, record_achievement_change, record_new_earnings, record_earning_change, record_pins,
  record_new_connections, record_connection_change, record_new_participants, record_participant_change, was_hidden,
  record_event_change, record_user_change CASCADE;
DROP TABLE change_places, changes;
`);
  }
}

const ALWAYS: readonly (readonly [table: string, trigger: string])[] = [
  ['users', 'users_record_change'],
  ['events', 'events_record_change'],
  ['achievements', 'achievements_record_change'],
  ...['participants', 'connections', 'user_achievements'].flatMap((table) =>
    ['change', 'removal'].map((what) => [table, `${table}_record_${what}`] as const),
  ),
];
