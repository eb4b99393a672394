import type { Membership } from './membership.js';
import { WINDOW_SECONDS } from './shared-counts.js';
import type { Answer, Ask } from './shared-counts.js';

/** The outcome of one call. */
export interface Count {
  readonly admitted: boolean;
  /**
   * Calls left in this window across all instances, as far as this one knows: until it hears from the store again, it assumes that
   * the others continue at their last known pace.
   */
  readonly left: number;
  /** Whole seconds until the next window, at least 1. */
  readonly resetSeconds: number;
}

/**
 * The largest share of the remaining quota that an instance takes in advance: a twentieth. While another instance holds that much
 * unused, 95 % can still be used.
 */
const LARGEST_SHARE = 20;
/** Calls taken but unused for this long are given back; sooner where less than half of the quota is left. */
const IDLE_MS = 5_000;
const SCARCE_IDLE_MS = 1_000;
/** How often idle calls are given back, and the store is asked what other instances took. */
const TICK_MS = 500;
/** Most callers call only a few times a second and have plenty left: for them the store is asked less often. */
const FEW = 4;
const RARELY_MS = 2_000;
/** Keys remembered in a window; each takes some 200 bytes. Beyond that, the oldest are forgotten. */
const MOST_KEYS = 100_000;

interface Entry {
  readonly key: string;
  /** Taken from the shared store and not used yet. */
  leased: number;
  /** Not taken by any instance when the store last responded, less what was admitted since without being taken. */
  left: number;
  /** Admitted without being taken, and not reported to the store yet. */
  spent: number;
  /** By `performance.now()`: the moment for which {@link left} is the store's figure. */
  knownSince: number;
  /** Calls since then. */
  calls: number;
  /** Calls taken in the shared store: by this instance, and by all others. */
  taken: number;
  takenByOthers: number | undefined;
  /** What the others are expected to take before the store is asked again. */
  othersPace: number;
  /** Calls granted by the last response that granted any. */
  granted: number;
  /** Calls to take in advance with the next ones needed; doubles as long as they are used. */
  ahead: number;
  /** By `performance.now()`. */
  usedAt: number;
  /** A call was refused since the store was last asked: other instances may have given calls back since. */
  refused: boolean;
  /** The next tick examines it. */
  active: boolean;
  /** Calls waiting until some are taken, in order of arrival. */
  readonly waiting: ((count: Count) => void)[];
}

/**
 * One limit: a quota of calls per key in fixed windows, shared by all instances.
 *
 * An instance takes calls of a key from the shared store before it admits them, a few at a time: so all instances
 * together never admit more than the quota, and most calls need not wait. Unused calls are given back. A key whose quota is used
 * up is refused from memory until its window ends. Everything needed at the same time goes to the store in one statement, and
 * only one statement is under way at a time.
 *
 * An instance that is alone, and has been since it learned what is left of a key or since the window began, need not ask: it
 * admits by itself, and reports to the store twice a second and before another instance is let in (see {@link Membership}). If
 * it is killed, what it has not reported is lost.
 *
 * Where the store is unreachable, or slower than `patienceMs`, this instance limits alone with what it knew was left, and reports
 * what it admitted once the store is back. Without a store (one instance) it always limits alone.
 */
export class Limit {
  #window = Math.floor(Date.now() / 1000 / WINDOW_SECONDS);
  /** By `performance.now()`. */
  #endsAt = performance.now() + WINDOW_SECONDS * 1000 - (Date.now() % (WINDOW_SECONDS * 1000));
  #entries = new Map<string, Entry>();
  /** Keys for the next statement, and below those in the one under way. */
  readonly #toAsk = new Set<Entry>();
  #asked: ReadonlyMap<string, Entry> = new Map();
  #active: Entry[] = [];
  #alone: boolean;
  /** By `performance.now()`: since when a key that is new here is known to be unused; -Infinity if only the store knows. */
  #unusedSince = -Infinity;
  /** The store has said when its window ends. */
  #heard = false;
  /** Settles when the statement under way, or about to be sent, is finished. */
  #sending: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout | undefined;

  /**
   * @param quota calls of a key in a window
   * @param patienceMs longest time that a call waits for the store
   * @param shared the counts of all instances; undefined where there can be no other
   * @param onChange called with the reason when the store becomes unreachable, and with undefined when it is back
   */
  constructor(
    readonly quota: number,
    private readonly patienceMs: number,
    private readonly shared: Membership | undefined,
    private readonly onChange: (reason: string | undefined) => void,
  ) {
    this.#alone = shared === undefined;
    if (!shared) return;
    this.#timer = setInterval(() => this.tick(), TICK_MS).unref();
    shared.beforeOthers(() => this.#tellSpent());
  }

  /** Whether all instances limit together; false while the store is unreachable. */
  get together(): boolean {
    return !this.#alone;
  }

  /** Counts a call of `key`, mostly without waiting; the promise never rejects. */
  take(key: string): Count | Promise<Count> {
    const now = performance.now();
    if (now >= this.#endsAt) this.#turn(now);
    const entry = this.#entry(key);
    entry.usedAt = now;
    entry.calls++;
    this.#touch(entry);
    const count = this.#decide(entry);
    if (count) return count;
    return new Promise<Count>((resolve) => {
      entry.waiting.push(resolve);
      this.#ask(entry);
    });
  }

  /** Gives back idle calls, asks again for keys that were used up, and learns what others took. */
  tick(): void {
    const active = this.#active;
    this.#active = [];
    const now = performance.now();
    for (const entry of active) {
      const { leased, spent, refused, calls } = entry;
      const idle = leased > 0 && this.#isIdle(entry, now);
      const rarely = calls <= FEW && this.#hasPlenty(entry);
      const used = calls > 0 && (!rarely || now - entry.knownSince >= RARELY_MS);
      entry.active = !idle && (leased > 0 || (calls > 0 && !this.#nobodyElse(entry)));
      if (entry.active) this.#active.push(entry);
      if (idle || spent > 0 || ((used || refused) && !this.#nobodyElse(entry))) this.#ask(entry);
    }
  }

  /** Gives back all unused calls. */
  async end(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.shared || this.#alone) return;
    await this.#quiet(); // the statement under way may take more
    for (const entry of this.#entries.values()) {
      entry.usedAt = -Infinity;
      if (entry.leased > 0 || entry.spent > 0) this.#ask(entry);
    }
    await this.#quiet();
  }

  async #tellSpent(): Promise<void> {
    for (const entry of this.#entries.values()) if (entry.spent > 0) this.#ask(entry);
    await this.#sending; // if a statement is under way, these go with the next one
    await this.#sending;
  }

  async #quiet(): Promise<void> {
    for (let sending = this.#sending; sending; sending = this.#sending) await sending;
  }

  /** Whether no other instance has used this key since this one learned what is left. */
  #nobodyElse({ knownSince }: Entry): boolean {
    return this.shared?.aloneSince(knownSince) ?? true;
  }

  #hasPlenty({ left }: Entry): boolean {
    return left > this.quota / 2;
  }

  #isIdle(entry: Entry, now: number): boolean {
    return now - entry.usedAt >= (this.#hasPlenty(entry) ? IDLE_MS : SCARCE_IDLE_MS);
  }

  /** @returns undefined where the store must be asked first */
  #decide(entry: Entry): Count | undefined {
    if (entry.leased > 0) {
      entry.leased--;
      return this.#count(true, entry);
    }
    if (entry.left === 0) {
      entry.refused = true;
      return this.#count(false, entry);
    }
    if (!this.#alone && !this.#nobodyElse(entry)) return undefined;
    entry.left--;
    entry.spent++;
    return this.#count(true, entry);
  }

  #count(admitted: boolean, { leased, left, othersPace }: Entry): Count {
    const resetSeconds = Math.max(1, Math.ceil((this.#endsAt - performance.now()) / 1000));
    return { admitted, left: leased + Math.max(0, left - othersPace), resetSeconds };
  }

  #entry(key: string): Entry {
    let entry = this.#entries.get(key);
    if (entry) return entry;
    if (this.#entries.size >= MOST_KEYS) this.#forgetOne();
    entry = { key, usedAt: 0, waiting: [], ...this.#unused() };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Forgets the oldest key, but none with unreported calls. */
  #forgetOne(): void {
    this.#unusedSince = -Infinity;
    for (let looked = 0; looked < 100; looked++) {
      const [oldest] = this.#entries.values();
      this.#entries.delete(oldest!.key);
      if (oldest!.spent === 0) return;
      this.#entries.set(oldest!.key, oldest!);
    }
  }

  /** The state of a key that is unused in this window. */
  #unused() {
    return {
      leased: 0,
      left: this.quota,
      spent: 0,
      knownSince: this.#unusedSince,
      calls: 0,
      taken: 0,
      takenByOthers: undefined,
      othersPace: 0,
      granted: 0,
      ahead: 0,
      refused: false,
      active: false,
    };
  }

  #touch(entry: Entry): void {
    if (entry.active || !this.shared) return;
    entry.active = true;
    this.#active.push(entry);
  }

  #ask(entry: Entry): void {
    this.#toAsk.add(entry);
    // Everything asked in this turn of the event loop joins the same statement.
    this.#sending ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#send());
  }

  async #send(): Promise<void> {
    const entries = [...this.#toAsk];
    this.#toAsk.clear();
    this.#asked = new Map(entries.map((entry) => [entry.key, entry]));
    const window = this.#window;
    const sentAt = performance.now();
    const asks = entries.map((entry) => this.#askOf(entry, sentAt));
    let answered = false;
    // setImmediate: a response that arrived while this process was busy is read first.
    const late = setTimeout(
      () => setImmediate(() => answered || this.#goAlone(`no answer within ${this.patienceMs} ms`)),
      this.patienceMs,
    );
    try {
      const answer = await this.shared!.settle(this.quota, window, asks);
      answered = true;
      this.#hear(answer, asks, sentAt);
      if (performance.now() - sentAt < this.patienceMs) this.#goTogether();
    } catch (error) {
      answered = true;
      // The statement may have taken effect. Reporting calls twice is safe; giving them back twice would not be.
      if (window === this.#window) for (const { key, spent } of asks) this.#asked.get(key)!.spent += spent;
      this.#goAlone((error as Error).message);
    } finally {
      clearTimeout(late);
      this.#asked = new Map();
      this.#sending = this.#toAsk.size > 0 ? this.#send() : undefined;
    }
  }

  #askOf(entry: Entry, now: number): Ask {
    const { key, spent, waiting, left, refused } = entry;
    let wanted = waiting.length;
    if (wanted > 0) {
      wanted += Math.min(entry.ahead, Math.floor(left / LARGEST_SHARE));
      entry.ahead = Math.min(this.quota, Math.max(1, 2 * entry.ahead));
    } else if (this.#isIdle(entry, now)) {
      wanted = -entry.leased;
      entry.leased = 0;
      entry.ahead = 0;
    } else if (refused) {
      wanted = 1;
    }
    entry.spent = 0;
    entry.refused = false;
    return { key, spent, wanted };
  }

  #hear({ window, millisecondsLeft, told }: Answer, asks: readonly Ask[], sentAt: number): void {
    if (window === this.#window) for (const { key, spent } of asks) this.#asked.get(key)!.taken += spent;
    else this.#begin(window, sentAt + millisecondsLeft - WINDOW_SECONDS * 1000);
    this.#endsAt = sentAt + millisecondsLeft;
    this.#heard = true;
    for (const { key, used, granted } of told) {
      const entry = this.#asked.get(key)!;
      // The store has counted what was granted; that covers calls admitted without being taken in the meantime.
      const paid = Math.min(entry.spent, Math.max(0, granted));
      entry.spent -= paid;
      entry.leased += Math.max(0, granted) - paid;
      entry.left = Math.max(0, this.quota - used - entry.spent);
      const since = sentAt - entry.knownSince;
      entry.knownSince = sentAt;
      entry.calls = 0;
      entry.taken += granted;
      const byOthers = used - entry.taken;
      const lately = Math.max(0, byOthers - (entry.takenByOthers ?? byOthers));
      // The others are expected to continue at this pace, for longer if more was taken here, and to take another share soon.
      const slower =
        granted === 0 && this.#hasPlenty(entry) ? Math.max(1, RARELY_MS / Math.max(TICK_MS, since)) : 1;
      const longer = entry.granted === 0 ? slower : Math.max(slower, granted / entry.granted);
      entry.othersPace = byOthers > 0 ? Math.ceil(lately * longer + entry.left / LARGEST_SHARE) : 0;
      entry.takenByOthers = byOthers;
      if (granted > 0) entry.granted = granted;
      if (entry.leased > 0) this.#touch(entry);
    }
    for (const entry of this.#asked.values()) this.#serve(entry);
  }

  /** Resolves waiting calls from what is left now; where the store may grant more, they keep waiting. */
  #serve(entry: Entry): void {
    while (entry.waiting.length > 0) {
      const count = this.#decide(entry);
      if (!count) {
        this.#ask(entry);
        return;
      }
      entry.waiting.shift()!(count);
    }
  }

  #goAlone(reason: string): void {
    if (!this.#alone) {
      this.#alone = true;
      this.onChange(reason);
    }
    for (const entry of [...this.#asked.values(), ...this.#toAsk]) this.#serve(entry);
  }

  #goTogether(): void {
    if (!this.#alone) return;
    this.#alone = false;
    this.onChange(undefined);
  }

  #turn(now: number): void {
    const windows = 1 + Math.floor((now - this.#endsAt) / (WINDOW_SECONDS * 1000));
    this.#endsAt += windows * WINDOW_SECONDS * 1000;
    // From the store's first response on, its clock decides; until then the local clock is only a guess.
    const known = this.#heard ? this.#endsAt - WINDOW_SECONDS * 1000 : -Infinity;
    this.#begin(this.#window + windows, known);
  }

  /** Begins a window with nothing used. Calls still waiting are counted in it. */
  #begin(window: number, beganAt: number): void {
    this.#window = window;
    this.#entries = new Map();
    this.#active = [];
    this.#unusedSince = beganAt;
    for (const entry of [...this.#asked.values(), ...this.#toAsk]) {
      Object.assign(entry, this.#unused());
      this.#entries.set(entry.key, entry);
    }
  }
}
