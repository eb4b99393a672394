import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { HORIZON } from '../changes/changes.js';
import { Database } from '../database/database.js';
import { Readiness } from '../operations/health/readiness.js';

/** Pause between two look-ups while somebody waits. */
const LOOK_MS = 250;

const NEWEST = `SELECT changed_in FROM platform_changes WHERE changed_in < ${HORIZON} ORDER BY changed_in DESC LIMIT 1`;

interface Waiter {
  readonly from: number;
  readonly until: number;
  readonly answer: (hasChanges: boolean) => void;
}

/** Waits for changes by members: one look-up serves everybody who waits in this process, and none is made while nobody waits. */
@Injectable()
export class LongPoll {
  readonly #waiters = new Set<Waiter>();
  #looking = false;

  constructor(
    private readonly database: Database,
    private readonly readiness: Readiness,
  ) {}

  get waiting(): number {
    return this.#waiters.size;
  }

  /**
   * Waits for a change made by that transaction or a later one.
   *
   * @param gone ends the wait
   * @returns false if the time is over, nobody is waiting any more, or the server shuts down; true also if the look-up fails: whoever
   *   reads then gets the error
   */
  after(from: number, milliseconds: number, gone: AbortSignal): Promise<boolean> {
    if (milliseconds <= 0 || gone.aborted || this.readiness.ending) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiter = {
        from,
        until: performance.now() + milliseconds,
        answer: (hasChanges: boolean) => {
          this.#waiters.delete(waiter);
          resolve(hasChanges);
        },
      };
      this.#waiters.add(waiter);
      gone.addEventListener('abort', () => waiter.answer(false), { once: true });
      if (!this.#looking) void this.#look();
    });
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#waiters.size > 0) {
      await setTimeout(LOOK_MS, undefined, { ref: false });
      const newest = await this.#newest();
      const now = performance.now();
      for (const waiter of this.#waiters)
        if (newest >= waiter.from) waiter.answer(true);
        else if (now >= waiter.until || this.readiness.ending) waiter.answer(false);
    }
    this.#looking = false;
  }

  /** Number of the transaction of the newest change; Infinity if it cannot be read. */
  async #newest(): Promise<number> {
    try {
      const [row] = await this.database.prepared<{ changed_in: number }>(NEWEST, []);
      return row?.changed_in ?? -1;
    } catch {
      return Infinity;
    }
  }
}
