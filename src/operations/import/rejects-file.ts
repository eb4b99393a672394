import {
  appendFileSync,
  existsSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError } from '../../values/operator-error.js';
import type { Source } from './sources.js';

/** Bad lines with their reasons, as NDJSON {file, line, reason, record}; takes the place of an older file when it is whole. */
export class RejectsFile {
  readonly #draft: string;

  /** @throws OperatorError where it cannot be written, or is a file of the import itself */
  constructor(
    private readonly path: string,
    { files }: Source,
  ) {
    if (files.some((file) => file.path !== undefined && resolve(file.path) === resolve(path)))
      throw new OperatorError(`${path} is a file of the import itself: write the rejects elsewhere`);
    if (existsSync(path) && !statSync(path).isFile())
      throw new OperatorError(`${path} is not a file: name one for the rejects`);
    this.#draft = `${path}.${process.pid}`;
    // Records can hold password hashes.
    this.#orRefuse(() => writeFileSync(this.#draft, '', { mode: 0o600 }));
  }

  /** How much is written, for {@link rewind}. */
  get size(): number {
    return statSync(this.#draft).size;
  }

  /** Forgets what was written after that. */
  rewind(size: number): void {
    truncateSync(this.#draft, size);
  }

  /** Writes rejects, each with the line as it stood in the file. */
  write(rejects: readonly { file: string; line: number; reason: string; text: string }[]): void {
    const lines = rejects.map(
      ({ file, line, reason, text }) =>
        `${JSON.stringify({ file, line, reason }).slice(0, -1)},"record":${recordOf(text)}}\n`,
    );
    this.#orRefuse(() => appendFileSync(this.#draft, lines.join('')));
  }

  complete(): void {
    this.#orRefuse(() => renameSync(this.#draft, this.path));
  }

  /** After {@link complete} there is nothing left to discard. */
  discard(): void {
    rmSync(this.#draft, { force: true });
  }

  #orRefuse(work: () => void): void {
    try {
      work();
    } catch (error) {
      throw new OperatorError(
        `${this.path} cannot be written (${(error as Error).message}): nothing was imported`,
        { cause: error },
      );
    }
  }
}

/** What is no JSON stands there as a JSON string. */
function recordOf(text: string): string {
  try {
    JSON.parse(text);
    return text.trim();
  } catch {
    return JSON.stringify(text);
  }
}
