import type { QueryResultRow } from 'pg';
import { serialize, type DatabaseError } from 'pg-protocol';
import { Parser } from 'pg-protocol/dist/parser.js';
import type { RowDescriptionMessage } from 'pg-protocol/dist/messages.js';
import { prepareValue } from 'pg/lib/utils.js';
import { sha256 } from '../../crypto/digests.js';
import { SessionClient, type SessionConfig } from './session.js';

export interface NamedStatement {
  readonly name: string;
  readonly text: string;
  /** A column to return as raw UTF-8 bytes. */
  readonly bytes?: string;
}

interface Column {
  readonly name: string;
  /** Undefined for raw bytes. */
  readonly parse: ((text: string) => unknown) | undefined;
}

interface Prepared {
  readonly name: string;
  columns?: readonly Column[];
}

interface Read {
  readonly statement: NamedStatement;
  readonly prepared: Prepared;
  readonly bind: Buffer;
  readonly prepares: boolean;
  readonly rows: QueryResultRow[];
  readonly resolve: (rows: never) => void;
  readonly reject: (fault: Error) => void;
}

/** First bytes of messages (PostgreSQL, “Message Formats”); a header consists of this byte and four bytes of length. */
const HEADER = 5;
const DATA_ROW = 0x44;
const ERROR_RESPONSE = 0x45;
const ROW_DESCRIPTION = 0x54;
const READY_FOR_QUERY = 0x5a;

const DESCRIBE = serialize.describe({ type: 'P' });
const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

/** SQLSTATEs if the session has not prepared the statement, or the result's columns have changed since. */
const PREPARE_AGAIN = new Set(['26000', '0A000']);

/**
 * Executes prepared statements in pipeline mode (PostgreSQL, “Pipelining”), faster than pg's own `pipeline: true`
 * (docs/contributors/performance.md). A read prepares its statement if the session lacks it. This also works behind a pooler, since
 * names derive from texts. Behind a pooler, each read requests its columns, since sessions may see a changed table at different times.
 */
export class ReadConnection extends SessionClient {
  readonly #parser = new Parser();
  readonly #prepared = new Map<string, Prepared>();
  /** Reads in progress, in the order sent. */
  readonly #reads: Read[] = [];
  /** Messages to write at the end of this event loop turn. */
  #unsent: Buffer[] = [];
  #rest: Buffer | undefined;
  /** PostgreSQL's error for the first read in progress. */
  #fault: DatabaseError | undefined;
  #lost: Error | undefined;
  #looks = 0;
  /** Resolves when either side has closed the connection. */
  readonly loss: Promise<void>;

  private constructor(config: SessionConfig) {
    super(config);
    this.loss = new Promise<Error>((resolve) => {
      this.on('error', resolve).on('end', () => resolve(new Error('the connection was ended')));
    }).then((error) => {
      this.#lost = error;
      for (const { reject } of this.#reads.splice(0)) reject(error);
    });
  }

  /** @throws Unavailable */
  static async open(config: SessionConfig): Promise<ReadConnection> {
    const connection = new ReadConnection(config);
    await connection.connect();
    const { stream } = connection.connection;
    stream.removeAllListeners('data').on('data', (bytes: Buffer) => connection.#receive(bytes));
    return connection;
  }

  get inProgress(): number {
    return this.#reads.length;
  }

  /** Executes a statement after all statements in progress. @throws PostgreSQL's error, or the connection's */
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
      // First closes the statement, in case the session already has it; closing a missing statement causes no error.
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

  destroy(error = new Error('the connection was closed early')): void {
    this.connection.stream.destroy(error);
  }

  /** Closes the connection if no read finishes during `most` calls. Counts calls, not time: a busy process reads its input late. */
  look(most: number): void {
    if (this.#reads.length === 0) this.#looks = 0;
    else if (++this.#looks === most) this.destroy();
  }

  /** Sends statements of concurrent requests in one system call, which wakes PostgreSQL once. */
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

  /** Handles one message; ignores confirmations and notices. */
  #take(bytes: Buffer, at: number, end: number): void {
    const read = this.#reads[0];
    const type = bytes[at];
    if (type === DATA_ROW) read!.rows.push(parseRow(bytes, at + HEADER, read!.prepared.columns!));
    else if (type === READY_FOR_QUERY) this.#finish(this.#reads.shift()!);
    else if (type === ROW_DESCRIPTION)
      this.#parser.parse(bytes.subarray(at, end), (message) => {
        read!.prepared.columns = (message as RowDescriptionMessage).fields.map(({ name, dataTypeID }) => {
          const parse = this.getTypeParser(dataTypeID, 'text') as Column['parse'];
          return { name, parse: name === read!.statement.bytes ? undefined : parse };
        });
      });
    else if (type === ERROR_RESPONSE)
      this.#parser.parse(bytes.subarray(at, end), (message) => {
        this.#fault = message as DatabaseError;
        if (!read) throw this.#fault;
      });
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

function parseRow(bytes: Buffer, start: number, columns: readonly Column[]): QueryResultRow {
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
