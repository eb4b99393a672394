import type { Client, QueryResultRow } from 'pg';
import { serialize, type DatabaseError } from 'pg-protocol';
import { Parser } from 'pg-protocol/dist/parser.js';
import type { RowDescriptionMessage } from 'pg-protocol/dist/messages.js';
import { prepareValue } from 'pg/lib/utils.js';
import { sha256 } from '../../crypto/digests.js';
import { PrimaryClient, type PrimaryConfig } from './primary.js';

export interface NamedStatement {
  readonly name: string;
  readonly text: string;
  /** A column whose value is left as PostgreSQL sends it: its text as UTF-8 bytes. */
  readonly bytes?: string;
}

interface Column {
  readonly name: string;
  /** Undefined for raw bytes. */
  readonly parse: ((text: string) => unknown) | undefined;
}

interface Read {
  readonly statement: NamedStatement;
  readonly bind: Buffer;
  /** Whether this is the second attempt: on the first, the session did not know the statement, or knew other columns. */
  readonly again: boolean;
  rows: QueryResultRow[];
  fault: ReadFault | undefined;
  /** Whether it also prepares its statement, and PostgreSQL has not confirmed that yet. */
  parsing: boolean;
  readonly done: Done;
}

type ReadFault = Error & { readonly code?: string | undefined };
/** Receives a read's result: PostgreSQL's error or why the connection was lost, otherwise its rows. */
export type Done<Row = QueryResultRow> = (fault: ReadFault | undefined, rows: Row[]) => void;

/** The messages that are looked at, by their first byte (PostgreSQL, §55.7); a header is that byte and a length of four. */
const HEADER = 5;
const PARSE_COMPLETE = 0x31;
const DATA_ROW = 0x44;
const ERROR_RESPONSE = 0x45;
const ROW_DESCRIPTION = 0x54;
const READY_FOR_QUERY = 0x5a;

const DESCRIBE = serialize.describe({ type: 'P' });
const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

/** SQLSTATE if the session has not prepared the statement, or prepared it with other columns. */
const PREPARE_AGAIN = new Set(['26000', '0A000']);

/**
 * A connection that executes prepared statements without waiting for the previous response (pipeline mode, PostgreSQL §55.2.4). pg
 * connects it, with TLS and authentication, and pg-protocol writes and reads its messages, apart from the rows: a page stays bytes
 * from PostgreSQL's socket to the caller's, and no message becomes an object or an event. That is what it is for: through pg's own
 * `pipeline: true`, the server's CPU is 1.36 times as much for a profile and 1.41 times for a page of events (pg 8.23.1, Node
 * 24.21, 32 connections, medians of five turns each in one run: docs/performance.md).
 *
 * A statement always has the same text under the same name. Its columns are requested once per connection: PostgreSQL refuses a
 * statement whose columns have changed (0A000).
 *
 * Behind a pooler that gives each transaction another session (`sharedSessions`), statements stay prepared in the sessions all the
 * same: their names derive from their texts, so any client's statement of that name is the right one. A session that does not know
 * it says so before anything is executed (26000), and it is prepared then. That requires nothing of the pooler. Columns are
 * requested each time, since sessions may learn of a changed table one after the other.
 */
export class ReadConnection {
  readonly #client: Client;
  readonly #parser = new Parser();
  readonly #parsed = new Set<string>();
  readonly #columns = new Map<string, readonly Column[]>();
  readonly #names = new Map<string, string>();
  /** In the order sent. */
  readonly #reads: Read[] = [];
  /** Written at the end of this turn of the event loop. */
  #unsent: Buffer[] = [];
  /** The beginning of a message whose end has not arrived. */
  #rest: Buffer | undefined;
  #lost: Error | undefined;
  #progressAt = 0;

  private constructor(
    client: Client,
    private readonly onLost: () => void,
    private readonly sharedSessions: boolean,
  ) {
    this.#client = client;
  }

  /**
   * @param onLost is called once, when the connection is gone, whichever side ended it
   * @param sharedSessions whether a pooler gives each transaction another session
   * @throws what pg throws
   */
  static async open(
    config: PrimaryConfig,
    onLost: () => void,
    sharedSessions = false,
  ): Promise<ReadConnection> {
    const client = new PrimaryClient(config);
    const connection = new ReadConnection(client, onLost, sharedSessions);
    client.on('error', (error) => connection.#lose(error));
    client.on('end', () => connection.#lose(new Error('the connection was ended')));
    await client.connect();
    const { stream } = client.connection;
    stream.removeAllListeners('data').on('data', (bytes: Buffer) => connection.#receive(bytes));
    return connection;
  }

  get database(): string | undefined {
    return this.#client.database;
  }

  get underWay(): number {
    return this.#reads.length;
  }

  /** When the last response arrived, or the first statement under way was sent; by `performance.now()`. */
  get progressAt(): number {
    return this.#progressAt;
  }

  /**
   * Executes a statement, behind those under way.
   *
   * @param done is called in a later turn of the event loop, or at once if the connection is lost already
   */
  read<Row>(statement: NamedStatement, values: readonly unknown[], done: Done<Row>): void {
    if (this.#lost) {
      done(this.#lost, []);
      return;
    }
    const bind = serialize.bind({
      statement: this.#nameOf(statement),
      values: values as unknown[],
      valueMapper: prepareValue,
    });
    if (this.#reads.length === 0) this.#progressAt = performance.now();
    const parsing = !this.#parsed.has(statement.name);
    this.#ask({ statement, bind, again: false, rows: [], fault: undefined, parsing, done: done as Done });
  }

  #ask(read: Read): void {
    const { statement, bind, parsing } = read;
    if (this.#unsent.length === 0) setImmediate(() => this.#send());
    if (parsing) {
      this.#parsed.add(statement.name);
      const name = this.#nameOf(statement);
      // This session may have the statement already; closing one that does not exist is no error.
      if (this.sharedSessions) this.#unsent.push(serialize.close({ type: 'S', name }));
      this.#unsent.push(serialize.parse({ name, text: statement.text }));
    }
    this.#unsent.push(bind);
    if (this.sharedSessions || !this.#columns.has(statement.name)) this.#unsent.push(DESCRIBE);
    this.#unsent.push(EXECUTE_AND_SYNC);
    this.#reads.push(read);
  }

  /** The statement's name in the session. */
  #nameOf({ name, text }: NamedStatement): string {
    if (!this.sharedSessions) return name;
    let shared = this.#names.get(name);
    if (shared === undefined) {
      shared = `pua-${sha256(text, 'base64url')}`;
      this.#names.set(name, shared);
    }
    return shared;
  }

  /** Ends the connection after the responses to everything under way. */
  async end(): Promise<void> {
    await this.#client.end();
  }

  /** Ends the connection at once: reads under way fail. */
  destroy(error = new Error('the connection was given up')): void {
    this.#client.connection.stream.destroy();
    this.#lose(error);
  }

  /** Statements of concurrent requests take one system call, and wake PostgreSQL once. */
  #send(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    if (!this.#lost) this.#client.connection.stream.write(Buffer.concat(unsent));
  }

  #lose(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    for (const { done, rows } of this.#reads.splice(0)) done(error, rows);
    this.onLost();
  }

  #receive(bytes: Buffer): void {
    const all = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes;
    this.#rest = undefined;
    let at = 0;
    try {
      while (at + HEADER <= all.length) {
        const end = at + 1 + all.readInt32BE(at + 1);
        if (end > all.length) break;
        this.#take(all, at, end);
        at = end;
      }
    } catch (error) {
      this.destroy(error as Error);
      return;
    }
    if (at < all.length) this.#rest = all.subarray(at);
  }

  /** Handles one message; those that confirm or notify are not looked at. */
  #take(bytes: Buffer, at: number, end: number): void {
    const read = this.#reads[0];
    switch (bytes[at]) {
      case DATA_ROW:
        read!.rows.push(rowOf(bytes, at + HEADER, this.#columns.get(read!.statement.name)!));
        return;
      case READY_FOR_QUERY:
        this.#finish(this.#reads.shift()!);
        return;
      case PARSE_COMPLETE:
        read!.parsing = false;
        return;
      case ROW_DESCRIPTION:
        this.#parser.parse(bytes.subarray(at, end), (message) => {
          const { fields } = message as RowDescriptionMessage;
          const { name: ofStatement, bytes: raw } = read!.statement;
          const parserOf = (type: number) => this.#client.getTypeParser(type, 'text') as Column['parse'];
          this.#columns.set(
            ofStatement,
            fields.map(({ name, dataTypeID }) => ({
              name,
              parse: name === raw ? undefined : parserOf(dataTypeID),
            })),
          );
        });
        return;
      case ERROR_RESPONSE:
        this.#parser.parse(bytes.subarray(at, end), (message) => {
          const fault = message as DatabaseError;
          if (!read) throw fault;
          read.fault = fault;
        });
    }
  }

  #finish(read: Read): void {
    if (read.parsing) this.#parsed.delete(read.statement.name); // it was not prepared
    this.#progressAt = performance.now();
    if (this.sharedSessions && !read.again && PREPARE_AGAIN.has(read.fault?.code ?? ''))
      this.#ask({ ...read, again: true, rows: [], fault: undefined, parsing: true });
    else read.done(read.fault, read.rows);
  }
}

function rowOf(bytes: Buffer, start: number, columns: readonly Column[]): QueryResultRow {
  const row: QueryResultRow = {};
  let at = start + 2;
  for (const { name, parse } of columns) {
    const length = bytes.readInt32BE(at);
    at += 4;
    const end = at + Math.max(length, 0);
    if (length < 0) row[name] = null;
    else row[name] = parse ? parse(bytes.toString('utf8', at, end)) : bytes.subarray(at, end);
    at = end;
  }
  return row;
}
