import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { EmbeddedFiles, OpenInThread } from '../../src/database/embedded/thread.js';

const KEPT = Symbol.for('embedded databases');
const kept = globalThis as { [KEPT]?: Promise<EmbeddedDatabases> };

/** Opens an embedded database for this worker, in the process that hosts the databases of all workers (`embedded-host.mjs`). */
export async function openEmbedded(files: EmbeddedFiles): Promise<OpenInThread> {
  kept[KEPT] ??= EmbeddedDatabases.connect(process.env.TEST_EMBEDDED_HOST!);
  return (await kept[KEPT]).open(files);
}

interface Waiting {
  readonly done: () => void;
  readonly failed: (error: Error) => void;
}

/** One connection for all files of a worker, because its thread in the host starts more slowly than a database. */
class EmbeddedDatabases {
  readonly #waiting = new Map<number, Waiting>();
  #opened = 0;

  private constructor(private readonly socket: Socket) {
    createInterface({ input: socket }).on('line', (line) => {
      const { id, error } = JSON.parse(line) as { id: number; error?: string };
      const { done, failed } = this.#waiting.get(id)!;
      this.#waiting.delete(id);
      if (error === undefined) done();
      else failed(new Error(error));
    });
    socket.once('close', () => {
      for (const { failed } of this.#waiting.values()) failed(new Error('the embedded databases have ended'));
    });
    socket.on('error', () => undefined); // 'close' reports the error
    socket.unref();
  }

  static async connect(path: string): Promise<EmbeddedDatabases> {
    const socket = connect(path);
    await once(socket, 'connect');
    return new EmbeddedDatabases(socket);
  }

  async open(files: EmbeddedFiles): Promise<OpenInThread> {
    const id = ++this.#opened;
    await this.#ask({ id, files });
    return { close: () => this.#ask({ id }) };
  }

  /** Keeps the process alive until the response. */
  async #ask(request: { id: number; files?: EmbeddedFiles }): Promise<void> {
    this.socket.ref();
    try {
      await new Promise<void>((done, failed) => {
        this.#waiting.set(request.id, { done, failed });
        this.socket.write(`${JSON.stringify(request)}\n`);
      });
    } finally {
      if (this.#waiting.size === 0) this.socket.unref();
    }
  }
}
