/** How many requests of one kind are worked on at once. */
export interface Capacity {
  /**
   * While requests arrive faster than they are answered: enough to keep the database busy, and no more, since further ones would only
   * be answered later.
   */
  readonly steady: number;
  /** In a burst: as many as the pool and the pipelined connections take without any of them timing out. */
  readonly burst: number;
}

/** How long a burst may last, in ms; after that it is overload. */
const BURST_MS = 200;
/** Overload ends once nothing has been refused, or over the steady capacity, for this long, in ms. */
const CALM_MS = 500;

/**
 * One caller, or one address, may have at most this many times as many requests under way as there are places left: a single flooding
 * caller gets 2/3 of the places and a single address 4/5, two callers get 2/5 each, and so on; there is always a place for the next one
 * (dynamic thresholds, as for shared buffers in switches: Choudhury and Hahne 1998).
 */
const SHARE_OF_CALLER = 2;
const SHARE_OF_ADDRESS = 4;

/** The caller of a request; kept only while it is under way. */
export interface Caller {
  /** Network address. */
  readonly address: string;
  /** The credential as it was sent, valid or not; undefined where there is none. */
  readonly credential: string | undefined;
}

export type Refusal = 'overload' | 'caller_share' | 'address_share';

/** A place among the requests under way. */
export interface Place {
  readonly admission: Admission;
  readonly caller: Caller;
}

/**
 * The requests of one kind that this process works on. A request that would delay all others is refused before any work is
 * done for it: a server that refuses late, or at the cost of a response, ends up answering nobody.
 *
 * A place is given back at the end of the event loop turn in which the response was written, so that one turn never begins more requests
 * than there are places, even of those that wait for nothing.
 */
export class Admission {
  readonly refused: Record<Refusal, number> = { overload: 0, caller_share: 0, address_share: 0 };
  readonly #capacity: Capacity;
  readonly #byAddress = new Map<string, number>();
  readonly #byCredential = new Map<string, number>();
  #underWay = 0;
  #left: Place[] = [];
  #strict = false;
  /** Since when the steady capacity has been full, and when it last was. */
  #crowdedSince = 0;
  #crowdedAt = -Infinity;

  /** @param now a monotonic clock, in milliseconds */
  constructor(
    capacity: Capacity,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#capacity = capacity;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** @returns a place, to be given back by {@link leave}, or why there is none */
  enter(caller: Caller): Place | Refusal {
    const { steady, burst } = this.#capacity;
    if (this.#underWay >= steady) this.#crowd();
    else if (this.#strict && this.now() - this.#crowdedAt > CALM_MS) this.#strict = false;
    const refusal = this.#refusal(caller, (this.#strict ? steady : burst) - this.#underWay);
    if (refusal !== undefined) {
      this.refused[refusal]++;
      this.#crowd();
      return refusal;
    }
    this.#underWay++;
    add(this.#byAddress, caller.address, 1);
    if (caller.credential !== undefined) add(this.#byCredential, caller.credential, 1);
    return { admission: this, caller };
  }

  /** Gives the place back; to be called once. */
  leave(place: Place): void {
    if (this.#left.push(place) > 1) return;
    setImmediate(() => {
      for (const { caller } of this.#left) {
        add(this.#byAddress, caller.address, -1);
        if (caller.credential !== undefined) add(this.#byCredential, caller.credential, -1);
      }
      this.#underWay -= this.#left.length;
      this.#left = [];
    });
  }

  #refusal({ address, credential }: Caller, places: number): Refusal | undefined {
    if (places <= 0) return 'overload';
    if ((this.#byAddress.get(address) ?? 0) >= SHARE_OF_ADDRESS * places) return 'address_share';
    if (credential !== undefined && (this.#byCredential.get(credential) ?? 0) >= SHARE_OF_CALLER * places)
      return 'caller_share';
    return undefined;
  }

  #crowd(): void {
    const now = this.now();
    if (now - this.#crowdedAt > CALM_MS) this.#crowdedSince = now;
    this.#crowdedAt = now;
    this.#strict = now - this.#crowdedSince > BURST_MS;
  }
}

function add(counts: Map<string, number>, key: string, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
