import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';

// V8 may abort the process when it frees WebAssembly code that was replaced by faster code (nodejs/node#64500). It keeps it instead.
setFlagsFromString('--no-wasm-code-gc');

/** An embedded database's folder, whose files are created if missing, and the path of its socket. */
export interface EmbeddedFiles {
  readonly folder: string;
  readonly socket: string;
}

/** A request to the thread: open a database under a number, or close the one with that number. */
export type ThreadRequest =
  | { readonly id: number; readonly files: EmbeddedFiles; readonly patienceMs?: never }
  | { readonly id: number; readonly patienceMs: number; readonly files?: never };

/** Success, or why the request failed. */
export interface ThreadResponse {
  readonly id: number;
  error?: unknown;
}

/** A database that is served in a thread. */
export interface OpenInThread {
  /** Closes it; other connected processes have this long to finish, by default 5 s. */
  close(patienceMs?: number): Promise<void>;
}

/** A thread that serves PGlites on Unix sockets: one in a server, several in turn in tests, which saves starting threads. */
export class EmbeddedThread {
  readonly #worker = new Worker(new URL('./worker.js', import.meta.url));
  readonly #failed: Promise<never>;
  #opened = 0;

  constructor() {
    this.#worker.setMaxListeners(0);
    this.#failed = new Promise<never>((_, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('exit', (code) => reject(new Error(`its thread ended with ${code}`)));
    });
    this.#failed.catch(() => undefined);
  }

  /** Opens a database. @throws Error if its files cannot be opened */
  async open(files: EmbeddedFiles): Promise<OpenInThread> {
    const id = ++this.#opened;
    await this.#ask({ id, files });
    return { close: (patienceMs = 5_000) => this.#ask({ id, patienceMs }) };
  }

  /** Lets the process exit while the thread runs. */
  unref(): void {
    this.#worker.unref();
  }

  /** Ends the thread, without closing its databases. */
  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #ask(request: ThreadRequest): Promise<void> {
    const answered = new Promise<void>((resolve, reject) => {
      const listen = ({ id, error }: ThreadResponse) => {
        if (id !== request.id) return;
        this.#worker.off('message', listen);
        if (error === undefined) resolve();
        else reject(error as Error);
      };
      this.#worker.on('message', listen);
    });
    this.#worker.postMessage(request);
    return Promise.race([answered, this.#failed]);
  }
}

/**
 * Serves one PGlite in its own thread, which ends with it.
 *
 * @throws Error if the files cannot be opened
 */
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
