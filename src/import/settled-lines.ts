import { columnsOf, type Fields, type StagedRow } from './fields.js';
import type { RecordType } from './record-type.js';
import { recordKeys, type ReadLine } from './sources.js';
import type { Staging } from './staging.js';

/**
 * Deduplicates lines about the same record: marks rows that a later line replaces, and drops lines whose version is not newer.
 * @returns the lines to stage, and the number of lines without effect
 */
export async function settle(
  staging: Staging,
  lines: readonly ReadLine[],
): Promise<{ readonly lines: readonly ReadLine[]; readonly stale: number }> {
  const versions = await storedVersions(staging, lines);
  /** Effective rows by record key: at most one put and one removal of each record. */
  const said = new Map<string, readonly StagedRow[]>();
  const kept: ReadLine[] = [];
  for (const given of lines) {
    const { type } = given;
    // Copies the row, since the same lines are deduplicated again after a lost race.
    const row = given.row && { ...given.row };
    const line = row ? { ...given, row } : given;
    if (type && row) {
      const name = versionName(type, row);
      const { version } = row as { version?: number };
      if (version !== undefined && version <= (versions.get(name) ?? -1)) continue;
      if (version !== undefined) versions.set(name, version);
      row.counts = true;
      const keys = recordKeys(line);
      const before = keys.map((key) => said.get(key) ?? []);
      for (const one of replacedBy(type, row, before)) one.counts = false;
      for (const one of before.flat()) {
        // Only the last row of a record keeps the version.
        if (one.version === undefined || versionName(type, one) !== versionName(type, row)) continue;
        row.version ??= one.version;
        delete one.version;
      }
      for (const [i, key] of keys.entries())
        said.set(key, [...before[i]!.filter(({ deleted }) => deleted !== row.deleted), row]);
    }
    kept.push(line);
  }
  const written = kept.filter(({ row }) => row?.counts !== false);
  return { lines: kept, stale: lines.length - written.length };
}

/** Returns the rows that `row` replaces. @param before effective rows for each of its keys */
function replacedBy(
  { fields, removal: { ends, remove }, version }: RecordType,
  row: StagedRow,
  before: readonly (readonly StagedRow[])[],
): readonly StagedRow[] {
  const isPut = ({ deleted }: StagedRow) => deleted === false;
  if (row.deleted) {
    // Replaces no lines: the record must exist before its removal, and rules reject later lines about an erased member.
    if (remove) return [];
    const all = before.flat();
    if (ends) return all.filter((one) => !isPut(one));
    for (const column of version) row[column] ??= all.find(isPut)?.[column] ?? null;
    return all;
  }
  // Compares by the last key; for a connection, this key consists of its two members.
  const same = before.at(-1) ?? [];
  const earlier = same.find(isPut);
  if (earlier?.counts) sayWhatIsSilent(fields, row, earlier);
  return remove ? same.filter(isPut) : same;
}

/** If an omitted field keeps the stored value, copies the value of the earlier line. */
function sayWhatIsSilent(fields: Fields, row: StagedRow, earlier: StagedRow): void {
  for (const [column, { absent }] of columnsOf(fields)) {
    if (absent === 'the time of the import') row[column] ??= earlier[column];
    const says = `says_${column}`;
    if (absent !== 'unchanged; null for a new member' || row[says]) continue;
    row[column] = earlier[column];
    row[says] = earlier[says];
  }
}

/** Reads and locks the stored versions of the records, in key order. */
async function storedVersions(staging: Staging, lines: readonly ReadLine[]): Promise<Map<string, number>> {
  const versioned = lines.filter(({ row }) => row?.version !== undefined);
  const wanted = versioned.map(({ type, row }) => placeOf(type!, row!));
  if (wanted.length === 0) return new Map();
  const stored = await staging.rows<{ name: string; version: number }>(
    `SELECT concat_ws(' ', w.type, w.user_id, w.id) AS name, v.version
FROM (SELECT DISTINCT * FROM jsonb_to_recordset($1::jsonb) AS r (type text, user_id bigint, id bigint) ORDER BY 1, 2, 3) w
CROSS JOIN LATERAL (
  SELECT v.version FROM record_versions v WHERE v.type = w.type AND v.user_id = w.user_id AND v.id = w.id FOR UPDATE
) v`,
    [JSON.stringify(wanted)],
  );
  return new Map(stored.map(({ name, version }) => [name, version]));
}

function placeOf({ name, version }: RecordType, row: StagedRow) {
  const [first, second] = version.map((column) => row[column]) as [unknown, unknown?];
  return second === undefined
    ? { type: name, user_id: 0, id: first }
    : { type: name, user_id: first, id: second };
}

const versionName = (type: RecordType, row: StagedRow) => Object.values(placeOf(type, row)).join(' ');
