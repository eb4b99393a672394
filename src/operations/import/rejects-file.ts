import { once } from 'node:events';
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError } from '../../values/operator-error.js';
import type { Source } from './sources.js';

/** Bad lines with their reasons, as NDJSON {file, line, reason, record}; takes the place of an older file when it is whole. */
export class RejectsFile {
  #failure: Error | undefined;

  private constructor(
    private readonly path: string,
    private readonly draft: string,
    private readonly output: WriteStream,
  ) {
    output.on('error', (error) => (this.#failure = error));
  }

  /** @throws OperatorError where it cannot be written, or is a file of the import itself */
  static async open(path: string, { files }: Source): Promise<RejectsFile> {
    if (files.some((file) => file.path !== undefined && resolve(file.path) === resolve(path)))
      throw new OperatorError(`${path} is a file of the import itself: write the rejects elsewhere`);
    if (existsSync(path) && !statSync(path).isFile())
      throw new OperatorError(`${path} is not a file: name one for the rejects`);
    const draft = `${path}.${process.pid}`;
    // Records can hold password hashes.
    const output = createWriteStream(draft, { mode: 0o600, flags: 'w' });
    const file = new RejectsFile(path, draft, output);
    await once(output, 'open').catch((error: Error) => file.#refuse(error));
    return file;
  }

  /** @param text the line as it stood in the file */
  async write(reject: { file: string; line: number; reason: string }, text: string): Promise<void> {
    if (this.#failure) this.#refuse(this.#failure);
    const head = JSON.stringify(reject).slice(0, -1);
    if (!this.output.write(`${head},"record":${recordOf(text)}}\n`))
      await once(this.output, 'drain').catch((error: Error) => this.#refuse(error));
  }

  async complete(): Promise<void> {
    this.output.end();
    await once(this.output, 'close');
    if (this.#failure) this.#refuse(this.#failure);
    renameSync(this.draft, this.path);
  }

  /** After {@link complete} there is nothing left to discard. */
  discard(): void {
    this.output.destroy();
    rmSync(this.draft, { force: true });
  }

  #refuse(error: Error): never {
    throw new OperatorError(`${this.path} cannot be written (${error.message}): nothing was imported`, {
      cause: error,
    });
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
