import { Unavailable } from './postgres/unavailable.js';

interface Waiting {
  readonly rank: number;
  enter(): void;
  refuse(reason: string): void;
}

/** Lets a limited number through at once; the others wait, those of the lowest rank first, and of one rank in order of arrival. */
export class Semaphore {
  #free: number;
  /** In the order in which they enter. */
  readonly #waiting: Waiting[] = [];

  /** @param refusal makes the error of those who are refused */
  constructor(
    private readonly slots: number,
    private readonly mostWaiting: number,
    private readonly patienceMs: number,
    private readonly refusal: (reason: string) => Error = (reason) => new Unavailable(reason),
  ) {
    this.#free = slots;
  }

  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.slots - this.#free, waiting: this.#waiting.length };
  }

  /**
   * Runs `work` when a slot is free.
   *
   * @throws the refusal if too many with no higher rank are waiting, or no slot became free in time
   */
  async take<T>(work: () => Promise<T>, patienceMs = this.patienceMs, rank = 0): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(patienceMs, rank);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next)
        next.enter(); // takes over the slot
      else this.#free++;
    }
  }

  #wait(patienceMs: number, rank: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        rank,
        enter: () => {
          clearTimeout(timer);
          resolve();
        },
        refuse: (reason) => {
          clearTimeout(timer);
          reject(this.refusal(reason));
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(one), 1);
        one.refuse('no turn came in time');
      }, patienceMs);
      const before = this.#waiting.findLastIndex((other) => other.rank <= rank);
      this.#waiting.splice(before + 1, 0, one);
      if (this.#waiting.length > this.mostWaiting)
        this.#waiting.pop()!.refuse('too many wait for their turn');
    });
  }
}
