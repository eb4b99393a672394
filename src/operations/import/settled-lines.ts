import type { EntityManager } from 'typeorm';
import { columnsOf } from './fields.js';
import type { RecordType } from './record-type.js';
import { recordKeys, type ReadLine } from './sources.js';

type Row = Record<string, unknown>;

/** The rows that count so far under a key of a record. */
interface Said {
  readonly put?: Row;
  readonly removal?: Row;
}

/**
 * Decides, line by line, which lines about the same record count, so that all of them can be written at once: a record that is named a
 * thousand times costs a thousand lines, and one write. Rows that a later line replaces are marked, and stay, because they have to be
 * valid, too; lines without a new version do not.
 *
 * @returns the lines to write, and how many lines have no effect
 */
export async function settle(
  manager: EntityManager,
  lines: readonly ReadLine[],
): Promise<{ readonly lines: readonly ReadLine[]; readonly stale: number }> {
  const versions = await storedVersions(manager, lines);
  const said = new Map<string, Said>();
  const kept: ReadLine[] = [];
  const replaced = new Set<Row>();
  let outdated = 0;
  for (const given of lines) {
    const { type } = given;
    // A feed that collides with another one is settled again, by what is stored then.
    const row = given.row && { ...given.row };
    const line = row ? { ...given, row } : given;
    if (type && row) {
      const name = versionName(type, row);
      const { version } = row as { version?: number };
      if (version !== undefined && version <= (versions.get(name) ?? -1)) {
        outdated++;
        continue;
      }
      if (version !== undefined) versions.set(name, version);
      row.counts = true;
      const keys = recordKeys(line);
      const before = keys.map((key) => said.get(key) ?? {});
      for (const one of replacedBy(type, row, before)) {
        one.counts = false;
        replaced.add(one);
      }
      for (const one of before.flatMap(({ put, removal }) => [put, removal])) {
        // The last one brings the version of all of them.
        if (one?.version === undefined || versionName(type, one) !== versionName(type, row)) continue;
        row.version ??= one.version;
        delete one.version;
      }
      for (const [i, key] of keys.entries())
        said.set(key, { ...before[i], [row.deleted ? 'removal' : 'put']: row });
    }
    kept.push(line);
  }
  return { lines: kept, stale: outdated + replaced.size };
}

/** The rows that have no effect once there is `row`. @param before what counts under each of its keys */
function replacedBy(type: RecordType, row: Row, before: readonly Said[]): Row[] {
  const { ends, remove } = type.removal;
  const puts = rowsOf(before, 'put');
  const removals = rowsOf(before, 'removal');
  if (row.deleted) {
    // What ends but stays has to be there first. Who was erased does not come back: the rules tell by the first removal.
    if (remove) return [];
    if (ends) return removals;
    for (const column of type.version) row[column] ??= puts[0]?.[column] ?? null;
    return [...removals, ...puts];
  }
  // Of the same two members, where an id alone is not the record.
  const same = before.slice(-1);
  const [earlier] = rowsOf(same, 'put');
  if (earlier?.counts) sayWhatIsSilent(type, row, earlier);
  return [...rowsOf(same, 'put'), ...(remove ? [] : rowsOf(same, 'removal'))];
}

const rowsOf = (before: readonly Said[], of: keyof Said): Row[] =>
  before.map((said) => said[of]).filter((row) => row !== undefined);

/** What a record does not say stays as it was, as an earlier line said it. */
function sayWhatIsSilent({ fields }: RecordType, row: Row, earlier: Row): void {
  for (const [column, { absentIs }] of columnsOf(fields)) {
    const says = `says_${column}`;
    if (!absentIs || (absentIs === 'as it was' ? row[says] : row[column] !== null)) continue;
    row[column] = earlier[column];
    if (absentIs === 'as it was') row[says] = earlier[says];
  }
}

/** Locks, in order, the versions that are stored of the records. */
async function storedVersions(
  manager: EntityManager,
  lines: readonly ReadLine[],
): Promise<Map<string, number>> {
  const wanted = lines.flatMap(({ type, row }) =>
    type && row?.version !== undefined ? [placeOf(type, row)] : [],
  );
  if (wanted.length === 0) return new Map();
  const stored = await manager.query<{ name: string; version: number }[]>(
    `SELECT concat_ws(' ', w.type, w.user_id, w.id) AS name, v.version
FROM (SELECT DISTINCT * FROM jsonb_to_recordset($1::jsonb) AS r (type text, user_id bigint, id bigint) ORDER BY 1, 2, 3) w
CROSS JOIN LATERAL (
  SELECT v.version FROM record_versions v WHERE v.type = w.type AND v.user_id = w.user_id AND v.id = w.id FOR UPDATE
) v`,
    [JSON.stringify(wanted)],
  );
  return new Map(stored.map(({ name, version }) => [name, version]));
}

function placeOf({ name, version }: RecordType, row: Row): { type: string; user_id: unknown; id: unknown } {
  const [first, second] = version.map((column) => row[column]) as [unknown, unknown?];
  return second === undefined
    ? { type: name, user_id: 0, id: first }
    : { type: name, user_id: first, id: second };
}

function versionName(type: RecordType, row: Row): string {
  return Object.values(placeOf(type, row)).join(' ');
}
