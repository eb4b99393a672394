import { Meter } from '../http/meter.js';
import { Busy } from './busy.js';

/** argon2 runs on libuv's four threads, of which files and DNS need some; each hash takes 12 MiB meanwhile. */
const AT_ONCE = 2;
/** More could not be served before their deadline. */
const MOST_WAITING = 150;

interface Waiting {
  readonly failures: number;
  start(): void;
  refuse(): void;
}

/**
 * Limits how many passwords are hashed at a time, so that a flood of sign-ins exhausts neither processors nor memory. Who has
 * failed least goes first: guesses wait behind each other, not before everybody else.
 */
export class HashingQueue {
  #running = 0;
  /** In the order in which they start. */
  readonly #waiting: Waiting[] = [];
  #refusals = 0;

  constructor(private readonly meter = new Meter()) {
    meter.read('password_hashing_queue', () => [
      [{ state: 'running' }, this.#running],
      [{ state: 'waiting' }, this.#waiting.length],
    ]);
    meter.read('overload_refusals_total', () => [[{ reason: 'password_hashing' }, this.#refusals]]);
  }

  /**
   * @param deadline moment of performance.now() by which the task must have begun
   * @param failures how often those who want it have failed recently; 0 for who is known
   * @throws Busy if it has not, or if too many with fewer failures are waiting
   */
  async run<T>(task: () => Promise<T>, deadline: number, failures = 0): Promise<T> {
    if (this.#running >= AT_ONCE) await this.#turn(deadline, failures);
    else this.#running++;
    const startedAt = performance.now();
    try {
      return await task();
    } finally {
      this.meter.observe('password_hashing_duration_seconds', {}, (performance.now() - startedAt) / 1000);
      const next = this.#waiting.shift();
      if (next)
        next.start(); // takes over the place
      else this.#running--;
    }
  }

  #turn(deadline: number, failures: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        failures,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
        refuse: () => {
          clearTimeout(timer);
          this.#refusals++;
          reject(new Busy());
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(one), 1);
        one.refuse();
      }, deadline - performance.now());
      const before = this.#waiting.findLastIndex((other) => other.failures <= failures);
      this.#waiting.splice(before + 1, 0, one);
      if (this.#waiting.length > MOST_WAITING) this.#waiting.pop()!.refuse();
    });
  }
}
