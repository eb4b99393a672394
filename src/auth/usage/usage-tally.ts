import type { Database } from '../../database/database.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import type { Logger } from '../../runtime/logger.js';

/** Rows per statement: 15 ms of work, which is done by a statement's deadline on a busy machine, too. A thousand take 130. */
const BATCH = 100;

/** SQL: the rows that a tally writes, `r`, as the statement's $1 has them. */
export const USED = 'jsonb_to_recordset($1) AS r (name text, uses bigint, at timestamptz, ip inet)';

/** What was used since the last flush, under one name. */
interface Use {
  uses: number;
  /** Of the last time, in ms since 1970. */
  atMs: number;
  /** Of the last time, where it is recorded. */
  ip: string | undefined;
}

/** Adds up uses of one kind by name in memory, and writes them in batches, never during a request. */
export class UsageTally {
  #uses = new Map<string, Use>();
  #written = Promise.resolve();

  /**
   * @param what name in the log if something cannot be written
   * @param statement adds the rows {@link USED} to the table. It leaves out rows whose member, key or grant is gone, and locks those of
   *   the others in order, so that they cannot go before it has written
   */
  constructor(
    private readonly database: Database,
    private readonly logger: Logger,
    private readonly what: string,
    private readonly statement: string,
  ) {}

  /** Counts one use. */
  count(name: string, ip?: string): void {
    const use = this.#uses.get(name);
    if (use === undefined) {
      this.#uses.set(name, { uses: 1, atMs: Date.now(), ip });
      return;
    }
    use.uses++;
    use.atMs = Date.now();
    use.ip = ip;
  }

  /** Writes what was collected so far. What cannot be written is kept for the next time; a row that can never be written is dropped. */
  flush(): Promise<void> {
    return (this.#written = this.#written.then(() => this.#write()));
  }

  async #write(): Promise<void> {
    const uses = this.#uses;
    this.#uses = new Map();
    try {
      await writeGoodRows(
        [...uses],
        async (rows) => {
          const written = rows.map(([name, { atMs, ...use }]) => ({ name, ...use, at: new Date(atMs) }));
          await this.database.rows(this.statement, [JSON.stringify(written)]);
          for (const [name] of rows) uses.delete(name);
        },
        ([name], error) => {
          uses.delete(name);
          this.logger.warn(
            { err: error, of: name },
            `the use of ${this.what} cannot be written: it is dropped`,
          );
        },
      );
    } catch (error) {
      this.logger.warn({ err: error }, `the use of ${this.what} could not be written; it is kept`);
      for (const [name, use] of uses) {
        const newer = this.#uses.get(name);
        if (newer) newer.uses += use.uses;
        else this.#uses.set(name, use);
      }
    }
  }
}

/** The statement itself is wrong, or its table is missing: no row is to blame (PostgreSQL, appendix A). */
const NOT_OF_A_ROW = /^42/;

/**
 * Writes rows in batches, as many as possible: if a batch is refused, the rows that are to blame are found by bisection.
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
  if (rows.length <= BATCH) {
    try {
      return await write(rows);
    } catch (error) {
      if (isUnavailable(error) || NOT_OF_A_ROW.test((error as { code?: string }).code ?? '')) throw error;
      if (rows.length === 1) return drop(rows[0]!, error);
    }
  }
  const half = rows.length >> 1;
  await writeGoodRows(rows.slice(0, half), write, drop);
  await writeGoodRows(rows.slice(half), write, drop);
}
