import type { Request } from 'express';
import type { Database } from '../../database/database.js';
import type { Logger } from '../../http/logger.js';
import { writeGoodRows } from './usage-batch.js';

/** A listener for finished requests, called by `Usage`. */
export interface UsageListener {
  /**
   * Called for each request to a route that requires a credential, including refused ones, when its response is written and before the caller has it.
   * Runs within the request: it has to be very cheap, and must not write.
   *
   * @param request `principal` is missing where there was no credential, or it was refused; `context` has the code of a problem, and the id of
   *   a credential that is known, whether or not it was accepted
   * @param status of the response
   */
  finished(request: Request, status: number): void;

  /** Writes what was collected, without throwing: what cannot be written is kept or dropped. Called every half minute and at the end. */
  flush(): Promise<void>;
}

/** Rows per statement: some 50 ms of work. */
const BATCH = 2_000;

/** What was used since the last flush, under one name. */
interface Use<Row> {
  readonly row: Row;
  uses: number;
  /** Of the last time, in ms since 1970. */
  atMs: number;
}

/**
 * Adds up uses by name in memory, and writes them in batches, never during a request. Each kind of use defines what it counts of
 * a request, and the one statement that adds it to what is stored.
 */
export abstract class UsageTally<Row extends object> implements UsageListener {
  #uses = new Map<string, Use<Row>>();
  #written = Promise.resolve();

  /**
   * @param what name in the log if something cannot be written
   * @param statement adds the rows of $1, JSON, to the table, each with how often it was used, `uses`, and when last, `at`. It leaves out
   *   rows whose member, key or grant is gone, and locks those of the others in order, so that they cannot go before it has written
   */
  protected constructor(
    protected readonly database: Database,
    protected readonly logger: Logger,
    private readonly what: string,
    private readonly statement: string,
  ) {}

  /** Counts the request if it is a use of this kind. A refused request is not. */
  abstract finished(request: Request, status: number): void;

  /** Counts one more use under the name. @returns undefined if it is the first, which {@link begin} records */
  protected again(name: string): Row | undefined {
    const use = this.#uses.get(name);
    if (use === undefined) return undefined;
    use.uses++;
    use.atMs = Date.now();
    return use.row;
  }

  protected begin(name: string, row: Row): void {
    this.#uses.set(name, { row, uses: 1, atMs: Date.now() });
  }

  /** Writes what was collected so far. What cannot be written is kept for the next time; a row that can never be written is dropped. */
  flush(): Promise<void> {
    return (this.#written = this.#written.then(() => this.#write()));
  }

  async #write(): Promise<void> {
    const uses = this.#uses;
    this.#uses = new Map();
    const all = [...uses];
    try {
      for (let start = 0; start < all.length; start += BATCH)
        await writeGoodRows(
          all.slice(start, start + BATCH),
          async (rows) => {
            const written = rows.map(([, { row, uses, atMs }]) => ({ ...row, uses, at: new Date(atMs) }));
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
