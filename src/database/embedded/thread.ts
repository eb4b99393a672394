import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';

// Makes V8 keep replaced WebAssembly code: V8 may abort the process when it frees this code (nodejs/node#64500).
setFlagsFromString('--no-wasm-code-gc');

export interface EmbeddedFiles {
  readonly folder: string;
  readonly socket: string;
}

/** Asks the thread to open a database. The thread responds on `port`. A time limit in ms, sent to `port`, makes it close the database. */
export interface ThreadRequest {
  readonly files: EmbeddedFiles;
  readonly port: MessagePort;
}

export interface ThreadResponse {
  readonly error?: unknown;
}

export interface OpenInThread {
  /** @param patienceMs time limit in ms for open connections to end, by default 5,000 */
  close(patienceMs?: number): Promise<void>;
}

/** A thread that serves PGlites on Unix sockets. A server's thread serves one; tests reuse a thread, since starting threads is slow. */
export class EmbeddedThread {
  readonly #worker = new Worker(new URL('./worker.js', import.meta.url));
  readonly #failed: Promise<never>;

  constructor() {
    this.#failed = new Promise<never>((_, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('exit', (code) => reject(new Error(`its thread exited with code ${code}`)));
    });
    this.#failed.catch(() => undefined);
  }

  /** @throws Error if the database's files cannot be opened */
  async open(files: EmbeddedFiles): Promise<OpenInThread> {
    const { port1, port2 } = new MessageChannel();
    const answered = async () => {
      const [{ error }] = (await Promise.race([once(port1, 'message'), this.#failed])) as [ThreadResponse];
      if (error !== undefined) throw error as Error;
    };
    this.#worker.postMessage({ files, port: port2 } satisfies ThreadRequest, [port2]);
    await answered();
    return {
      close: (patienceMs = 5_000) => {
        port1.postMessage(patienceMs);
        return answered();
      },
    };
  }

  unref(): void {
    this.#worker.unref();
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Serves one PGlite in a separate thread, which ends with the PGlite. @throws Error if the files cannot be opened */
export async function startThread(files: EmbeddedFiles): Promise<OpenInThread> {
  const thread = new EmbeddedThread();
  try {
    const { close } = await thread.open(files);
    return { close: (patienceMs) => close(patienceMs).then(() => thread.end()) };
  } catch (error) {
    await thread.end();
    throw error;
  }
}
