import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, Ask, SharedCounts, Word } from './shared-counts.js';
import { randomUUID } from '../../crypto/random.js';

/** How long a report of presence is valid, in ms; the same holds for a report of being the only instance. */
const PRESENCE_MS = 1_500;
/** How many times in that period an instance reports its presence. */
const BEATS = 15;
/** How many times in that period it asks again while another is alone; that one yields at its next report. */
const QUESTIONS = 60;

/**
 * This instance among all that share the counts. It knows whether it is the only one, and so may count by itself, and makes sure
 * that it takes from the shared counts only while the others know of it.
 *
 * An instance that is alone holds a lease of {@link PRESENCE_MS}, renewed ten times a second. A newcomer is not let in until the
 * lone instance has reported all that it counted, or its lease has run out: so none admits calls without knowing what another has
 * admitted. Leases are judged by the store's clock, and here from when it was asked: so at worst one ends too early here.
 */
export class Membership {
  readonly #instance = randomUUID();
  /** By `performance.now()`: the end of the lease, and since when and until when this instance is alone. */
  #presentUntil = -Infinity;
  #aloneSince = Infinity;
  #aloneUntil = -Infinity;
  #attending: Promise<void> | undefined;
  #yielding: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #countsToTell: (() => Promise<void>)[] = [];

  constructor(
    private readonly shared: SharedCounts,
    private readonly presenceMs = PRESENCE_MS,
  ) {
    this.#timer = setInterval(() => void this.#attend().catch(() => undefined), presenceMs / BEATS).unref();
  }

  /** Registers `tell`, which reports to the store what was counted alone, before others are let in. */
  beforeOthers(tell: () => Promise<void>): void {
    this.#countsToTell.push(tell);
  }

  /** Waits until this instance is let in: at most for the length of a lease, if the store responds. */
  async join(): Promise<void> {
    await this.#attend().catch(() => undefined);
  }

  /** Whether this instance has been the only one counting since `since` (by `performance.now()`), and still is. */
  aloneSince(since: number): boolean {
    return this.#aloneSince <= since && performance.now() < this.#aloneUntil;
  }

  /** {@link SharedCounts.settle}, while the others know of this instance. */
  async settle(quota: number, window: number, asks: readonly Ask[]): Promise<Answer> {
    if (performance.now() >= this.#presentUntil) await this.#attend();
    const answer = await this.shared.settle(quota, window, asks);
    if (performance.now() < this.#presentUntil) return answer;
    // So late, another instance may be alone by now: what was granted must not be used.
    const told = answer.told.map((one) => ({ ...one, granted: Math.min(0, one.granted) }));
    return { ...answer, told };
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#attending?.catch(() => undefined);
    await this.#yielding;
    this.#aloneUntil = this.#presentUntil = -Infinity;
    await this.shared.attend(this.#instance, 'leaves', this.presenceMs).catch(() => undefined);
  }

  #attend(): Promise<void> {
    return (this.#attending ??= this.#tell('here').finally(() => (this.#attending = undefined)));
  }

  async #tell(word: Word): Promise<void> {
    const asked = performance.now();
    const { state, others } = await this.shared.attend(this.#instance, word, this.presenceMs);
    if (state === 'wait') {
      this.#presentUntil = -Infinity;
      this.#share();
      await pause(this.presenceMs / QUESTIONS);
      return this.#tell('here');
    }
    this.#presentUntil = asked + this.presenceMs;
    if (state === 'alone' && !others && !this.#yielding) {
      this.#aloneSince = Math.min(this.#aloneSince, performance.now());
      this.#aloneUntil = this.#presentUntil;
      return;
    }
    this.#share();
    // Not awaited: reporting what was counted may itself need this instance to be present.
    if (state === 'alone') this.#yielding ??= this.#yield().finally(() => (this.#yielding = undefined));
  }

  #share(): void {
    this.#aloneSince = Infinity;
    this.#aloneUntil = -Infinity;
  }

  async #yield(): Promise<void> {
    await Promise.all(this.#countsToTell.map((tell) => tell()));
    await this.#tell('yields').catch(() => undefined); // the next report will do
  }
}
