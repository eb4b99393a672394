import { isUtf8 } from 'node:buffer';
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { openDraft } from '../config/draft-file.js';
import { OperatorError } from '../values/operator-error.js';
import { Fault, isObject, readRecord, unknownNames, type FaultCode, type StagedRow } from './fields.js';
import { RECORD_TYPES } from './record-types.js';
import type { RecordType } from './record-type.js';

interface Line {
  /** Line number, from 1. */
  readonly number: number;
  /** The line, or its beginning if it is too long. */
  readonly text: string;
  readonly fault?: string;
}

/** A parsed line: a row of its type's staging table, or its faults. */
export interface ReadLine extends Omit<Line, 'fault'> {
  /** Present if there is a row; can be absent for a line with faults. */
  readonly type?: RecordType;
  readonly row?: StagedRow;
  /** At least one fault if there is no row. */
  readonly faults?: readonly Fault[];
}

export interface SourceFile {
  /** Name in reports, such as `users.ndjson`. */
  readonly name: string;
  /** undefined for a stream. */
  readonly path?: string;
  readonly open: () => Readable;
  readonly read: (line: Line) => ReadLine;
}

export interface Source {
  readonly files: readonly SourceFile[];
  /** Total size of the files in bytes, before decompression; 0 for a stream. */
  readonly bytes: number;
  /** Names in the folder that are not import files. */
  readonly ignored: readonly string[];
}

/** Lists a folder's import files. @throws OperatorError if it cannot be read, or if a file exists both plain and compressed */
export function folderSource(folder: string): Source {
  let names: string[];
  try {
    names = readdirSync(folder).toSorted();
  } catch (error) {
    throw new OperatorError(
      `The folder ${folder} cannot be read (${(error as NodeJS.ErrnoException).code}): name a folder of NDJSON files`,
      { cause: error },
    );
  }
  const files = RECORD_TYPES.flatMap((type) => {
    const present = [`${type.name}.ndjson`, `${type.name}.ndjson.gz`].filter((name) => names.includes(name));
    if (present.length > 1)
      throw new OperatorError(`${folder} has both ${present.join(' and ')}: remove one of them`);
    return present.map((name): SourceFile => {
      const path = join(folder, name);
      return {
        name,
        path,
        open: () => createReadStream(path, { highWaterMark: 262_144 }),
        read: (line) => readFileLine(type, line),
      };
    });
  });
  return {
    files,
    bytes: files.reduce((sum, { path }) => sum + statSync(path!).size, 0),
    ignored: names.filter((name) => !files.some((file) => file.name === name)),
  };
}

/** Makes a source of one stream of lines that name their type. */
export const streamSource = (stream: Readable): Source => ({
  files: [{ name: '-', open: () => stream, read: readFeedLine }],
  bytes: 0,
  ignored: [],
});

function readFileLine(type: RecordType, line: Line): ReadLine {
  const { value, faults } = parse(line);
  if (faults) return { ...line, type, faults };
  const removed = 'deleted' in type.fields && (value as { deleted?: unknown } | null)?.deleted === true;
  return { ...line, type, ...parseRow(type, value, removed) };
}

const ENVELOPE = { type: true, op: true, record: true, version: true };

/** Parses a line such as `{"type": "participants", "op": "put", "record": {…}, "version": 3}`; `op` and `version` are optional. */
export function readFeedLine(line: Line): ReadLine {
  const { value, faults: unread } = parse(line);
  if (unread) return { ...line, faults: unread };
  if (!isObject(value)) return { ...line, faults: [new Fault('must be a JSON object', 'invalid_type')] };
  const { type: name, op = 'put', record, version = null } = value;
  const type = RECORD_TYPES.find((known) => known.name === name);
  const faults = unknownNames(value, ENVELOPE);
  const fault = (path: string, text: string, code?: FaultCode) => faults.push(new Fault(text, code, path));
  if (!type) fault('type', `must be one of ${RECORD_TYPES.map((known) => known.name).join(', ')}`);
  if (op !== 'put' && op !== 'delete') fault('op', 'must be put or delete');
  if (version !== null && !(Number.isSafeInteger(version) && (version as number) >= 0))
    fault('version', `must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}`);
  if (!isObject(record))
    fault('record', 'must be an object', record === undefined ? 'missing' : 'invalid_type');
  if (!type || faults.length > 0) return { ...line, faults };
  const { row, faults: inRecord = [] } = parseRow(type, record, op === 'delete');
  for (const { path, text, code } of inRecord) fault(path === '' ? 'record' : `record.${path}`, text, code);
  if (row && version !== null) {
    if (type.version.some((column) => (row[column] ?? null) === null))
      fault('record', `must contain ${type.version.join(', ')} if the line has a version`, 'missing');
    row.version = version;
  }
  return row && faults.length === 0 ? { ...line, type, row } : { ...line, type, faults };
}

function parse({ text, fault }: Line): { value?: unknown; faults?: readonly Fault[] } {
  const invalid = (why: string) => ({ faults: [new Fault(why, 'invalid_line')] });
  if (fault !== undefined) return invalid(fault);
  try {
    return { value: JSON.parse(text) };
  } catch {
    return invalid('is not JSON');
  }
}

function parseRow(type: RecordType, value: unknown, removed: boolean): Pick<ReadLine, 'row' | 'faults'> {
  const { removal, notes } = type;
  const { row, faults } = removed
    ? readRecord(removal.fields, pick(value as object, removal.fields))
    : readRecord(type.fields, value);
  const together = (removed ? removal.check : type.check)?.(row);
  if (together) return { faults: [...faults, together] };
  if (faults.length > 0) return { faults };
  if (removed) removal.complete?.(row);
  else for (const column of Object.keys(notes)) row[column] = notes[column]!(row, value as object);
  row.deleted = removed;
  return { row };
}

const pick = (record: object, fields: object) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => Object.hasOwn(fields, name)));

/** Lists the keys of a line's record: lines with a common key are about the same record. */
export function recordKeys({ type, row }: ReadLine): string[] {
  if (!type || !row) return [];
  return type.identities.flatMap((columns) => {
    const values = columns.map((column) => row[column] as number);
    if (values.includes(null!)) return [];
    if (type.sides) values.sort((a, b) => a - b);
    return [`${type.name} ${columns.join()} ${values.join()}`];
  });
}

/** Maximum line length: an event with a description of 20,000 characters needs less than half of it, even with escapes. */
const MAX_LINE_BYTES = 1_048_576;
const SHOWN_OF_A_LONG_LINE = 1_000;

/** Reads a stream's non-blank lines, and decompresses a `.gz` file. @throws OperatorError if the source is unreadable */
export async function* readLines(source: Readable, name: string): AsyncGenerator<Line[]> {
  const unpacked = name.endsWith('.gz') ? source.pipe(createGunzip({ chunkSize: 262_144 })) : source;
  source.on('error', (error) => unpacked.destroy(error));
  const splitter = new Splitter();
  try {
    for await (const chunk of unpacked as AsyncIterable<Buffer>) yield splitter.push(chunk);
  } catch (error) {
    throw new OperatorError(
      `${name} cannot be read (${(error as Error).message}): provide a complete, readable file`,
      { cause: error },
    );
  } finally {
    source.destroy();
  }
  yield splitter.end();
}

/** Splits bytes into lines, and cuts lines that exceed the maximum length. */
class Splitter {
  #number = 0;
  #rest: Buffer[] = [];
  #restBytes = 0;

  push(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#keep(chunk.subarray(start, end));
      lines.push(...this.end());
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  end(): Line[] {
    const bytes = this.#rest.length === 1 ? this.#rest[0]! : Buffer.concat(this.#rest);
    const length = this.#restBytes;
    this.#rest = [];
    this.#restBytes = 0;
    const number = ++this.#number;
    if (length > MAX_LINE_BYTES) {
      const text = bytes.toString('utf8', 0, SHOWN_OF_A_LONG_LINE);
      return [{ number, text, fault: `is longer than ${MAX_LINE_BYTES} bytes` }];
    }
    if (!isUtf8(bytes)) return [{ number, text: bytes.toString('utf8'), fault: 'is not UTF-8' }];
    const text = bytes.toString('utf8');
    const record = number === 1 ? text.replace(/^\u{feff}/u, '') : text;
    return record.trim() === '' ? [] : [{ number, text: record }];
  }

  #keep(bytes: Buffer): void {
    this.#restBytes += bytes.length;
    if (bytes.length > 0 && this.#restBytes - bytes.length <= MAX_LINE_BYTES) this.#rest.push(bytes);
  }
}

/** Writes bad lines with their reasons as NDJSON {file, line, reason, record}; replaces an older file when complete. */
export class RejectsFile {
  readonly #draft: string;
  readonly #descriptor: number;

  /** @throws OperatorError if the file cannot be written, or is one of the import's source files */
  constructor(
    private readonly path: string,
    { files }: Source,
  ) {
    if (files.some((file) => file.path !== undefined && resolve(file.path) === resolve(path)))
      throw new OperatorError(`${path} is a file of the import itself: write the rejects elsewhere`);
    if (existsSync(path) && !statSync(path).isFile())
      throw new OperatorError(`${path} is not a file: name a file for the rejects`);
    // Only the owner may read the file, since records can contain password hashes.
    ({ draft: this.#draft, descriptor: this.#descriptor } = this.#orRefuse(() => openDraft(path)));
  }

  get size(): number {
    return fstatSync(this.#descriptor).size;
  }

  rewind(size: number): void {
    ftruncateSync(this.#descriptor, size);
  }

  write(rejects: readonly { file: string; line: number; reason: string; text: string }[]): void {
    const lines = rejects.map(
      ({ file, line, reason, text }) =>
        `${JSON.stringify({ file, line, reason }).slice(0, -1)},"record":${quoteRecord(text)}}\n`,
    );
    this.#orRefuse(() => appendFileSync(this.#descriptor, lines.join('')));
  }

  complete(): void {
    const remedy = 'the import is otherwise complete; run it again to get this file';
    this.#orRefuse(() => renameSync(this.#draft, this.path), remedy);
  }

  /** Closes the draft, and deletes it unless {@link complete} renamed it. */
  discard(): void {
    closeSync(this.#descriptor);
    rmSync(this.#draft, { force: true });
  }

  #orRefuse<Result>(work: () => Result, outcome = 'nothing was imported'): Result {
    try {
      return work();
    } catch (error) {
      throw new OperatorError(`${this.path} cannot be written (${(error as Error).message}): ${outcome}`, {
        cause: error,
      });
    }
  }
}

function quoteRecord(text: string): string {
  try {
    JSON.parse(text);
    return text.trim();
  } catch {
    return JSON.stringify(text);
  }
}
