import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What `updated_since` goes by beside the platform's own updated_at: in which transaction a row changed last. Moments would not
 * do: a long transaction (an import, say) stamps its rows long before others can see them, and who polls would miss them.
 *
 * `change_marks` holds which transactions had ended at a moment, so that what was committed after it is known exactly. A mark
 * that is missing only makes an answer hold more than it must.
 */
export class MarkChanges1763700031000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- Numbers of transactions (xid8, which entities cannot say). NULL: not since the row came here (events), or since its member did (participants).
ALTER TABLE events ADD COLUMN changed_in bigint;
ALTER TABLE participants ADD COLUMN changed_in bigint;
ALTER TABLE participants ALTER COLUMN changed_in SET DEFAULT pg_current_xact_id()::text::bigint;

CREATE FUNCTION mark_change() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;
CREATE TRIGGER events_mark_change BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION mark_change();
CREATE TRIGGER participants_mark_change BEFORE UPDATE ON participants FOR EACH ROW EXECUTE FUNCTION mark_change();
-- Replicated rows bring the numbers of another server's transactions.
CREATE TRIGGER events_mark_on_replication BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION mark_change();
CREATE TRIGGER participants_mark_on_replication BEFORE INSERT ON participants FOR EACH ROW EXECUTE FUNCTION mark_change();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_mark_change, ENABLE REPLICA TRIGGER events_mark_on_replication;
ALTER TABLE participants ENABLE ALWAYS TRIGGER participants_mark_change, ENABLE REPLICA TRIGGER participants_mark_on_replication;

CREATE TABLE change_marks (
  -- At or after the moment of the snapshot.
  taken_at timestamptz PRIMARY KEY,
  -- A pg_snapshot.
  snapshot text NOT NULL CHECK (snapshot::pg_snapshot IS NOT NULL)
);

-- Takes a mark, unless there is one of this second, or nothing but the last mark was written since. One a second is kept for
-- an hour, then one a minute for 40 days.
CREATE FUNCTION take_change_mark() RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text
    WHERE NOT EXISTS (SELECT FROM (SELECT * FROM change_marks ORDER BY taken_at DESC LIMIT 1) last
      WHERE last.taken_at > clock_timestamp() - interval '1 s'
        OR pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= pg_snapshot_xmax(last.snapshot::pg_snapshot)::text::bigint + 1)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    DELETE FROM change_marks WHERE taken_at < clock_timestamp() - interval '40 days'
      OR (taken_at BETWEEN clock_timestamp() - interval '65 minutes' AND clock_timestamp() - interval '1 hour'
        AND extract(second FROM taken_at) >= 5);
  END IF;
END $$;

-- Whether what was written in this transaction could be seen only after the moment; of a moment without a mark, yes. Two seconds
-- before it, so that the time at which an answer was received is early enough for the next question.
CREATE FUNCTION last_mark_before(moment timestamptz) RETURNS pg_snapshot LANGUAGE sql STABLE PARALLEL SAFE SET search_path = public, pg_temp AS $$
  SELECT snapshot::pg_snapshot FROM change_marks WHERE taken_at <= moment - interval '2 s' ORDER BY taken_at DESC LIMIT 1
$$;
-- A number beyond all of this server's is from another one, of which this database was a dump.
CREATE FUNCTION committed_after(transaction bigint, mark pg_snapshot) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN transaction IS NOT NULL AND transaction < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    AND COALESCE(NOT pg_visible_in_snapshot(transaction::text::xid8, mark), true);
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP FUNCTION committed_after, last_mark_before, take_change_mark;
DROP TABLE change_marks;
DROP FUNCTION mark_change CASCADE;
ALTER TABLE participants DROP COLUMN changed_in;
ALTER TABLE events DROP COLUMN changed_in;
`);
  }
}
