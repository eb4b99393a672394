import { AsyncResource } from 'node:async_hooks';
import { Waitlist } from './waitlist.js';

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
export interface Readable {
  pause(): unknown;
  resume(): unknown;
}

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
        begin();
        return;
      }
      this.#standingSince = this.#time();
    }
    const since = refuse ? this.#time() : Infinity;
    this.#waiting.add(new Waiting(since, begin, refuse), address, credential);
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
    if (!this.#isOverloaded || this.#isModest(address)) return;
    connection.pause();
    this.#held.add({ since: this.#time(), connection }, address);
    this.#lookLater();
  }

  /** Whether an address has nothing that waits, where so few have that its next request will not wait for long. */
  #isModest(address: string): boolean {
    const others = this.#waiting.keys + this.#held.keys;
    return others < this.mostAtWork && !this.#waiting.has(address) && !this.#held.has(address);
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
    const now = this.#time();
    this.#refuseOlderThan(now - PATIENCE_MS);
    for (const { connection } of this.#held.takeOlderThan(now - LONGEST_HOLD_MS, this.mostAtWork))
      connection.resume();
    if (this.#atWork < this.mostAtWork) this.#readOn(this.mostAtWork);
    if (this.#waiting.size > 0 || this.#held.size > 0) this.#lookLater();
  }

  /** In several turns of the event loop where there are many: others have theirs in between. */
  #refuseOlderThan(time: number): void {
    const late = this.#waiting.takeOlderThan(time, this.mostAtWork);
    if (late.length === this.mostAtWork) setImmediate(() => this.#refuseOlderThan(time));
    for (const one of late) {
      this.refused++;
      one.runInAsyncScope(one.refuse!);
    }
  }
}
