import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../../values/operator-error.js';

/** The longest legitimate record, an event with 20,000 characters, has 160 KB even if all of them are escaped. */
const LONGEST_LINE_BYTES = 1_048_576;
const SHOWN_OF_A_LONG_LINE = 1_000;

export interface Line {
  /** From 1. */
  readonly number: number;
  /** The line; only its beginning if it is too long. */
  readonly text: string;
  /** Why it cannot even be parsed. */
  readonly fault?: string;
}

/**
 * Reads the lines of a stream, decompressed if `name` ends in `.gz`, a few at a time, and skips blank ones. Memory stays flat
 * whatever the stream contains.
 *
 * @throws OperatorError if it cannot be read or decompressed
 */
export async function* readLines(source: Readable, name: string): AsyncGenerator<Line[]> {
  const unpacked = name.endsWith('.gz') ? source.pipe(createGunzip({ chunkSize: 262_144 })) : source;
  source.on('error', (error) => unpacked.destroy(error));
  const splitter = new Splitter();
  try {
    for await (const chunk of unpacked as AsyncIterable<Buffer>) yield splitter.push(chunk);
  } catch (error) {
    throw new OperatorError(`${name} cannot be read (${(error as Error).message})`, { cause: error });
  } finally {
    source.destroy();
  }
  yield splitter.end();
}

/** Splits bytes into lines, and keeps no more of a line than the maximum length. */
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

  /** The incomplete line at the end. */
  end(): Line[] {
    const bytes = this.#rest.length === 1 ? this.#rest[0]! : Buffer.concat(this.#rest);
    const length = this.#restBytes;
    this.#rest = [];
    this.#restBytes = 0;
    const number = ++this.#number;
    if (length > LONGEST_LINE_BYTES) {
      const text = bytes.toString('utf8', 0, SHOWN_OF_A_LONG_LINE);
      return [{ number, text, fault: `is longer than ${LONGEST_LINE_BYTES} bytes` }];
    }
    if (!isUtf8(bytes)) return [{ number, text: bytes.toString('utf8'), fault: 'is not UTF-8' }];
    const text = bytes.toString('utf8');
    const record = number === 1 ? text.replace(/^\u{feff}/u, '') : text;
    return record.trim() === '' ? [] : [{ number, text: record }];
  }

  #keep(bytes: Buffer): void {
    this.#restBytes += bytes.length;
    if (bytes.length > 0 && this.#restBytes - bytes.length <= LONGEST_LINE_BYTES) this.#rest.push(bytes);
  }
}
