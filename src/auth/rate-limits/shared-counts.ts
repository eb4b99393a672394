/** Length of a window, in seconds. On every instance, windows begin with the minutes of the shared store's clock. */
export const WINDOW_SECONDS = 60;

/** What an instance reports about a key, and the calls that it asks for. */
export interface Ask {
  readonly key: string;
  /** Calls admitted but not taken from the store: it was unreachable, or this instance was alone. */
  readonly spent: number;
  /** Calls to take; if negative, calls to give back. */
  readonly wanted: number;
}

export interface Told {
  readonly key: string;
  /** Calls taken by all instances in this window, including these. */
  readonly used: number;
  /** How many of the wanted calls were granted: all instances together never take more than the quota. */
  readonly granted: number;
}

export interface Answer {
  /** Minutes since 1970, by the store's clock. */
  readonly window: number;
  /** Time left in this window when the store was asked. */
  readonly millisecondsLeft: number;
  readonly told: readonly Told[];
}

/**
 * What an instance announces:
 * - `here`: it is present;
 * - `yields`: it has reported everything that it counted while alone, and gives up being alone;
 * - `leaves`: it is gone.
 */
export type Word = 'here' | 'yields' | 'leaves';

export interface Presence {
  /** `one of some`: it may take from the shared counts; `alone`: only it may; `wait`: another is alone, and learns of this one. */
  readonly state: 'one of some' | 'alone' | 'wait';
  /** Another instance is present, or was a moment ago. */
  readonly others: boolean;
}

/** Where instances add up the calls that each of them takes. */
export interface SharedCounts {
  /**
   * Announces that `instance` is present for `lastingMs`. It becomes alone when no other has been present for that long, and
   * remains so until it yields or has not reported for that long; until then others wait.
   *
   * @param instance a UUID
   * @throws where the store is unreachable
   */
  attend(instance: string, word: Word, lastingMs: number): Promise<Presence>;
  /**
   * Settles `asks`, each for a different key, in one round trip.
   *
   * @param quota calls of a key in a window
   * @param window the one in which calls were spent, or taken and now given back; both are void in a later window
   * @throws where the store is unreachable
   */
  settle(quota: number, window: number, asks: readonly Ask[]): Promise<Answer>;
  end(): Promise<void>;
}
