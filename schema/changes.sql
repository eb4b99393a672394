-- Takes a mark, unless there is one of this second, or nothing but the last mark was written since. One a second is
-- kept for an hour, then one a minute for 40 days.
CREATE OR REPLACE FUNCTION take_change_mark() RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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

-- Whether what was written in this transaction could be seen only after the moment; of a moment without a mark, yes.
-- Two seconds before it, so that the time at which an answer was received is early enough for the next question.
CREATE OR REPLACE FUNCTION last_mark_before(moment timestamptz) RETURNS pg_snapshot
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = public, pg_temp AS $$
  SELECT snapshot::pg_snapshot FROM change_marks WHERE taken_at <= moment - interval '2 s' ORDER BY taken_at DESC LIMIT 1
$$;

-- A number beyond all of this server's is from another one, of which this database was a dump.
CREATE OR REPLACE FUNCTION committed_after(transaction bigint, mark pg_snapshot) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN transaction IS NOT NULL AND transaction < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    AND COALESCE(NOT pg_visible_in_snapshot(transaction::text::xid8, mark), true);

-- Records that were never visible cause no change when they are removed.
CREATE OR REPLACE FUNCTION was_hidden(resource text, id bigint) RETURNS boolean
  LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM changes c WHERE c.user_id IS NULL AND c.resource = $1 AND c.id = $2 AND c.kind = 'removed')
$$;

-- Keeps only the last change of each record among the next so many changes. Returns how many were checked; 0 if
-- there are no more, or another call is running. A reader whose cursor is earlier still gets the last one.
CREATE OR REPLACE FUNCTION coalesce_changes(most integer) RETURNS integer
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
