import { setTimeout as pause } from 'node:timers/promises';

export interface Outcome {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** Pause in ms before a rejected request is repeated; Retry-After is a second. */
const AGAIN_MS = 100;

/** Callers that send one request after the other until the end, and their results. */
export class Load {
  /** Number of successful requests of each kind. */
  readonly answered: Record<string, number> = {};
  /** 503 responses with Retry-After: repeated, since they consume nothing. */
  busy = 0;
  /** Other responses and errors; each ends its caller. */
  readonly failed: unknown[] = [];
  #isOver = false;
  readonly #callers: Promise<void>[] = [];

  /** Adds a caller. An exception of `ask` means that the request failed. */
  add(kind: string, ask: () => Promise<Outcome>): void {
    this.answered[kind] ??= 0;
    this.#callers.push(this.#go(kind, ask));
  }

  async #go(kind: string, ask: () => Promise<Outcome>): Promise<void> {
    while (!this.#isOver) {
      const { status, headers, body } = await ask().catch(({ message }: Error): Outcome => ({
        status: 0,
        headers: {},
        body: message,
      }));
      if (status === 200) this.answered[kind]!++;
      else if (status === 503 && headers['retry-after'] !== undefined) {
        this.busy++;
        await pause(AGAIN_MS);
      } else {
        this.failed.push([kind, status, body]);
        return; // the errors that follow would fill the memory
      }
    }
  }

  /** Resolves after this many more successes of each kind. */
  async meanwhile(times: number): Promise<void> {
    const before = { ...this.answered };
    const isThere = () =>
      Object.entries(this.answered).every(([kind, count]) => count >= (before[kind] ?? 0) + times);
    while (!isThere() && this.failed.length === 0) await pause(10);
  }

  /** Ends the load; resolves when all requests in progress have a response. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }
}
