import { setTimeout as pause } from 'node:timers/promises';

export interface Outcome {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** So much of what cannot be answered now is waited for before it is asked again; Retry-After says a second. */
const AGAIN_MS = 100;

/** Callers that ask one thing after the other until all is over, and what became of it. */
export class Load {
  /** How often each kind was answered with success. */
  readonly answered: Record<string, number> = {};
  /** 503 with Retry-After: asked again, and what it would have used up is still good. */
  busy = 0;
  /** Whatever else was answered, or broke. */
  readonly failed: unknown[] = [];
  #isOver = false;
  readonly #callers: Promise<void>[] = [];

  /** One more caller. What `ask` throws is a request that failed. */
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
      } else this.failed.push([kind, status, body]);
    }
  }

  /** Resolves when each kind was answered so often since. */
  async meanwhile(times: number): Promise<void> {
    const before = { ...this.answered };
    const isThere = () =>
      Object.entries(this.answered).every(([kind, count]) => count >= (before[kind] ?? 0) + times);
    while (!isThere() && this.failed.length === 0) await pause(10);
  }

  /** Resolves when what was asked is answered. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }
}
