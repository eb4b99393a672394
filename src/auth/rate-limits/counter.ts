import type { Logger } from 'pino';
import type { CountStore } from './count-stores.js';

/** Windows begin with the minutes of the machine's clock. */
export const WINDOW_SECONDS = 60;
/** Callers that each limit remembers, some 350 bytes each; with one more, it begins anew from what the store knows. */
const MOST_CALLERS = 100_000;
/** Keys of one exchange; the others go with the next one. */
const MOST_EXCHANGED = 5_000;

/** The calls of one caller that were admitted in this window. */
interface Calls {
  readonly key: string;
  /** By all instances, as of the last exchange. */
  known: number;
  /** By this one since then. */
  unsent: number;
}

/**
 * Counts calls by limit and caller in fixed windows, in memory: no call waits for the store. Every `intervalMs`, what this instance
 * admitted is added to the store, which returns what all have admitted: so several instances admit fewer calls too many than arrive
 * within one interval (docs/scaling.md), and one is exact. While the store is away, each goes on with what it knows.
 */
export class Counter {
  #window = 0;
  readonly #limits = new Map<string, Map<string, Calls>>();
  readonly #changed = new Set<Calls>();
  #exchanging: Promise<void> | undefined;
  /** Whether the store is unreachable, so that this instance counts alone. */
  alone = false;

  /** @param store undefined if there is no other instance */
  constructor(
    private readonly store: CountStore | undefined,
    private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /** Counts a call, unless none is left. @returns also what is left after it, and the whole seconds until the next window */
  take(limit: string, caller: string, quota: number) {
    const seconds = Date.now() / 1000;
    const window = Math.floor(seconds / WINDOW_SECONDS);
    const calls = this.#callsOf(limit, caller, window);
    const left = quota - calls.known - calls.unsent;
    if (left > 0) {
      calls.unsent++;
      if (this.store) this.#changed.add(calls);
    }
    const resetSeconds = Math.ceil((window + 1) * WINDOW_SECONDS - seconds);
    return { admitted: left > 0, left: Math.max(0, left - 1), resetSeconds };
  }

  /** Tells the store what it does not know, and learns what the others admitted; never rejects. */
  exchange(): Promise<void> {
    return (this.#exchanging ??= this.#exchange().finally(() => (this.#exchanging = undefined)));
  }

  async end(): Promise<void> {
    await this.#exchanging;
    await this.exchange();
    await this.store?.end();
  }

  #callsOf(limit: string, caller: string, window: number): Calls {
    if (window !== this.#window) {
      this.#window = window;
      this.#limits.clear();
      this.#changed.clear();
    }
    let callers = this.#limits.get(limit);
    let calls = callers?.get(caller);
    if (calls) return calls;
    if (!callers || callers.size >= MOST_CALLERS) {
      this.#limits.set(limit, (callers = new Map()));
      this.#changed.clear(); // whoever calls again is in it again
    }
    calls = { key: `${window}:${limit}:${caller}`, known: 0, unsent: 0 };
    callers.set(caller, calls);
    return calls;
  }

  async #exchange(): Promise<void> {
    if (!this.store || (this.#changed.size === 0 && !this.alone)) return;
    const changed = [...this.#changed].slice(0, MOST_EXCHANGED);
    const sent = new Map(changed.map(({ key, unsent }) => [key, unsent]));
    try {
      const sums = await this.store.add(this.#window, sent);
      for (const calls of changed) {
        const added = sent.get(calls.key)!;
        calls.known = Math.max(calls.known + added, sums.get(calls.key)!); // the store may have lost its counts
        calls.unsent -= added;
        if (calls.unsent === 0) this.#changed.delete(calls);
      }
      if (this.alone) this.logger.info('rate limits are shared again');
      this.alone = false;
    } catch (error) {
      // It is sent again. If it was added nevertheless, it counts twice, which is safe.
      const reason = (error as Error).message;
      if (!this.alone) this.logger.warn({ reason }, 'rate limits are not shared: this instance limits alone');
      this.alone = true;
    }
  }
}
