import { Unavailable } from './unavailable.js';

/** Lets so many through at once; the others wait in the order in which they came. */
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
   * Runs `work` when there is a place.
   *
   * @throws Unavailable where too many wait, or there was none for so long
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

  /** The place is handed on by who had it. */
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
