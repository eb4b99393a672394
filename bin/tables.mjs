/**
 * Draws the tables of a migrated database, with their keys and references: Mermaid's entity relationship diagram.
 *
 * @param {readonly {name: string, statement: string}[]} objects as `readObjects` returns them
 */
export function drawTables(objects) {
  const tables = new Map(
    objects
      .filter(({ name }) => name.startsWith('table '))
      .map(({ name, statement }) => {
        const columns = Array.from(
          statement.matchAll(/^ {2}(\w+) (\w+)(.*)$/gm),
          ([, column, type, rest]) => [
            column,
            { type, isRequired: / NOT NULL,?$/.test(rest), keys: new Set() },
          ],
        );
        return [name.slice('table '.length), new Map(columns)];
      }),
  );
  const references = [];
  for (const { statement } of objects) {
    const key =
      /^ALTER TABLE (\w+) ADD CONSTRAINT \w+ (PRIMARY|FOREIGN) KEY \(([^)]+)\)(?: REFERENCES (\w+))?/.exec(
        statement,
      );
    if (!key) continue;
    const [, table, kind, list, target] = key;
    const columns = list.split(', ').map((column) => tables.get(table).get(column));
    for (const { keys } of columns) keys.add(kind === 'PRIMARY' ? 'PK' : 'FK');
    if (target)
      references.push(
        `  ${target} ${columns.every(({ isRequired }) => isRequired) ? '||' : '|o'}--o{ ${table} : ${list.split(', ')[0]}`,
      );
  }
  const boxes = [...tables].map(([table, columns]) => {
    const lines = [...columns]
      .filter(([, { keys }]) => keys.has('PK'))
      .map(
        ([column, { type, keys }]) =>
          `    ${type} ${column} ${['PK', 'FK'].filter((key) => keys.has(key)).join(', ')}`,
      );
    return [`  ${table} {`, ...lines, '  }'].join('\n');
  });
  return ['```mermaid', 'erDiagram', ...references, ...boxes, '```'].join('\n');
}
