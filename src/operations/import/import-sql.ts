import { columnList, staged, type RecordType } from './record-type.js';

/** PostgreSQL, appendix A: somebody else changed the same rows first, or what they refer to. */
const LOST_RACE = /^(23503|23505|23P01|40001|40P01)$/;

/** Tells whether somebody else changed the same rows first: in another transaction, the same may succeed. */
export function isLostRace(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return LOST_RACE.test(String(code)) || (cause !== undefined && isLostRace(cause));
}

/** Column → SQL of its new value. */
export const valuesOf = (
  type: RecordType,
  keepProfile: boolean | undefined,
): Readonly<Record<string, string>> => (keepProfile ? { ...type.values, ...type.kept } : type.values);

/** Condition on a staged row `s` and the stored one, `t`: whether writing it changes anything, in these columns. */
export function differs(
  type: RecordType,
  keepProfile: boolean | undefined,
  only?: readonly string[],
): string {
  const values = { ...valuesOf(type, keepProfile), ...type.compared };
  const columns = only ?? Object.keys(values);
  return `(${columns.map((column) => values[column]!).join(', ')}) IS DISTINCT FROM (${columnList(columns, 't')})`;
}

/**
 * Changes the rows that are there, locked in the order of their keys: first where {@link RecordType.referred} columns change, then the
 * others. One statement that could write such a column locks every row against those who only refer to it, with a consent for
 * example; so does INSERT … ON CONFLICT DO UPDATE.
 */
export function updateSql(type: RecordType, keepProfile: boolean | undefined): string[] {
  const values = valuesOf(type, keepProfile);
  const { name, key, source, joins = '', referred = [] } = type;
  const others = Object.keys(values).filter((column) => !key.includes(column) && !referred.includes(column));
  const [stored, wanted] = [columnList(key, 't'), columnList(key, 's')];
  return [referred, others]
    .filter(({ length }) => length > 0)
    .map(
      (columns) => `WITH changing AS MATERIALIZED (
  SELECT ${stored} FROM ${source} JOIN ${name} t ON (${stored}) = (${wanted}) WHERE ${differs(type, keepProfile, columns)}
  ORDER BY ${stored} FOR NO KEY UPDATE OF t
)
UPDATE ${name} t SET ${columns.map((column) => `${column} = ${values[column]!}`).join(', ')}
FROM ${source} ${joins} WHERE (${stored}) = (${wanted}) AND (${wanted}) IN (SELECT * FROM changing)`,
    );
}

/**
 * Locks what records of these types refer to, and before that the members among them whose {@link RecordType.referred} columns change,
 * with all that change then: in the order of their ids, so that a feed of members and one of what refers to them never wait for each
 * other.
 */
export function lockSql(types: readonly RecordType[], keepProfile: boolean | undefined): string[] {
  const changed = types.flatMap((type) => {
    const { name, source, referred } = type;
    if (!referred) return [];
    const changing = (columns?: readonly string[]) =>
      `SELECT t.id FROM ${source} JOIN ${name} t USING (id) WHERE ${differs(type, keepProfile, columns)}`;
    return [
      `${changing()} AND EXISTS (${changing(referred)}) ORDER BY t.id FOR NO KEY UPDATE OF t`,
      `${changing(referred)} ORDER BY t.id FOR UPDATE OF t`,
    ];
  });
  const ids = types.flatMap(({ name, sides, removal, refersTo }) => [
    ...refersTo.map(({ column, table }) => ({ table, sql: `SELECT ${column} FROM ${staged(name)}` })),
    // By the id of a connection alone, nobody is named.
    ...(sides ? [{ table: 'users', sql: `SELECT user_id FROM (${removal.rows}) r` }] : []),
  ]);
  const referred = [...Map.groupBy(ids, ({ table }) => table)].map(
    ([table, some]) =>
      `SELECT id FROM ${table} WHERE id IN (${some.map(({ sql }) => sql).join(' UNION ALL ')}) ORDER BY id FOR KEY SHARE`,
  );
  return [...changed, ...referred].map((lock) => `SELECT count(*) FROM (${lock}) locked`);
}

/** Writes the rows that are new. */
export function insertSql(type: RecordType, keepProfile: boolean | undefined): string {
  const values = valuesOf(type, keepProfile);
  return `INSERT INTO ${type.name} (${Object.keys(values).join(', ')})
SELECT ${Object.values(values).join(', ')} FROM ${withPresent(type)} ${type.joins ?? ''}
WHERE t.${type.key[0]!} IS NULL ORDER BY ${columnList(type.key, 's')} ${type.joins ? 'FOR KEY SHARE OF o' : ''}`;
}

/** Staged rows `s` with the stored rows, `t`. */
export const withPresent = ({ source, name, key }: RecordType): string =>
  `${source} LEFT JOIN ${name} t ON (${columnList(key, 't')}) = (${columnList(key, 's')})`;

/** SQL of the member and the id under which the version of a staged record `s` is stored; 0 if it belongs to no member. */
const versionKey = ({ version }: RecordType): string =>
  version.length > 1 ? columnList(version, 's') : `0, ${columnList(version, 's')}`;

/**
 * Leaves out records whose stored version is the same or later, and says how many (`n`). The stored versions cannot change until
 * the records are written: they are locked, in order. Each is looked up separately: the planner's statistics on either table are as
 * old as the last ANALYZE.
 */
export const dropStaleSql = (type: RecordType): string => `WITH wanted AS MATERIALIZED (
  SELECT * FROM (SELECT line, ${versionKey(type)}, version FROM ${staged(type.name)} s) s (line, user_id, id, version)
  WHERE version IS NOT NULL ORDER BY 2, 3
), known AS MATERIALIZED (
  SELECT w.line FROM wanted w CROSS JOIN LATERAL (
    SELECT v.version FROM record_versions v WHERE v.type = $1 AND v.user_id = w.user_id AND v.id = w.id FOR UPDATE
  ) v WHERE w.version <= v.version
), gone AS (
  DELETE FROM ${staged(type.name)} s WHERE s.line IN (SELECT line FROM known) RETURNING 1
) SELECT count(*) AS n FROM gone`;

/** One conditional write: of two at the same moment, the later version wins, whichever comes first. `n`: how many lost. */
export const recordVersionsSql = (type: RecordType): string => `WITH recorded AS (
  INSERT INTO record_versions AS v (type, user_id, id, version)
  SELECT $1, ${versionKey(type)}, s.version FROM ${staged(type.name)} s WHERE s.version IS NOT NULL ORDER BY 2, 3
  ON CONFLICT (type, user_id, id) DO UPDATE SET version = EXCLUDED.version WHERE v.version < EXCLUDED.version
  RETURNING 1
) SELECT (SELECT count(version) FROM ${staged(type.name)}) - (SELECT count(*) FROM recorded) AS n`;
