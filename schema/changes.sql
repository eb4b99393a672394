-- Whether a mark's transaction numbers are above this server's: then it comes from another server's dump.
CREATE OR REPLACE FUNCTION is_foreign(mark pg_snapshot) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN pg_snapshot_xmax(mark)::text::bigint > pg_snapshot_xmax(pg_current_snapshot())::text::bigint;

-- Takes a mark, unless the last one is less than 1 s old or nothing was written since.
CREATE OR REPLACE FUNCTION take_change_mark() RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  -- Changes with each failover and restore, also with a restore into the same cluster.
  identity bigint := hashtextextended(concat_ws(' ', (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT oid FROM pg_database WHERE datname = current_database()),
    'changes'::regclass::oid), 0);
  known bigint := (SELECT changed_in FROM change_places WHERE name = 'identity');
BEGIN
  IF known IS DISTINCT FROM identity THEN
    INSERT INTO change_places (name, changed_in) VALUES ('identity', identity)
      ON CONFLICT (name) DO UPDATE SET changed_in = EXCLUDED.changed_in;
    -- Changes may have been undone after each client's position and each earlier mark.
    IF known IS NOT NULL THEN
      INSERT INTO change_places (name, changed_in, sequence)
        SELECT name, pg_current_xact_id()::text::bigint, 1 FROM unnest('{swept,platform_swept,restored}'::text[]) name
        ON CONFLICT (name) DO UPDATE SET (changed_in, sequence) = (EXCLUDED.changed_in, EXCLUDED.sequence);
    END IF;
  END IF;
  IF (SELECT is_foreign(snapshot::pg_snapshot) FROM change_marks ORDER BY taken_at DESC LIMIT 1) THEN
    DELETE FROM change_marks WHERE is_foreign(snapshot::pg_snapshot);
  END IF;
  INSERT INTO change_marks SELECT clock_timestamp(), pg_current_snapshot()::text
    WHERE NOT EXISTS (SELECT FROM (SELECT * FROM change_marks ORDER BY taken_at DESC LIMIT 1) last
      WHERE last.taken_at > clock_timestamp() - interval '1 s'
        OR pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= pg_snapshot_xmax(last.snapshot::pg_snapshot)::text::bigint + 1)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    -- After an hour, only marks of a minute's first 5 s remain: at least one per minute is enough.
    DELETE FROM change_marks WHERE taken_at < clock_timestamp() - interval '40 days'
      OR (taken_at BETWEEN clock_timestamp() - interval '65 minutes' AND clock_timestamp() - interval '1 hour'
        AND extract(second FROM taken_at) >= 5);
  END IF;
END $$;

-- The last mark at least 2 s before a moment, so that a client can send the time at which it received the previous response.
CREATE OR REPLACE FUNCTION last_mark_before(moment timestamptz) RETURNS pg_snapshot
  LANGUAGE sql STABLE PARALLEL SAFE SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN NOT is_foreign(snapshot::pg_snapshot) THEN snapshot::pg_snapshot END
    FROM change_marks WHERE taken_at <= moment - interval '2 s' ORDER BY taken_at DESC LIMIT 1
$$;

-- Whether a transaction became visible after the mark; true without a mark. Numbers above this server's come from a dump, and 0 is before every
-- mark. `mark` stands here once, so that PostgreSQL inlines the function.
CREATE OR REPLACE FUNCTION committed_after(transaction bigint, mark pg_snapshot) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN transaction IS NOT NULL AND COALESCE(NOT pg_visible_in_snapshot((
    CASE WHEN transaction < pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN transaction ELSE 0 END)::text::xid8, mark), true);

-- Whether the change log contains a removal of the record. Removing a record that was never visible causes no change.
CREATE OR REPLACE FUNCTION was_hidden(resource text, id bigint) RETURNS boolean
  LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM changes c WHERE c.user_id IS NULL AND c.resource = $1 AND c.id = $2 AND c.kind = 'removed')
$$;

-- Keeps only each record's last change among the next `most` changes. Returns the number checked: 0 if none are left or another call runs.
CREATE OR REPLACE FUNCTION coalesce_changes(most integer) RETURNS integer
  LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  place change_places;
  reached change_places;
  seen integer;
BEGIN
  SELECT * INTO place FROM change_places WHERE name = 'coalesced' FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  -- A number above this server's comes from another server's dump.
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
