import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Ids and keys of the demo are such that imports do not collide with them. */
export const FIRST_ID = 900_000_001;

export const LAST_MEMBER_ID = 900_000_024;

/** The demo's last possible id, in every table. */
export const LAST_ID = 900_000_999;

/** Printed at start, so the demo is refused where others than this machine's user could reach it. */
export const DEMO_PASSWORD = 'correct-horse-battery';

export const DEMO_USERNAMES = ['ada', 'grace'] as const;

/** The day in the file that becomes the day of seeding. */
const DAY_OF_SEEDING = Date.UTC(2025, 0, 1);

type Row = Readonly<Record<string, unknown>>;

/** Reads the rows of the demo's tables, in an order in which none refers to a later one, with times relative to `today`. */
export function demoRows(today: Date): ReadonlyMap<string, readonly Row[]> {
  const shift = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()) - DAY_OF_SEEDING;
  const shifted = (column: string, value: unknown) =>
    column.endsWith('_at') ? new Date(Date.parse(value as string) + shift).toISOString() : value;
  const lines = readFileSync(join(import.meta.dirname, 'demo-data.ndjson'), 'utf8')
    .trim()
    .split('\n');
  const rows = lines.map((line) => JSON.parse(line, shifted) as { table: string; row: Row });
  return new Map(
    [...Map.groupBy(rows, ({ table }) => table)].map(([table, of]) => [table, of.map(({ row }) => row)]),
  );
}
