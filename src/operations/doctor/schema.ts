import type { EntityManager } from 'typeorm';
import { FIRST_ID, LAST_ID } from '../demo/demo-data.js';

/** Tables whose ids come from a sequence, `<table>_id_seq`. */
const NUMBERED = ['users', 'events', 'connections', 'achievements'];

export interface LateSequence {
  readonly sequence: string;
  /** As text: both may exceed JavaScript's safe integers. */
  readonly last: string;
  readonly highest: string;
}

/** Without the demo's ids, which are deliberately far beyond those of any sequence. */
const HIGHEST = `max(id) FILTER (WHERE id NOT BETWEEN ${FIRST_ID} AND ${LAST_ID})`;

/** Finds sequences that will return an id already in use. */
export async function findLateSequences(manager: EntityManager): Promise<LateSequence[]> {
  const each = NUMBERED.map(
    (table) => `SELECT '${table}_id_seq' AS sequence, last_value::text AS last, (${HIGHEST})::text AS highest
FROM ${table}, ${table}_id_seq GROUP BY last_value HAVING ${HIGHEST} > last_value`,
  );
  return manager.query<LateSequence[]>(each.join(' UNION ALL '));
}

/** Moves late sequences past the highest ids. @returns 1 for each sequence moved */
export async function mendSequences(manager: EntityManager): Promise<Record<string, number>> {
  const late = await findLateSequences(manager);
  for (const { sequence } of late) {
    const table = sequence.replace(/_id_seq$/, '');
    // Never backwards: other sessions may have drawn numbers meanwhile.
    await manager.query(
      `SELECT setval('${sequence}', highest) FROM (SELECT ${HIGHEST} AS highest FROM ${table}) h
WHERE highest > (SELECT last_value FROM ${sequence})`,
    );
  }
  return Object.fromEntries(late.map(({ sequence }) => [sequence, 1]));
}

/** Finds time zones of events that the database does not know. */
export function findUnknownTimeZones(
  manager: EntityManager,
): Promise<{ timezone: string; events: number }[]> {
  return manager.query(
    `SELECT timezone, count(*) AS events FROM events
WHERE timezone NOT IN (SELECT name FROM pg_timezone_names) GROUP BY timezone ORDER BY timezone`,
  );
}

/** Triggers that fire only for changes replicated into this database. */
const ON_REPLICATION_ONLY = '_on_replication$';
/** Triggers that fire for those, too: they count, copy, refuse, and record changes. */
const ALWAYS =
  '(_count|_attendee|_derive|_queue_names|_copy_\\w+|_refuse_\\w+|_record_change|_record_removal)$';

/** Finds triggers that were disabled, or enabled otherwise than by the migrations. */
export async function findDisabledTriggers(
  manager: EntityManager,
): Promise<{ table: string; trigger: string; statement: string }[]> {
  return manager.query(
    `SELECT t.tgrelid::regclass::text AS table, t.tgname::text AS trigger,
  format('ALTER TABLE %s ENABLE %s TRIGGER %I', t.tgrelid::regclass,
    CASE w.wanted WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END, t.tgname) AS statement
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid,
  LATERAL (SELECT CASE WHEN t.tgname ~ $1 THEN 'R' WHEN t.tgname ~ $2 THEN 'A' END AS wanted) w
WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
  AND (t.tgenabled = 'D' OR t.tgenabled <> w.wanted::"char") ORDER BY 1, 2`,
    [ON_REPLICATION_ONLY, ALWAYS],
  );
}
