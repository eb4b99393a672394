import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Changes are recorded as before, for less. Functions that run for each row find their tables by a full name, and not by a search_path of
 * their own: to set that and take it back cost as much as the row that they write. And a trigger names the columns that matter, where
 * it had a condition: PostgreSQL parses a condition anew in every statement that updates the table, and looks at columns for nothing.
 * What is copied from an event or another person by a foreign key is in none of these columns.
 */
export class WriteChangesCheaply1763700121000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE OR REPLACE FUNCTION record_user_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.card <> NEW.card OR OLD.is_disabled <> NEW.is_disabled THEN
    INSERT INTO public.changes (resource, id, kind)
      VALUES ('people', NEW.id, CASE
        WHEN NEW.is_disabled AND NOT OLD.is_disabled THEN 'removed'
        WHEN OLD.is_disabled AND NOT NEW.is_disabled THEN 'returned' ELSE 'updated' END);
  END IF;
  IF (OLD.username, OLD.first_name, OLD.last_name, OLD.stored_display_name, OLD.bio, OLD.profile_picture, OLD.created_at)
    IS DISTINCT FROM (NEW.username, NEW.first_name, NEW.last_name, NEW.stored_display_name, NEW.bio, NEW.profile_picture, NEW.created_at) THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (NEW.id, 'profile', NEW.id, 'updated');
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_event_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind)
    VALUES ('events', NEW.id, CASE
      WHEN NOT (OLD.is_draft OR OLD.is_deleted) AND (NEW.is_draft OR NEW.is_deleted) THEN 'removed' ELSE 'updated' END);
  -- Nobody else is to know that there was a draft.
  IF OLD.is_draft AND NOT OLD.is_deleted AND NEW.is_deleted THEN
    INSERT INTO public.changes (user_id, resource, id, kind) SELECT user_id, 'events', NEW.id, 'removed' FROM public.participants
      WHERE event_id = NEW.id AND public.event_visible(role, true, false);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_participant_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.event_id, OLD.role, OLD.rsvp_status, OLD.responded_at, OLD.checked_in_at)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.event_id, NEW.role, NEW.rsvp_status, NEW.responded_at, NEW.checked_in_at) THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.event_id) <> (NEW.user_id, NEW.event_id)) THEN
    IF OLD.is_visible OR public.was_hidden('events', OLD.event_id) THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'events', OLD.event_id, 'removed');
    END IF;
    IF OLD.role = 'co_organizer' THEN
      INSERT INTO public.changes (resource, id, kind) VALUES ('events', OLD.event_id, 'updated');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.is_visible OR (TG_OP = 'UPDATE' AND OLD.is_visible) THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'events', NEW.event_id, CASE WHEN NEW.is_visible THEN 'updated' ELSE 'removed' END);
  END IF;
  -- Everybody sees who organises it.
  IF (NEW.role = 'co_organizer') <> (TG_OP = 'UPDATE' AND OLD.role = 'co_organizer' AND OLD.user_id = NEW.user_id AND OLD.event_id = NEW.event_id) THEN
    INSERT INTO public.changes (resource, id, kind) VALUES ('events', NEW.event_id, 'updated');
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_new_participants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'events', event_id, 'updated' FROM new_rows WHERE is_visible
    UNION ALL SELECT NULL, 'events', event_id, 'updated' FROM new_rows WHERE role = 'co_organizer';
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_connection_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.id, OLD.peer_id, OLD.status, OLD.source, OLD.met_at_event_id, OLD.requested_at, OLD.connected_at)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.id, NEW.peer_id, NEW.status, NEW.source, NEW.met_at_event_id, NEW.requested_at, NEW.connected_at)
    THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.id) <> (NEW.user_id, NEW.id)) THEN
    IF NOT OLD.peer_is_disabled OR public.was_hidden('people', OLD.peer_id) THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'connections', OLD.id, 'removed');
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NOT NEW.peer_is_disabled OR (TG_OP = 'UPDATE' AND NOT OLD.peer_is_disabled) THEN
    INSERT INTO public.changes (user_id, resource, id, kind)
      VALUES (NEW.user_id, 'connections', NEW.id, CASE WHEN NEW.peer_is_disabled THEN 'removed' ELSE 'updated' END);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_new_connections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'connections', id, 'updated' FROM new_rows WHERE NOT peer_is_disabled;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_earning_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  -- Not read where there is none: OLD of an INSERT, NEW of a DELETE.
  old_pin smallint := CASE WHEN TG_OP <> 'INSERT' THEN OLD.pin_position END;
  new_pin smallint := CASE WHEN TG_OP <> 'DELETE' THEN NEW.pin_position END;
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.user_id, OLD.achievement_id, OLD.progress, OLD.earned_at, OLD.pin_position)
    IS NOT DISTINCT FROM (NEW.user_id, NEW.achievement_id, NEW.progress, NEW.earned_at, NEW.pin_position) THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (OLD.user_id, OLD.achievement_id) <> (NEW.user_id, NEW.achievement_id)) THEN
    IF OLD.earned_at IS NOT NULL THEN
      INSERT INTO public.changes (user_id, resource, id, kind) VALUES (OLD.user_id, 'achievements', OLD.achievement_id, 'removed');
    END IF;
    IF old_pin IS NOT NULL THEN PERFORM public.record_pins(OLD.user_id); END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN NULL; END IF;
  IF NEW.earned_at IS NOT NULL OR (TG_OP = 'UPDATE' AND OLD.earned_at IS NOT NULL) THEN
    INSERT INTO public.changes (user_id, resource, id, kind) VALUES (NEW.user_id, 'achievements', NEW.achievement_id,
      CASE WHEN NEW.earned_at IS NULL THEN 'removed' ELSE 'updated' END);
  END IF;
  IF new_pin IS DISTINCT FROM old_pin THEN PERFORM public.record_pins(NEW.user_id); END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_pins(of_user bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM public.user_achievements WHERE user_id = of_user AND pin_position IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION record_new_earnings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (user_id, resource, id, kind)
    SELECT user_id, 'achievements', achievement_id, 'updated' FROM new_rows WHERE earned_at IS NOT NULL;
  PERFORM public.record_pins(user_id) FROM new_rows WHERE pin_position IS NOT NULL GROUP BY user_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION record_achievement_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.changes (resource, id, kind) VALUES ('achievements', NEW.id, 'updated');
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.is_visible THEN
    INSERT INTO public.user_totals (user_id, events_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_visible THEN
    INSERT INTO public.user_totals (user_id, events_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_attendees() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.rsvp_status = 'going' THEN
    INSERT INTO public.event_totals VALUES (OLD.event_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.rsvp_status = 'going' THEN
    INSERT INTO public.event_totals VALUES (NEW.event_id, 1);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_connections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.status = 'accepted' AND NOT OLD.peer_is_disabled THEN
    INSERT INTO public.user_totals (user_id, connections_count) VALUES (OLD.user_id, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.status = 'accepted' AND NOT NEW.peer_is_disabled THEN
    INSERT INTO public.user_totals (user_id, connections_count) VALUES (NEW.user_id, 1);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_achievements() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.earned_at IS NOT NULL THEN
    INSERT INTO public.user_totals (user_id, achievements_count) VALUES (OLD.user_id, -1);
    IF NOT OLD.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (OLD.achievement_id, -1); END IF;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.earned_at IS NOT NULL THEN
    INSERT INTO public.user_totals (user_id, achievements_count) VALUES (NEW.user_id, 1);
    IF NOT NEW.user_is_disabled THEN INSERT INTO public.achievement_total_deltas VALUES (NEW.achievement_id, 1); END IF;
  END IF;
  RETURN NULL;
END $$;
`);
    await runner.query(replaceTriggers(byColumns));
    await runner.query(NAMELESS.map((name) => `ALTER FUNCTION ${name} RESET search_path;`).join('\n'));
    await runner.query(
      "INSERT INTO compatible_migrations (name) VALUES ('WriteChangesCheaply1763700121000')",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM compatible_migrations WHERE name = 'WriteChangesCheaply1763700121000'");
    await runner.query(replaceTriggers(byCondition));
    await runner.query(
      [...NAMELESS, ...REPLACED]
        .map((name) => `ALTER FUNCTION ${name} SET search_path = public, pg_temp;`)
        .join('\n'),
    );
  }
}

/** These name no table and no function of ours. */
const NAMELESS = ['users_bump_version', 'events_derive', 'mark_change', 'mark_event_change'];

const REPLACED = [
  'record_user_change',
  'record_event_change',
  'record_participant_change',
  'record_new_participants',
  'record_connection_change',
  'record_new_connections',
  'record_earning_change',
  'record_pins',
  'record_new_earnings',
  'record_achievement_change',
  'count_events',
  'count_attendees',
  'count_connections',
  'count_achievements',
];

interface RecordTrigger {
  readonly table: string;
  readonly routine: string;
  readonly columns: readonly string[];
  /** SQL: what it was before this migration. */
  readonly condition: string;
}

const differ = (columns: readonly string[]) =>
  `(${columns.map((column) => `OLD.${column}`).join(', ')}) IS DISTINCT FROM (${columns.map((column) => `NEW.${column}`).join(', ')})`;

const PROFILE = [
  'username',
  'first_name',
  'last_name',
  'stored_display_name',
  'bio',
  'profile_picture',
  'created_at',
];
const ANSWER = ['user_id', 'event_id', 'role', 'rsvp_status', 'responded_at', 'checked_in_at'];
const CONNECTION = [
  'user_id',
  'id',
  'peer_id',
  'status',
  'source',
  'met_at_event_id',
  'requested_at',
  'connected_at',
];
const EARNING = ['user_id', 'achievement_id', 'progress', 'earned_at', 'pin_position'];

const TRIGGERS: readonly RecordTrigger[] = [
  {
    table: 'users',
    routine: 'record_user_change',
    columns: [...PROFILE, 'disabled_at'],
    condition: `OLD.is_disabled <> NEW.is_disabled OR OLD.card <> NEW.card OR ${differ(PROFILE)}`,
  },
  { table: 'participants', routine: 'record_participant_change', columns: ANSWER, condition: differ(ANSWER) },
  {
    table: 'connections',
    routine: 'record_connection_change',
    columns: CONNECTION,
    condition: differ(CONNECTION),
  },
  {
    table: 'user_achievements',
    routine: 'record_earning_change',
    columns: EARNING,
    condition: `(OLD.earned_at IS NOT NULL OR NEW.earned_at IS NOT NULL) AND ${differ(EARNING)}`,
  },
];

const byColumns = ({ columns }: RecordTrigger) => ({ of: `OF ${columns.join(', ')}`, when: '' });
const byCondition = ({ condition }: RecordTrigger) => ({ of: '', when: `WHEN (${condition})` });

function replaceTriggers(fires: (trigger: RecordTrigger) => { of: string; when: string }): string {
  return TRIGGERS.map((trigger) => {
    const { table, routine } = trigger;
    const { of, when } = fires(trigger);
    return `DROP TRIGGER ${table}_record_change ON ${table};
CREATE TRIGGER ${table}_record_change AFTER UPDATE ${of} ON ${table} FOR EACH ROW ${when} EXECUTE FUNCTION ${routine}();
ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${table}_record_change;`;
  }).join('\n');
}
