import type { RecordType } from './record-types.js';

/** Column → SQL of its new value. */
function valuesOf(type: RecordType, keepProfile: boolean): Readonly<Record<string, string>> {
  return { ...type.values, ...(keepProfile ? type.kept : {}) };
}

/** Condition on a staged row `s` and the stored one, `t`: whether writing it changes anything, in these columns. */
export function differs(type: RecordType, keepProfile: boolean, only?: readonly string[]): string {
  const values = valuesOf(type, keepProfile);
  const columns = only ?? Object.keys(values);
  const wanted = columns.map((column) => type.compared?.[column] ?? values[column]!);
  return `(${wanted.join(', ')}) IS DISTINCT FROM (${columns.map((column) => `t.${column}`).join(', ')})`;
}

/**
 * Changes the rows that are there, locked in the order of their keys: first where {@link RecordType.referred} columns change, then the
 * others. One statement that could write such a column locks every row against those who only refer to it, with a consent for
 * example; so does INSERT … ON CONFLICT DO UPDATE.
 */
export function updateSql(type: RecordType, keepProfile: boolean): string[] {
  const values = valuesOf(type, keepProfile);
  const { referred = [] } = type;
  const others = Object.keys(values).filter(
    (column) => !type.key.includes(column) && !referred.includes(column),
  );
  const key = (of: string) => type.key.map((column) => `${of}.${column}`).join(', ');
  return [referred, others]
    .filter(({ length }) => length > 0)
    .map(
      (columns) => `WITH changing AS MATERIALIZED (
  SELECT ${key('t')} FROM ${type.source} JOIN ${type.name} t ON (${key('t')}) = (${key('s')}) WHERE ${differs(type, keepProfile, columns)}
  ORDER BY ${key('t')} FOR NO KEY UPDATE OF t
)
UPDATE ${type.name} t SET ${columns.map((column) => `${column} = ${values[column]!}`).join(', ')}
FROM ${type.source} ${type.joins ?? ''} WHERE (${key('t')}) = (${key('s')}) AND (${key('s')}) IN (SELECT * FROM changing)`,
    );
}

/** Writes the rows that are new. */
export function insertSql(type: RecordType, keepProfile: boolean): string {
  const values = valuesOf(type, keepProfile);
  return `INSERT INTO ${type.name} (${Object.keys(values).join(', ')})
SELECT ${Object.values(values).join(', ')} FROM ${withPresent(type)} ${type.joins ?? ''}
WHERE t.${type.key[0]!} IS NULL ORDER BY ${type.key.map((column) => `s.${column}`).join(', ')}
${type.joins ? 'FOR KEY SHARE OF o' : ''}`;
}

/** Staged rows `s` with the stored rows, `t`. */
export function withPresent({ source, name, key }: RecordType): string {
  return `${source} LEFT JOIN ${name} t ON ${key.map((column) => `t.${column} = s.${column}`).join(' AND ')}`;
}

/** SQL of the member and the id under which the version of a staged record `s` is stored; 0 if it belongs to no member. */
export function versionKey({ version }: RecordType): readonly [user: string, id: string] {
  const [first, second] = version.map((column) => `s.${column}`) as [string, string?];
  return second === undefined ? ['0', first] : [first, second];
}
