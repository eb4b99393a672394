import { Unavailable } from './unavailable.js';

/** Lets a limited number through at once; the others wait in order of arrival. */
export class Turnstile {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(
    places: number,
    private readonly mostWaiting: number,
    private readonly patienceMs: number,
  ) {
    this.#free = places;
  }

  /**
   * Runs `work` when a place is free.
   *
   * @throws Unavailable if too many are waiting, or no place became free in time
   */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait();
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#free++;
    }
  }

  /** Waits until a place is handed over. */
  #wait(): Promise<void> {
    if (this.#waiting.size >= this.mostWaiting) throw new Unavailable('too many long statements wait');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(enter);
        reject(new Unavailable('long statements took all places for too long'));
      }, this.patienceMs);
      const enter = () => {
        clearTimeout(timer);
        this.#waiting.delete(enter);
        resolve();
      };
      this.#waiting.add(enter);
    });
  }
}
