import { Worker } from 'node:worker_threads';

/** Where an embedded database has its files, which are made where there are none, and the path of its socket. */
export interface EmbeddedFiles {
  readonly folder: string;
  readonly socket: string;
}

/** What the thread is asked: to open a database under a number, or to end the one of that number. */
export type ThreadRequest =
  | { readonly id: number; readonly files: EmbeddedFiles; readonly patienceMs?: never }
  | { readonly id: number; readonly patienceMs: number; readonly files?: never };

/** That it is done, or why it could not be. */
export interface ThreadResponse {
  readonly id: number;
  error?: unknown;
}

/** A database that is served in a thread. */
export interface OpenInThread {
  /** Ends it: other processes that are connected have so long to finish (5 s, unless said). */
  close(patienceMs?: number): Promise<void>;
}

/** A thread that serves PGlites on Unix sockets: one in a server, one after the other in tests, which spares each the start of a thread. */
export class EmbeddedThread {
  readonly #worker = new Worker(new URL('./embedded.worker.js', import.meta.url));
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

  /** Opens a database. @throws Error where its files cannot be opened */
  async open(files: EmbeddedFiles): Promise<OpenInThread> {
    const id = ++this.#opened;
    await this.#ask({ id, files });
    return { close: (patienceMs = 5_000) => this.#ask({ id, patienceMs }) };
  }

  /** Lets the process end though the thread is there. */
  unref(): void {
    this.#worker.unref();
  }

  /** Ends the thread, and without ado what is open in it. */
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
 * Serves one PGlite in a thread of its own, which ends with it.
 *
 * @throws Error where the files cannot be opened
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
