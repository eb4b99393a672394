/** Length of a window, in seconds. Windows begin with the minute of the shared store, on every instance alike. */
export const WINDOW_SECONDS = 60;

/** What an instance reports of a key, and asks for. */
export interface Ask {
  readonly key: string;
  /** Calls that were admitted without having been taken, while the store was away. */
  readonly spent: number;
  /** Calls to take; negative: to give back. */
  readonly wanted: number;
}

export interface Told {
  readonly key: string;
  /** Calls that all instances together have taken in this window, these included. */
  readonly used: number;
  /** How many of the wanted calls were granted: all instances together never take more than the quota. */
  readonly granted: number;
}

export interface Answer {
  /** Minutes since 1970, by the clock of the store. */
  readonly window: number;
  /** Until this window ends, when the store was asked. */
  readonly millisecondsLeft: number;
  readonly told: readonly Told[];
}

/**
 * - `here`: it is there, and stays from its last word;
 * - `yields`: it has told all that it counted while it was alone, and is not alone any more;
 * - `leaves`: it is gone.
 */
export type Word = 'here' | 'yields' | 'leaves';

export interface Presence {
  /** `one of some`: it may take from the shared counts; `alone`: nobody else may; `wait`: another is alone, and was told. */
  readonly state: 'one of some' | 'alone' | 'wait';
  /** Another instance is, or was a moment ago. */
  readonly others: boolean;
}

/** Where instances add up the calls that each of them takes. */
export interface SharedCounts {
  /**
   * Tells that `instance` is there for `lastingMs`. It is alone when nobody else was for as long, and stays it
   * until it yields or is not heard of for so long: until then others wait.
   *
   * @param instance a UUID
   * @throws where the store is away
   */
  attend(instance: string, word: Word, lastingMs: number): Promise<Presence>;
  /**
   * Settles `asks`, which are of different keys, at once.
   *
   * @param quota calls of a key in a window
   * @param window the one in which calls were spent, and taken that are given back; in another they are nothing
   * @throws where the store is away
   */
  settle(quota: number, window: number, asks: readonly Ask[]): Promise<Answer>;
  end(): Promise<void>;
}
