import { Unavailable } from '../../database/postgres/unavailable.js';
import { Semaphore } from '../../database/semaphore.js';
import { Meter } from '../../http/meter.js';

/** argon2 runs on libuv's four threads, of which files and DNS need some; each hash takes 12 MiB meanwhile. */
const AT_ONCE = 2;
/** More could not be served before their deadline. */
const MOST_WAITING = 150;

/** Too many sign-ins are in progress: the password of this one was not checked, and the attempt is not counted. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}

/**
 * Limits how many passwords are hashed at a time, so that a flood of sign-ins exhausts neither processors nor memory. Who has
 * failed least goes first: guesses wait behind each other, not before everybody else.
 */
export class HashingQueue {
  #refusals = 0;
  readonly #semaphore = new Semaphore(AT_ONCE, MOST_WAITING, 0, () => {
    this.#refusals++;
    return new Busy();
  });

  constructor(private readonly meter = new Meter()) {
    meter.read('password_hashing_queue', () => [
      [{ state: 'running' }, this.#semaphore.counts.running],
      [{ state: 'waiting' }, this.#semaphore.counts.waiting],
    ]);
    meter.read('overload_refusals_total', () => [[{ reason: 'password_hashing' }, this.#refusals]]);
  }

  /**
   * @param deadline moment of performance.now() by which the task must have begun
   * @param failures how often those who want it have failed recently; 0 for who is known
   * @throws Busy if it has not, or if too many with fewer failures are waiting
   */
  run<T>(task: () => Promise<T>, deadline: number, failures = 0): Promise<T> {
    const measured = async () => {
      const startedAt = performance.now();
      try {
        return await task();
      } finally {
        this.meter.observe('password_hashing_duration_seconds', {}, (performance.now() - startedAt) / 1000);
      }
    };
    return this.#semaphore.take(measured, deadline - performance.now(), failures);
  }
}
