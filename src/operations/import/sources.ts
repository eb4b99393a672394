import { createReadStream, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { OperatorError } from '../../values/operator-error.js';
import { readRecord } from './fields.js';
import { readLines } from './ndjson-reader.js';
import type { Line } from './ndjson-reader.js';
import { RECORD_TYPES } from './record-types.js';
import type { RecordType } from './record-types.js';

/** A line as it was read: a row of its type's staging table, or the reason why it cannot be one. */
export interface ReadLine {
  /** From 1. */
  readonly number: number;
  /** As it stands in the file. */
  readonly text: string;
  /** Unknown where the line does not say it. */
  readonly type?: RecordType;
  readonly row?: Record<string, unknown>;
  readonly reason?: string;
}

/** A file of the import, or standard input. */
export interface SourceFile {
  /** As reports name it, `users.ndjson`. */
  readonly name: string;
  /** undefined where there is none on disk. */
  readonly path?: string;
  /** What its lines can be. */
  readonly types: readonly RecordType[];
  /** Some lines at a time, in their order. */
  lines(progress: (bytes: number) => void): AsyncGenerator<ReadLine[]>;
}

export interface Source {
  readonly files: readonly SourceFile[];
  /** Bytes of all files together, before they are unpacked. */
  readonly bytes: number;
  /** What stands in the folder and is no file of an import. */
  readonly ignored: readonly string[];
}

/**
 * A folder with a file for each type of record.
 *
 * @throws OperatorError where the folder is not there, or has a file in both forms
 */
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
      throw new OperatorError(`${folder} has both ${present.join(' and ')}: take one of them away`);
    return present.map((name): SourceFile => {
      const path = join(folder, name);
      return {
        name,
        path,
        types: [type],
        async *lines(progress) {
          const stream = createReadStream(path, { highWaterMark: 262_144 });
          stream.on('data', (chunk) => progress(chunk.length));
          for await (const lines of readLines(stream, name))
            yield lines.map((line) => ({ ...line, type, ...readFileLine(type, line) }));
        },
      };
    });
  });
  return {
    files,
    bytes: files.reduce((sum, { path }) => sum + statSync(path!).size, 0),
    ignored: names.filter((name) => !files.some((file) => file.name === name)),
  };
}

/** Opens one stream of lines that each say their type: `{"type": "participants", "op": "put", "record": {…}}`. */
export function streamSource(stream: Readable, name = '-'): Source {
  const file: SourceFile = {
    name,
    types: RECORD_TYPES,
    async *lines(progress) {
      stream.on('data', (chunk: Buffer) => progress(chunk.length));
      for await (const lines of readLines(stream, name))
        yield lines.map((line) => ({ ...line, ...readStreamLine(line) }));
    },
  };
  return { files: [file], bytes: 0, ignored: [] };
}

function readFileLine(type: RecordType, line: Line): Pick<ReadLine, 'row' | 'reason'> {
  const { value, reason } = parse(line);
  return reason === undefined ? rowOf(type, value) : { reason };
}

const ENVELOPE = ['type', 'op', 'record'];

function readStreamLine(line: Line): Pick<ReadLine, 'type' | 'row' | 'reason'> {
  const { value, reason } = parse(line);
  if (reason !== undefined) return { reason };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { reason: 'must be a JSON object' };
  const { type: name, op = 'put', record } = value as Record<string, unknown>;
  const type = RECORD_TYPES.find((known) => known.name === name);
  const faults = Object.keys(value)
    .filter((key) => !ENVELOPE.includes(key))
    .map((key) => `${key.toWellFormed()}: is not a field here`);
  if (!type) faults.push(`type: must be one of ${RECORD_TYPES.map((known) => known.name).join(', ')}`);
  if (op !== 'put' && op !== 'delete') faults.push('op: must be put or delete');
  if (type && op === 'delete' && !type.removal) faults.push(`op: there is no delete of ${type.name}`);
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    faults.push('record: must be an object');
  if (faults.length > 0) return { reason: faults.slice(0, 10).join('; ') };
  return {
    type: type!,
    ...rowOf(type!, op === 'delete' ? { ...(record as object), deleted: true } : record),
  };
}

function parse({ text, fault }: Line): { value?: unknown; reason?: string } {
  if (fault !== undefined) return { reason: fault };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { reason: 'is not JSON' };
  }
}

/** The row of the staging table, or everything that is wrong with the record. */
function rowOf(type: RecordType, value: unknown): Pick<ReadLine, 'row' | 'reason'> {
  const removed = type.removal && (value as { deleted?: unknown } | null)?.deleted === true;
  const { row, faults } = removed
    ? readRecord(type.removal!.fields, pick(value as Record<string, unknown>, type.removal!.fields))
    : readRecord(type.fields, value);
  const together = (removed ? type.removal!.check : type.check)?.(row);
  const reasons = together === undefined ? faults : [...faults, together];
  if (reasons.length > 0) return { reason: reasons.slice(0, 10).join('; ').replaceAll('\0', '\u{fffd}') };
  if (removed) type.removal!.complete?.(row);
  else type.complete?.(row, value as Record<string, unknown>);
  return { row };
}

function pick(record: Record<string, unknown>, fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => Object.hasOwn(fields, name)));
}

/** Names what a line is about: two lines that share one cannot be written together. */
export function recordKeys({ type, row }: ReadLine): string[] {
  if (!type || !row) return [];
  return type.identities.flatMap((columns) => {
    const values = columns.map((column) => row[column] as number | null);
    // Sorted: whoever asked for a connection, it is the same.
    if (values.includes(null)) return [];
    return [`${type.name} ${columns.join()} ${values.toSorted((a, b) => a! - b!).join()}`];
  });
}
