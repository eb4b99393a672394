import { AsyncResource } from 'node:async_hooks';

/** Maximum wait of a request before its rejection, in ms. */
const PATIENCE_MS = 250;
/** The server is overloaded if requests have been waiting without interruption for longer than this time, in ms. */
const STANDING_MS = 100;
/** Maximum time in ms for which a connection stays unread in overload. */
const MAX_HOLD_MS = 1_000;
/** Interval of checks for late requests and unread connections, in ms. */
const LOOK_MS = 10;
/** Maximum normal delay of a check in ms; any excess counts as a pause of the process, not as waiting. */
const MAX_PAUSE_MS = 50;

/** A request's sender: network address, and credential (valid or not; empty without one). */
export interface Caller {
  readonly address: string;
  readonly credential: string;
}

/** A connection that the server can stop reading: further data then waits in the kernel. */
type Readable = Record<'pause' | 'resume', () => unknown>;

/** A waiting request in its asynchronous context, for tracing. */
class Waiting extends AsyncResource {
  constructor(
    readonly since: number,
    readonly begin: () => void,
    readonly refuse: (() => void) | undefined,
  ) {
    super('WaitingRequest');
  }
}

/**
 * Limits concurrent requests of one kind. Further requests wait in a fair queue by address, then by credential, so that one caller's flood
 * hardly delays others. In overload, the server can stop reading a connection after its response, for up to a second or until the fair
 * queue reaches its address: rejecting the next request would cost nearly as much as a response.
 */
export class Admission {
  refused = 0;
  readonly #waiting = new FairQueue<Waiting>();
  readonly #held = new FairQueue<{ readonly since: number; readonly connection: Readable }>();
  #atWork = 0;
  #left = 0;
  /** Time at which the queue last became non-empty. */
  #standingSince = 0;
  #isOverloaded = false;
  #looking: NodeJS.Timeout | undefined;
  /** Time at which the next check was scheduled, by `now`. */
  #plannedAt = 0;
  /** Total time in ms for which the process was paused; it does not count as waiting. */
  #paused = 0;

  /** @param now a monotonic clock, in milliseconds */
  constructor(
    private readonly maxConcurrent: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  state(): Record<'atWork' | 'waiting' | 'held', number> {
    return { atWork: this.#atWork - this.#left, waiting: this.#waiting.size, held: this.#held.size };
  }

  /** Calls `begin` at the caller's turn, or `refuse`, if given, after too long. When a begun request ends, call {@link leave}. */
  enter({ address, credential }: Caller, begin: () => void, refuse?: () => void): void {
    if (this.#waiting.size === 0) {
      if (this.#atWork < this.maxConcurrent) {
        this.#atWork++;
        return begin();
      }
      this.#standingSince = this.#time();
    }
    this.#waiting.add(new Waiting(refuse ? this.#time() : Infinity, begin, refuse), address, credential);
    this.#lookLater();
  }

  /** Releases the slot at the end of the event loop turn, so that one turn never begins more requests than the limit. */
  leave(): void {
    if (this.#left++ === 0) setImmediate(() => this.#goOn());
  }

  /** Call when a connection has received its response and is idle. */
  answered(connection: Readable, { address }: Caller): void {
    if (!this.#isOverloaded) return;
    // Keeps reading: the next request of this address will not wait for long.
    if (this.#waiting.countOtherKeys(address) + this.#held.countOtherKeys(address) < this.maxConcurrent)
      return;
    connection.pause();
    this.#held.add({ since: this.#time(), connection }, address);
    this.#lookLater();
  }

  #time(): number {
    return this.now() - this.#paused;
  }

  #goOn(): void {
    this.#atWork -= this.#left;
    this.#left = 0;
    if (this.#waiting.size > 0 && this.#time() - this.#standingSince > STANDING_MS) this.#isOverloaded = true;
    while (this.#waiting.size > 0 && this.#atWork < this.maxConcurrent) {
      const next = this.#waiting.next()!;
      this.#atWork++;
      next.runInAsyncScope(next.begin);
    }
    if (this.#isOverloaded) this.#readOn(this.maxConcurrent - this.#waiting.size);
  }

  #readOn(most: number): void {
    for (let i = 0; i < most && this.#held.size > 0; i++) this.#held.next()!.connection.resume();
    if (this.#held.size === 0 && this.#waiting.size === 0) this.#isOverloaded = false;
  }

  #lookLater(): void {
    if (this.#looking) return;
    this.#plannedAt = this.now();
    this.#looking = setTimeout(() => this.#look(), LOOK_MS);
  }

  #look(): void {
    this.#looking = undefined;
    this.#paused += Math.max(0, this.now() - this.#plannedAt - MAX_PAUSE_MS);
    this.#refuseOlderThan(this.#time() - PATIENCE_MS);
    for (const { connection } of this.#held.takeOlderThan(this.#time() - MAX_HOLD_MS, this.maxConcurrent))
      connection.resume();
    if (this.#atWork < this.maxConcurrent) this.#readOn(this.maxConcurrent);
    if (this.#waiting.size > 0 || this.#held.size > 0) this.#lookLater();
  }

  /** Splits many rejections over several event loop turns. */
  #refuseOlderThan(time: number): void {
    const late = this.#waiting.takeOlderThan(time, this.maxConcurrent);
    if (late.length === this.maxConcurrent) setImmediate(() => this.#refuseOlderThan(time));
    this.refused += late.length;
    for (const one of late) one.runInAsyncScope(one.refuse!);
  }
}

/** A fair queue: round-robin over keys, and per key in order of arrival. */
export class FairQueue<Item extends { readonly since: number }> {
  // An array: finding one of 4,000 keys, about the maximum number of connections, takes only 10 µs.
  readonly #lines: { readonly key: string; readonly list: FairQueue<Item> }[] = [];
  readonly #items: Item[] = [];
  size = 0;

  /** Number of other keys with waiting items; Infinity if this key has any. */
  countOtherKeys(key: string): number {
    return this.#lines.some((line) => line.key === key) ? Infinity : this.#lines.length;
  }

  /** @param keys for round-robin; a second key applies within the first */
  add(item: Item, ...[key, ...rest]: string[]): void {
    this.size++;
    if (key === undefined) {
      this.#items.push(item);
      return;
    }
    let line = this.#lines.find((one) => one.key === key);
    if (!line) this.#lines.push((line = { key, list: new FairQueue() }));
    line.list.add(item, ...rest);
  }

  next(): Item | undefined {
    if (this.size === 0) return undefined;
    this.size--;
    const line = this.#lines.shift();
    if (!line) return this.#items.shift();
    const item = line.list.next();
    if (line.list.size > 0) this.#lines.push(line); // moves the key to the end
    return item;
  }

  /** Removes and returns at most `most` items that have waited since before `time`. */
  takeOlderThan(time: number, most = Infinity): Item[] {
    const taken: Item[] = [];
    for (const { list } of this.#lines) taken.push(...list.takeOlderThan(time, most - taken.length));
    for (let i = this.#lines.length - 1; i >= 0; i--)
      if (this.#lines[i]!.list.size === 0) this.#lines.splice(i, 1);
    while (taken.length < most && this.#items.length > 0 && this.#items[0]!.since < time)
      taken.push(this.#items.shift()!);
    this.size -= taken.length;
    return taken;
  }
}
