import { isUnavailable } from '../../database/postgres/unavailable.js';

/** The statement itself is wrong, or its table is missing: no row is to blame (PostgreSQL, appendix A). */
const NOT_OF_A_ROW = /^42/;

/**
 * Writes as much as possible: if a batch is refused, the rows that are to blame are found by bisection.
 *
 * @param write writes all of the rows or none
 * @param drop called with each row that cannot be written
 * @throws what `write` throws if no row is to blame: what has not been written then may be tried again
 */
export async function writeGoodRows<Row>(
  rows: readonly Row[],
  write: (rows: readonly Row[]) => Promise<void>,
  drop: (row: Row, error: unknown) => void,
): Promise<void> {
  if (rows.length === 0) return;
  try {
    await write(rows);
  } catch (error) {
    if (isUnavailable(error) || NOT_OF_A_ROW.test((error as { code?: string }).code ?? '')) throw error;
    if (rows.length === 1) {
      drop(rows[0]!, error);
      return;
    }
    const half = rows.length >> 1;
    await writeGoodRows(rows.slice(0, half), write, drop);
    await writeGoodRows(rows.slice(half), write, drop);
  }
}
