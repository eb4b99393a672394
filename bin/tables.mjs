/**
 * Draws the tables of a migrated database, with their primary keys and references: Mermaid's entity relationship diagram.
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
          ([, column, type, rest]) => [column, { type, isRequired: / NOT NULL,?$/.test(rest), isKey: false }],
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
    if (kind === 'PRIMARY') for (const column of columns) column.isKey = true;
    if (target)
      references.push(
        `  ${target} ${columns.every(({ isRequired }) => isRequired) ? '||' : '|o'}--o{ ${table} : ${list.split(', ')[0]}`,
      );
  }
  const boxes = [...tables].map(([table, columns]) => {
    const lines = [...columns]
      .filter(([, { isKey }]) => isKey)
      .map(([column, { type }]) => `    ${type} ${column}`);
    return [`  ${table} {`, ...lines, '  }'].join('\n');
  });
  return ['```mermaid', 'erDiagram', ...references, ...boxes, '```'].join('\n');
}
