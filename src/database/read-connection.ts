import { isDeepStrictEqual } from 'node:util';
import type { Client, QueryResultRow } from 'pg';
import { sha256 } from '../crypto/digests.js';
import { PrimaryClient } from './primary.js';
import type { PrimaryConfig } from './primary.js';

export interface NamedStatement {
  readonly name: string;
  readonly text: string;
  /** A column whose value is left as PostgreSQL sends it: its text as UTF-8 bytes. */
  readonly bytes?: string;
}

/** How a prepared statement's rows are parsed. */
interface Columns {
  readonly names: readonly string[];
  /** Undefined for raw bytes. */
  readonly parsers: readonly (((text: string) => unknown) | undefined)[];
  /** PostgreSQL's RowDescription. */
  readonly description: Buffer;
}

interface Read {
  readonly statement: NamedStatement;
  readonly bind: Buffer;
  /** Whether this is the second attempt: on the first, the session did not know the statement, or knew other columns. */
  again: boolean;
  rows: QueryResultRow[];
  fault: (Error & { readonly code?: string }) | undefined;
  /** Whether it also prepares its statement, and PostgreSQL has not confirmed that yet. */
  parsing: boolean;
  readonly done: Done;
}

/** Receives a read's result: PostgreSQL's error or why the connection was lost, otherwise its rows. */
export type Done<Row extends QueryResultRow = QueryResultRow> = (
  fault: (Error & { readonly code?: string }) | undefined,
  rows: Row[],
) => void;

/** The messages that a server sends, by their first byte (PostgreSQL, §55.7). */
const PARSE_COMPLETE = 0x31;
const DATA_ROW = 0x44;
const ERROR_RESPONSE = 0x45;
const ROW_DESCRIPTION = 0x54;
const READY_FOR_QUERY = 0x5a;
/** Other messages, ignored here: BindComplete, CloseComplete, CommandComplete, NoData, notices and settings. */
const OTHERS = new Set(['2', '3', 'C', 'n', 'N', 'S', 'A', 'I'].map((letter) => letter.charCodeAt(0)));

/** Describe the unnamed portal; execute it for all rows; Sync. */
const DESCRIBE = Buffer.from('D\0\0\0\x06P\0', 'latin1');
const EXECUTE_AND_SYNC = Buffer.from('E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04', 'latin1');

/** SQLSTATE if the session has not prepared the statement, or prepared it with other columns. */
const PREPARE_AGAIN = new Set(['26000', '0A000']);

/** Run on a connection before its use: checks that responses are parsed correctly here. */
const CHECK = {
  name: 'check',
  text: `SELECT $1::text AS text, $2::integer AS number, NULL::text AS nothing, $3::bytea = '\\x00ff' AS same, $1::text AS bytes`,
  bytes: 'bytes',
};
const LETTERS = 'ä “€” 𝄞';
const CHECKED = [LETTERS, 2 ** 30, Buffer.from([0, 255])];
const EXPECTED = { text: LETTERS, number: 2 ** 30, nothing: null, same: true, bytes: Buffer.from(LETTERS) };

/**
 * A connection that executes prepared statements without waiting for the previous response (pipeline mode, PostgreSQL §55.2.4). pg
 * connects it, with TLS and authentication; from then on, messages are written and read here: a read costs a quarter of what it
 * costs through pg, and long values can stay bytes from PostgreSQL's socket to the caller's.
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
  readonly #parsed = new Set<string>();
  readonly #columns = new Map<string, Columns>();
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
   * @throws what pg throws, or Error if a response cannot be parsed
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
    // The second time, no description is requested.
    for (let time = 0; time < 2; time++) {
      const rows = await new Promise<QueryResultRow[]>((resolve, reject) => {
        connection.read(CHECK, CHECKED, (fault, rows) => (fault ? reject(fault) : resolve(rows)));
      });
      if (isDeepStrictEqual(rows, [EXPECTED])) continue;
      connection.destroy();
      throw new Error('PostgreSQL answers otherwise than was asked');
    }
    return connection;
  }

  /** The name of the database. */
  get database(): string | undefined {
    return this.#client.database;
  }

  /** Statements under way. */
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
   * @returns false if a value must be encoded in a way that only pg knows; then nothing is sent
   */
  read<Row extends QueryResultRow>(
    statement: NamedStatement,
    values: readonly unknown[],
    done: Done<Row>,
  ): boolean {
    const bind = bindOf(this.#nameOf(statement), values);
    if (!bind) return false;
    if (this.#lost) {
      done(this.#lost, []);
      return true;
    }
    if (this.#reads.length === 0) this.#progressAt = performance.now();
    const parsing = !this.#parsed.has(statement.name);
    this.#ask({ statement, bind, again: false, rows: [], fault: undefined, parsing, done: done as Done });
    return true;
  }

  #ask(read: Read): void {
    const { statement, bind, parsing } = read;
    if (this.#unsent.length === 0) setImmediate(() => this.#send());
    if (parsing) {
      this.#parsed.add(statement.name);
      const name = this.#nameOf(statement);
      // This session may have the statement already; closing one that does not exist is no error.
      if (this.sharedSessions) this.#unsent.push(closeOf(name));
      this.#unsent.push(parseOf(name, statement.text));
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
  destroy(): void {
    this.#client.connection.stream.destroy();
    this.#lose(new Error('the connection was given up'));
  }

  /** Statements of concurrent requests take one system call, and wake PostgreSQL once. */
  #send(): void {
    const { stream } = this.#client.connection;
    const unsent = this.#unsent;
    this.#unsent = [];
    if (!this.#lost) stream.write(Buffer.concat(unsent));
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
      while (at + 5 <= all.length) {
        const end = at + 1 + all.readInt32BE(at + 1);
        if (end > all.length) break;
        this.#take(all, all[at]!, at + 5, end);
        at = end;
      }
    } catch (error) {
      this.#lose(error as Error);
      this.#client.connection.stream.destroy();
      return;
    }
    if (at < all.length) this.#rest = all.subarray(at);
  }

  /** Handles one message, whose body is from `at` to `end`. */
  #take(bytes: Buffer, message: number, at: number, end: number): void {
    const read = this.#reads[0];
    if (OTHERS.has(message)) return;
    if (!read) throw new Error(`a message of PostgreSQL that answers nothing: ${message}`);
    switch (message) {
      case DATA_ROW:
        read.rows.push(rowOf(bytes, at, this.#columns.get(read.statement.name)!));
        return;
      case READY_FOR_QUERY:
        this.#reads.shift();
        // The statement was not prepared.
        if (read.parsing) this.#parsed.delete(read.statement.name);
        this.#progressAt = performance.now();
        if (this.sharedSessions && !read.again && PREPARE_AGAIN.has(read.fault?.code ?? '')) {
          this.#ask({ ...read, again: true, rows: [], fault: undefined, parsing: true });
          return;
        }
        read.done(read.fault, read.rows);
        return;
      case PARSE_COMPLETE:
        read.parsing = false;
        return;
      case ROW_DESCRIPTION:
        if (!this.#columns.get(read.statement.name)?.description.equals(bytes.subarray(at, end)))
          this.#columns.set(read.statement.name, this.#columnsOf(bytes, at, end, read.statement));
        return;
      case ERROR_RESPONSE:
        read.fault = errorOf(bytes, at, end);
        return;
      default:
        throw new Error(`a message of PostgreSQL that is not known: ${message}`);
    }
  }

  #columnsOf(bytes: Buffer, at: number, end: number, statement: NamedStatement): Columns {
    const names: string[] = [];
    const parsers: Columns['parsers'][number][] = [];
    for (let count = bytes.readInt16BE(at), from = at + 2; names.length < count;) {
      const nameEnd = bytes.indexOf(0, from);
      const name = bytes.toString('utf8', from, nameEnd);
      // After the name: table (4), column (2), type (4), its size (2) and modifier (4), format (2).
      const type = bytes.readInt32BE(nameEnd + 7);
      names.push(name);
      parsers.push(
        name === statement.bytes
          ? undefined
          : (this.#client.getTypeParser(type, 'text') as (text: string) => unknown),
      );
      from = nameEnd + 19;
    }
    return { names, parsers, description: Buffer.from(bytes.subarray(at, end)) };
  }
}

function rowOf(bytes: Buffer, start: number, { names, parsers }: Columns): QueryResultRow {
  const row: QueryResultRow = {};
  let at = start + 2;
  for (let i = 0; i < names.length; i++) {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (length < 0) {
      row[names[i]!] = null;
      continue;
    }
    const parser = parsers[i];
    row[names[i]!] = parser
      ? parser(bytes.toString('utf8', at, at + length))
      : bytes.subarray(at, at + length);
    at += length;
  }
  return row;
}

/** Reads the two fields in use: SQLSTATE and message. */
function errorOf(bytes: Buffer, start: number, end: number): Error {
  const fields = new Map(
    bytes
      .toString('utf8', start, end)
      .split('\0')
      .map((field) => [field[0], field.slice(1)]),
  );
  return Object.assign(new Error(fields.get('M')), { code: fields.get('C') });
}

/** Close of a prepared statement. */
function closeOf(name: string): Buffer {
  const close = Buffer.from(`C\0\0\0\0S${name}\0`);
  close.writeInt32BE(close.length - 1, 1);
  return close;
}

function parseOf(name: string, text: string): Buffer {
  const body = Buffer.from(`${name}\0${text}\0\0\0`);
  const head = Buffer.alloc(5, 'P');
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** Makes a Bind to the unnamed portal. @returns undefined if a value is neither text, number, boolean, bytes nor null */
function bindOf(name: string, values: readonly unknown[]): Buffer | undefined {
  const parameters: (string | Buffer | null)[] = [];
  const sizes: number[] = [];
  // Type, length, names of portal and statement, and the counts of formats, parameters and column formats (all text).
  let size = 5 + 1 + name.length + 1 + 2 + 2 + 2;
  for (const value of values) {
    let parameter: string | Buffer | null;
    if (typeof value === 'string' || value instanceof Buffer) parameter = value;
    else if (value === null || value === undefined) parameter = null;
    else if (typeof value === 'number' || typeof value === 'boolean') parameter = String(value);
    else return undefined;
    const length = parameter === null ? 0 : Buffer.byteLength(parameter);
    parameters.push(parameter);
    sizes.push(length);
    size += 2 + 4 + length;
  }
  const bind = Buffer.allocUnsafe(size);
  bind[0] = 0x42; // B
  let at = bind.writeInt32BE(size - 1, 1);
  bind[at++] = 0;
  at += bind.write(name, at, 'latin1');
  bind[at++] = 0;
  at = bind.writeInt16BE(parameters.length, at);
  for (const parameter of parameters) at = bind.writeInt16BE(parameter instanceof Buffer ? 1 : 0, at);
  at = bind.writeInt16BE(parameters.length, at);
  for (let i = 0; i < parameters.length; i++) {
    const parameter = parameters[i]!;
    if (parameter === null) {
      at = bind.writeInt32BE(-1, at);
      continue;
    }
    at = bind.writeInt32BE(sizes[i]!, at);
    at += typeof parameter === 'string' ? bind.write(parameter, at) : parameter.copy(bind, at);
  }
  bind.writeInt16BE(0, at);
  return bind;
}
