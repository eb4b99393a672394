import { AsyncResource } from 'node:async_hooks';

/** How long a request may wait before it is refused, in ms. */
const PATIENCE_MS = 250;
/** If requests have been waiting all the time for this long, it is overload, in ms. */
const STANDING_MS = 100;
/** How long a connection is left unread in overload, in ms. */
const LONGEST_HOLD_MS = 1_000;
/** Pause between two looks for what has waited too long, in ms. */
const LOOK_MS = 10;
/** A pause of the process (of its machine, or to collect garbage) counts as this long, in ms: in it, nobody waits for others. */
const LONGEST_PAUSE_MS = 50;

/** Who sent a request: from which network address, and with which credential, valid or not; empty where there is none. */
export interface Caller {
  readonly address: string;
  readonly credential: string;
}

/** A connection that can be left unread: what its client sends then waits in the kernel, where it costs nothing. */
type Readable = Record<'pause' | 'resume', () => unknown>;

/** A request in its asynchronous context, for whoever traces it. */
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
 * The requests of one kind that this process works on: as many as keep it and the database busy. Others wait for their turn, for a
 * bounded time: addresses take turns, and at one address its credentials do, so neither a flood nor made-up credentials delay
 * anybody else by more than a few requests. A pause of the process refuses nobody.
 *
 * If there is always somebody waiting, it is overload. A refusal costs nearly as much as a response, so then connections are not even
 * read: each that was answered is left alone until the turn of its address has come, for a second at most.
 */
export class Admission {
  /** Requests that were refused because they had waited too long. */
  refused = 0;
  readonly #waiting = new Waitlist<Waiting>();
  readonly #held = new Waitlist<{ readonly since: number; readonly connection: Readable }>();
  #atWork = 0;
  #left = 0;
  /** Since when there is always somebody waiting. */
  #standingSince = 0;
  #isOverloaded = false;
  #looking: NodeJS.Timeout | undefined;
  /** When the next look was planned, by the process's clock. */
  #plannedAt = 0;
  /** Milliseconds of pauses that do not count. */
  #paused = 0;

  /**
   * @param mostAtWork requests at a time
   * @param now a monotonic clock, in milliseconds
   */
  constructor(
    private readonly mostAtWork: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** For metrics and tests. */
  state(): Record<'atWork' | 'waiting' | 'held', number> {
    return { atWork: this.#atWork - this.#left, waiting: this.#waiting.size, held: this.#held.size };
  }

  /**
   * Calls `begin`, at once or when it is the caller's turn, or else `refuse`; what has begun ends with {@link leave}.
   *
   * @param refuse undefined for a request that was admitted before: it waits for as long as it takes
   */
  enter({ address, credential }: Caller, begin: () => void, refuse?: () => void): void {
    if (this.#waiting.size === 0) {
      if (this.#atWork < this.mostAtWork) {
        this.#atWork++;
        return begin();
      }
      this.#standingSince = this.#time();
    }
    this.#waiting.add(new Waiting(refuse ? this.#time() : Infinity, begin, refuse), address, credential);
    this.#lookLater();
  }

  /**
   * Ends what `enter` has begun. Counts from the end of the event loop's turn, so that one turn never begins more requests than may
   * be at work, even of those that wait for nothing.
   */
  leave(): void {
    if (this.#left++ === 0) setImmediate(() => this.#goOn());
  }

  /** Is to be told of each connection that has its response and nothing more to do. */
  answered(connection: Readable, { address }: Caller): void {
    if (!this.#isOverloaded) return;
    // Nothing of this address waits, and so little of others that its next request will not wait for long.
    if (this.#waiting.othersThan(address) + this.#held.othersThan(address) < this.mostAtWork) return;
    connection.pause();
    this.#held.add({ since: this.#time(), connection }, address);
    this.#lookLater();
  }

  /** The time, without what is too long in pauses of the process. */
  #time(): number {
    return this.now() - this.#paused;
  }

  #goOn(): void {
    this.#atWork -= this.#left;
    this.#left = 0;
    if (this.#waiting.size > 0 && this.#time() - this.#standingSince > STANDING_MS) this.#isOverloaded = true;
    while (this.#waiting.size > 0 && this.#atWork < this.mostAtWork) {
      const next = this.#waiting.next()!;
      this.#atWork++;
      next.runInAsyncScope(next.begin);
    }
    if (this.#isOverloaded) this.#readOn(this.mostAtWork - this.#waiting.size);
  }

  /** Reads as many connections again as can be served. */
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
    this.#paused += Math.max(0, this.now() - this.#plannedAt - LONGEST_PAUSE_MS);
    this.#refuseOlderThan(this.#time() - PATIENCE_MS);
    for (const { connection } of this.#held.takeOlderThan(this.#time() - LONGEST_HOLD_MS, this.mostAtWork))
      connection.resume();
    if (this.#atWork < this.mostAtWork) this.#readOn(this.mostAtWork);
    if (this.#waiting.size > 0 || this.#held.size > 0) this.#lookLater();
  }

  /** In several turns of the event loop where there are many: others have theirs in between. */
  #refuseOlderThan(time: number): void {
    const late = this.#waiting.takeOlderThan(time, this.mostAtWork);
    if (late.length === this.mostAtWork) setImmediate(() => this.#refuseOlderThan(time));
    this.refused += late.length;
    for (const one of late) one.runInAsyncScope(one.refuse!);
  }
}

/** What waits: in the order in which it came for each key, while the keys take turns. */
export class Waitlist<Item extends { readonly since: number }> {
  // An array, for the reason given in response-deadline.ts. Of 4,000 keys, more than there are connections, one is found in 10 µs.
  readonly #lines: { readonly key: string; readonly list: Waitlist<Item> }[] = [];
  readonly #items: Item[] = [];
  size = 0;

  /** How many other keys have something that waits; Infinity where this one has. */
  othersThan(key: string): number {
    return this.#lines.some((line) => line.key === key) ? Infinity : this.#lines.length;
  }

  /** @param keys whose turn it waits for; a second one takes turns within the first */
  add(item: Item, ...[key, ...rest]: string[]): void {
    this.size++;
    if (key === undefined) {
      this.#items.push(item);
      return;
    }
    let line = this.#lines.find((one) => one.key === key);
    if (!line) this.#lines.push((line = { key, list: new Waitlist() }));
    line.list.add(item, ...rest);
  }

  /** Takes the item whose turn it is. */
  next(): Item | undefined {
    if (this.size === 0) return undefined;
    this.size--;
    const line = this.#lines.shift();
    if (!line) return this.#items.shift();
    const item = line.list.next();
    if (line.list.size > 0) this.#lines.push(line); // behind the others
    return item;
  }

  /** Takes items that have waited since before `time`, `most` of them at most. */
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
