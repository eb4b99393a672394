import type { QueryResultRow } from 'pg';
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

/** A statement in the session. */
interface Prepared {
  readonly name: string;
  columns?: readonly Column[];
}

interface Read {
  readonly statement: NamedStatement;
  readonly prepared: Prepared;
  readonly bind: Buffer;
  /** Whether it prepares its statement first. */
  readonly prepares: boolean;
  readonly rows: QueryResultRow[];
  readonly resolve: (rows: never) => void;
  readonly reject: (fault: Error) => void;
}

/** The messages that are looked at, by their first byte (PostgreSQL, §55.7); a header is that byte and a length of four. */
const HEADER = 5;
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
 * 24.21, 32 connections, medians of five turns each in one run: docs/contributors/performance.md).
 *
 * The first read of a statement prepares it. A session that does not know it all the same, or knows it with columns that have
 * changed, says so before anything is executed, and the same read prepares it again. So this works behind a pooler that gives each
 * transaction another session (`pooled`), too: names derive from texts, so any client's statement of that name is the right
 * one. Only its columns are requested each time there, since sessions may learn of a changed table one after the other.
 */
export class ReadConnection extends PrimaryClient {
  readonly #parser = new Parser();
  /** By the names that callers give them. */
  readonly #prepared = new Map<string, Prepared>();
  /** In the order sent. */
  readonly #reads: Read[] = [];
  /** Written at the end of this turn of the event loop. */
  #unsent: Buffer[] = [];
  /** The beginning of a message whose end has not arrived. */
  #rest: Buffer | undefined;
  /** PostgreSQL's error for the first read. */
  #fault: DatabaseError | undefined;
  #lost: Error | undefined;
  #looks = 0;
  /** Resolves when the connection is gone, whichever side ended it. */
  readonly loss: Promise<void>;

  private constructor(config: PrimaryConfig) {
    super(config);
    this.loss = new Promise<Error>((resolve) => {
      this.on('error', resolve).on('end', () => resolve(new Error('the connection was ended')));
    }).then((error) => {
      this.#lost = error;
      for (const { reject } of this.#reads.splice(0)) reject(error);
    });
  }

  /**
   * @throws Unavailable
   */
  static async open(config: PrimaryConfig): Promise<ReadConnection> {
    const connection = new ReadConnection(config);
    await connection.connect();
    const { stream } = connection.connection;
    stream.removeAllListeners('data').on('data', (bytes: Buffer) => connection.#receive(bytes));
    return connection;
  }

  get underWay(): number {
    return this.#reads.length;
  }

  /**
   * Executes a statement, behind those under way.
   *
   * @throws PostgreSQL's error, or why the connection was lost
   */
  read<Row>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      if (this.#lost) throw this.#lost;
      const known = this.#prepared.get(statement.name);
      const prepared = known ?? { name: `pua-${sha256(statement.text, 'base64url')}` };
      if (!known) this.#prepared.set(statement.name, prepared);
      const bind = serialize.bind({
        statement: prepared.name,
        values: values as unknown[],
        valueMapper: prepareValue,
      });
      this.#ask({ statement, prepared, bind, prepares: !known, rows: [], resolve, reject });
    });
  }

  #ask(read: Read): void {
    const { statement, prepared, bind, prepares } = read;
    if (this.#unsent.length === 0) setImmediate(() => this.#send());
    if (prepares) {
      const { name } = prepared;
      // The session may have the statement already; closing one that does not exist is no error.
      this.#unsent.push(
        serialize.close({ type: 'S', name }),
        serialize.parse({ name, text: statement.text }),
      );
    }
    this.#unsent.push(bind);
    if (prepares || this.pooled || !prepared.columns) this.#unsent.push(DESCRIBE);
    this.#unsent.push(EXECUTE_AND_SYNC);
    this.#reads.push(read);
  }

  /** Ends the connection at once: reads under way fail. */
  destroy(error = new Error('the connection was given up')): void {
    this.connection.stream.destroy(error);
  }

  /**
   * Gives the connection up if it answers nothing between so many calls. They are counted, not timed: before the next one, what has
   * arrived is read, even if this process was too busy to read it in time.
   */
  look(most: number): void {
    if (this.#reads.length === 0) this.#looks = 0;
    else if (++this.#looks === most) this.destroy();
  }

  /** Statements of concurrent requests take one system call, and wake PostgreSQL once. */
  #send(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    if (!this.#lost) this.connection.stream.write(Buffer.concat(unsent));
  }

  #receive(bytes: Buffer): void {
    const all = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes;
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
    }
    this.#rest = at < all.length ? all.subarray(at) : undefined;
  }

  /** Handles one message; those that confirm or notify are not looked at. */
  #take(bytes: Buffer, at: number, end: number): void {
    const read = this.#reads[0];
    switch (bytes[at]) {
      case DATA_ROW:
        read!.rows.push(rowOf(bytes, at + HEADER, read!.prepared.columns!));
        return;
      case READY_FOR_QUERY:
        this.#finish(this.#reads.shift()!);
        return;
      case ROW_DESCRIPTION:
        this.#parser.parse(bytes.subarray(at, end), (message) => {
          read!.prepared.columns = (message as RowDescriptionMessage).fields.map(({ name, dataTypeID }) => ({
            name,
            parse:
              name === read!.statement.bytes
                ? undefined
                : (this.getTypeParser(dataTypeID, 'text') as Column['parse']),
          }));
        });
        return;
      case ERROR_RESPONSE:
        this.#parser.parse(bytes.subarray(at, end), (message) => {
          this.#fault = message as DatabaseError;
          if (!read) throw this.#fault;
        });
    }
  }

  #finish(read: Read): void {
    const fault = this.#fault;
    this.#fault = undefined;
    this.#looks = 0;
    if (!fault) read.resolve(read.rows as never);
    else if (PREPARE_AGAIN.has(fault.code!) && !read.prepares)
      this.#ask({ ...read, prepares: true, rows: [] });
    else read.reject(fault);
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
