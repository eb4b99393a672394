import pg from 'pg';
import type { Client, QueryResultRow } from 'pg';

export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** How the rows of a prepared statement are made of what PostgreSQL sends. */
interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
}

interface RowDescription {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
}

/** What needs no conversion: PostgreSQL takes text, and bytes as they are. */
type Plain = string | Buffer | null;

/** Of pg's connection, what this needs. */
interface Wire {
  bind(message: { statement: string; values: Plain[] }): void;
  execute(): void;
  sync(): void;
}

/** pg's query, of which the types of pg show little: what the client calls as answers come in. */
interface Query {
  readonly text: string;
  /** What the client knows a prepared statement by. */
  name: string | undefined;
  submit(connection: Wire): Error | null;
  handleRowDescription(message: RowDescription): void;
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void;
  handleCommandComplete(): void;
  handleError(error: Error): void;
  handleReadyForQuery(): void;
}

const Query = pg.Query as unknown as new (
  text: string,
  values: unknown[],
  callback: (error: Error | undefined) => void,
) => Query;

/** What was learned of the statements of each connection. */
const known = new WeakMap<Client, Map<string, Columns>>();

/**
 * One execution of a statement that always has the same text, on a client whose statements are pipelined. Once a statement was
 * described on its connection, its columns are not asked for again: PostgreSQL refuses one whose columns change (0A000).
 */
class PreparedRead<Row extends QueryResultRow> extends Query {
  readonly #client: Client;
  readonly #values: unknown[];
  readonly #rows: Row[] = [];
  #columns: Columns | undefined;
  #fault: Error | undefined;
  readonly #resolve: (rows: Row[]) => void;
  readonly #reject: (error: Error) => void;

  constructor(
    client: Client,
    { name, text }: NamedStatement,
    values: unknown[],
    resolve: (rows: Row[]) => void,
    reject: (error: Error) => void,
  ) {
    super(text, values, reject as (error: Error | undefined) => void);
    this.name = name;
    this.#client = client;
    this.#values = values;
    this.#columns = known.get(client)?.get(name);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override submit(connection: Wire): Error | null {
    const plain = this.#columns && plainTexts(this.#values);
    if (!plain) return super.submit(connection);
    connection.bind({ statement: this.name!, values: plain });
    connection.execute();
    connection.sync();
    return null;
  }

  override handleRowDescription({ fields }: RowDescription): void {
    this.#columns = {
      names: fields.map(({ name }) => name),
      parsers: fields.map(({ dataTypeID }) => parserOf(this.#client, dataTypeID)),
    };
    const statements = known.get(this.#client) ?? new Map<string, Columns>();
    known.set(this.#client, statements.set(this.name!, this.#columns));
  }

  override handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { names, parsers } = this.#columns!;
    const row: Record<string, unknown> = {};
    try {
      for (let i = 0; i < names.length; i++) {
        const text = fields[i]!;
        row[names[i]!] = text === null ? null : parsers[i]!(text);
      }
    } catch (error) {
      this.#fault = error as Error;
    }
    this.#rows.push(row as Row);
  }

  override handleCommandComplete(): void {}

  override handleError(error: Error): void {
    this.#reject(error);
  }

  override handleReadyForQuery(): void {
    if (this.#fault) this.#reject(this.#fault);
    else this.#resolve(this.#rows);
  }
}

function parserOf(client: Client, dataTypeId: number): (text: string) => unknown {
  return client.getTypeParser(dataTypeId, 'text') as (text: string) => unknown;
}

/** @returns undefined where pg has to say what one of them is in the text of PostgreSQL */
function plainTexts(values: readonly unknown[]): Plain[] | undefined {
  const texts: Plain[] = [];
  for (const value of values) {
    if (typeof value === 'string' || value === null || value instanceof Buffer) texts.push(value);
    else if (typeof value === 'number') texts.push(String(value));
    else return undefined;
  }
  return texts;
}

/** @throws what PostgreSQL answers; or where the connection breaks */
export function readPrepared<Row extends QueryResultRow>(
  client: Client,
  statement: NamedStatement,
  values: unknown[],
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const read = new PreparedRead<Row>(client, statement, values, resolve, reject);
    client.query(read as unknown as pg.Submittable);
  });
}
