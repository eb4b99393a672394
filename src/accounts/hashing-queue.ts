import { Meter } from '../http/meter.js';
import { Busy } from './busy.js';

/** argon2 runs on libuv's four threads, of which files and DNS need some; each hash takes 12 MiB meanwhile. */
const AT_ONCE = 2;
/** More could not be served before their deadline. */
const MOST_WAITING = 150;

/** Limits how many passwords are hashed at a time, so that a flood of sign-ins exhausts neither processors nor memory. */
export class HashingQueue {
  #running = 0;
  /** Functions that start the waiting tasks, in order of arrival. */
  readonly #waiting = new Set<() => void>();
  #refusals = 0;

  constructor(private readonly meter = new Meter()) {
    meter.read('password_hashing_queue', () => [
      [{ state: 'running' }, this.#running],
      [{ state: 'waiting' }, this.#waiting.size],
    ]);
    meter.read('overload_refusals_total', () => [[{ reason: 'password_hashing' }, this.#refusals]]);
  }

  /**
   * @param deadline moment of performance.now() by which the task must have begun
   * @throws Busy if it has not, or if too many are already waiting
   */
  async run<T>(task: () => Promise<T>, deadline: number): Promise<T> {
    if (this.#running >= AT_ONCE) await this.#turn(deadline);
    else this.#running++;
    const startedAt = performance.now();
    try {
      return await task();
    } finally {
      this.meter.observe('password_hashing_duration_seconds', {}, (performance.now() - startedAt) / 1000);
      const [next] = this.#waiting;
      if (next)
        next(); // takes over the place
      else this.#running--;
    }
  }

  #turn(deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = () => {
        this.#refusals++;
        reject(new Busy());
      };
      if (this.#waiting.size >= MOST_WAITING) {
        refuse();
        return;
      }
      const start = () => {
        this.#waiting.delete(start);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(start);
        refuse();
      }, deadline - performance.now());
      this.#waiting.add(start);
    });
  }
}
