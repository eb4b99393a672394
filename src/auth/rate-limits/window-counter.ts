/** Length of a window, in seconds. Windows begin with the minute, on every instance alike. */
export const WINDOW_SECONDS = 60;

export interface Count {
  /** Requests in this window, this one included. */
  readonly used: number;
  /** Whole seconds until the next window, at least 1. */
  readonly resetSeconds: number;
}

interface Entry {
  used: number;
  /** Of them, those that the shared store has not heard of. */
  unshared: number;
}

/**
 * Counts requests by key in fixed windows. Counting is in memory, so that no request waits for it; what is counted is
 * shared with the other instances now and then (see {@link takeUnshared}), so a limit over many instances is exact
 * to what they count in between.
 */
export class WindowCounter {
  #window = 0;
  #entries = new Map<string, Entry>();

  constructor(private readonly now: () => number = Date.now) {}

  count(key: string): Count {
    const entry = this.#entry(key);
    entry.used++;
    entry.unshared++;
    return { used: entry.used, resetSeconds: this.#resetSeconds() };
  }

  /** Hands out what was counted since the last time, and the window that it belongs to. */
  takeUnshared(): { window: number; counts: Map<string, number> } {
    this.#turn();
    const counts = new Map<string, number>();
    for (const [key, entry] of this.#entries) {
      if (entry.unshared === 0) continue;
      counts.set(key, entry.unshared);
      entry.unshared = 0;
    }
    return { window: this.#window, counts };
  }

  /** Takes over what all instances counted together in `window`. */
  merge(window: number, totals: ReadonlyMap<string, number>): void {
    this.#turn();
    if (window !== this.#window) return;
    for (const [key, total] of totals) {
      const entry = this.#entry(key);
      entry.used = Math.max(entry.used, total + entry.unshared);
    }
  }

  #entry(key: string): Entry {
    this.#turn();
    let entry = this.#entries.get(key);
    if (!entry) this.#entries.set(key, (entry = { used: 0, unshared: 0 }));
    return entry;
  }

  /** A new window starts from nothing. */
  #turn(): void {
    const window = Math.floor(this.now() / 1000 / WINDOW_SECONDS);
    if (window === this.#window) return;
    this.#window = window;
    this.#entries = new Map();
  }

  #resetSeconds(): number {
    return Math.max(1, Math.ceil((this.#window + 1) * WINDOW_SECONDS - this.now() / 1000));
  }
}
