import { Unavailable } from './unavailable.js';

interface Waiting extends PromiseWithResolvers<void> {
  readonly rank: number;
}

/** Limits concurrency; the lowest rank goes first, and equal ranks in order of arrival. */
export class Semaphore {
  #free: number;
  readonly #waiting: Waiting[] = [];

  /** @param refusal makes the error for rejected callers */
  constructor(
    private readonly slots: number,
    private readonly maxWaiting: number,
    private readonly patienceMs: number,
    private readonly refusal: (reason: string) => Error = (reason) => new Unavailable(reason),
  ) {
    this.#free = slots;
  }

  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.slots - this.#free, waiting: this.#waiting.length };
  }

  /** Runs `work` when a permit is free. @throws the refusal if too many callers of this or a lower rank wait, or after the time limit */
  async take<T>(work: () => Promise<T>, patienceMs = this.patienceMs, rank = 0): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(patienceMs, rank);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next)
        next.resolve(); // passes the permit to the next caller
      else this.#free++;
    }
  }

  #wait(patienceMs: number, rank: number): Promise<void> {
    const one: Waiting = { rank, ...Promise.withResolvers<void>() };
    const before = this.#waiting.findLastIndex((other) => other.rank <= rank);
    this.#waiting.splice(before + 1, 0, one);
    if (this.#waiting.length > this.maxWaiting)
      this.#waiting.pop()!.reject(this.refusal('too many requests are waiting'));
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      one.reject(this.refusal('the request waited too long'));
    }, patienceMs);
    const over = () => clearTimeout(timer);
    one.promise.then(over, over);
    return one.promise;
  }
}
