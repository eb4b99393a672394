import type { PoolClient, QueryResultRow } from 'pg';
import type { Prepared } from './database.js';

/** A transaction (READ COMMITTED) on a connection of its own. Ends with {@link commit} or {@link rollback}, once. */
export class Transaction {
  readonly #client: PoolClient;
  readonly #prepare: (text: string) => Prepared;

  private constructor(client: PoolClient, prepare: (text: string) => Prepared) {
    this.#client = client;
    this.#prepare = prepare;
  }

  static async begin(client: PoolClient, prepare: (text: string) => Prepared): Promise<Transaction> {
    const transaction = new Transaction(client, prepare);
    client.on('error', ignore); // the statement under way, or the next one, fails with it
    try {
      await client.query('BEGIN');
      return transaction;
    } catch (error) {
      transaction.#release(true);
      throw error;
    }
  }

  async rows<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#client.query<Row>({ ...this.#prepare(text), values: values as unknown[] })).rows;
  }

  /** @throws what the database throws: then nothing is certain, and most likely nothing was written */
  commit(): Promise<void> {
    return this.#end('COMMIT');
  }

  /** Never fails: a connection that cannot roll back is closed, which does it. */
  async rollback(): Promise<void> {
    await this.#end('ROLLBACK').catch(() => undefined);
  }

  async #end(statement: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    try {
      const { command } = await this.#client.query(statement);
      // COMMIT of a transaction in which something failed is a ROLLBACK, and says so here alone.
      if (command !== statement) throw new Error('the transaction was rolled back');
    } catch (error) {
      this.#release(true);
      throw error;
    }
    this.#release(false);
  }

  #release(broken: boolean): void {
    this.#client.off('error', ignore);
    this.#client.release(broken);
  }
}

function ignore(): void {}
