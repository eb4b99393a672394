import type { DataSource, EntityManager } from 'typeorm';
import { eraseRows } from '../../accounts/erasure.js';
import { ERASED, ERASURES } from '../../database/schema/member-tables.js';
import { fail, ok, type Check } from './check.js';

/** Counts what is left of erased members: a backup may bring it back, or another program may have written it since. */
async function findLeftovers(manager: EntityManager): Promise<{ table: string; rows: number }[]> {
  const counts = ERASURES.map(
    ({ table, left }) => `SELECT '${table}' AS table, count(*) AS rows FROM (${left}) l`,
  );
  return manager.query(`SELECT * FROM (${counts.join(' UNION ALL ')}) c WHERE rows > 0`);
}

/** Checks whether anything is left. */
export async function checkErasures(manager: EntityManager): Promise<Check> {
  const left = await findLeftovers(manager);
  if (left.length === 0) return ok('erasures', 'nothing is left of erased members');
  return fail(
    'erasures',
    `of erased members, there are rows in ${left.map(({ table, rows }) => `${table} (${rows})`).join(', ')}`,
    'run `pua doctor --mend`: it erases them',
  );
}

/** Erases it. @returns numbers of rows by table, without zeros */
export async function mendErasures(dataSource: DataSource): Promise<Record<string, number>> {
  return dataSource.transaction(async (manager) => {
    if ((await findLeftovers(manager)).length === 0) return {};
    const erased = await manager.query<{ id: number }[]>(ERASED);
    const rows = await eraseRows(
      manager,
      erased.map(({ id }) => id),
    );
    return Object.fromEntries(Object.entries(rows).filter(([, count]) => count > 0));
  });
}
