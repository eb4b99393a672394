import { Unavailable } from '../database/unavailable.js';

/** argon2 runs on libuv's four threads, of which files and DNS need some; each hash takes 19 MiB meanwhile. */
const AT_ONCE = 2;
/** About two seconds' worth. */
const MOST_WAITING = 100;

/** Lets few passwords be hashed at a time, so that a flood of sign-ins takes neither the processors nor the memory. */
export class HashingQueue {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** @throws Unavailable where too many wait already */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) {
      if (this.#waiting.length >= MOST_WAITING) throw new Unavailable('too many sign-ins at once');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running++;
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next)
        next(); // takes over the place
      else this.#running--;
    }
  }
}
