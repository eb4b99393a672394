import type { Database } from '../../database/database.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import type { Logger } from '../../runtime/logger.js';

/** Rows per statement: 100 rows take 15 ms; 1,000 would take 130 ms, too close to the deadline on a busy host. */
const BATCH = 100;

/** SQL: the rows `r` of a tally, from $1. */
export const USED = 'jsonb_to_recordset($1) AS r (name text, uses bigint, at timestamptz, ip inet)';

interface Use {
  uses: number;
  /** Last use in ms since 1970. */
  atMs: number;
  ip: string | undefined;
}

/** Counts uses by name in memory, and writes them in batches outside requests. */
export class UsageTally {
  #uses = new Map<string, Use>();
  #written = Promise.resolve();

  /** @param what name in the log @param statement stores {@link USED}; must skip names of deleted rows, and lock other rows in order */
  constructor(
    private readonly database: Database,
    private readonly logger: Logger,
    private readonly what: string,
    private readonly statement: string,
  ) {}

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

  /** Writes collected counts. After a failure, the next flush retries them; drops rows that can never be written. */
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
      this.logger.warn({ err: error }, `the use of ${this.what} could not be stored; it is retried`);
      for (const [name, use] of uses) {
        const newer = this.#uses.get(name);
        if (newer) newer.uses += use.uses;
        else this.#uses.set(name, use);
      }
    }
  }
}

/** Error codes of faults in the statement or its table, not in a row (PostgreSQL, appendix A). */
const NOT_OF_A_ROW = /^42/;

/** Writes rows in batches, and finds bad rows by bisection. @param write writes all rows or none @throws errors that no row caused */
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
