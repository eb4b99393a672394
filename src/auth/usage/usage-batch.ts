import { isUnavailable } from '../../database/unavailable.js';

/** The statement itself is wrong, or what it is about is not there: no row is to blame (PostgreSQL, appendix A). */
const NOT_OF_A_ROW = /^42/;

/**
 * Writes what it can: where a batch is refused, the rows that are to blame are found by halves.
 *
 * @param write writes all of the rows or none
 * @param drop is told of a row that cannot be written
 * @throws what `write` throws where no row is to blame: what has not been written then may be tried again
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
