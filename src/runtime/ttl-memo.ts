/** Shares results of `look` for `maxAgeMs` and among concurrent callers, including failures. */
export class TtlMemo<Finding> {
  #finding: Promise<Finding> | undefined;
  /** Expiry by `performance.now()`; Infinity during `look`. */
  #expiresAt = 0;

  constructor(
    private readonly maxAgeMs: number,
    private readonly look: () => Promise<Finding>,
  ) {}

  find(): Promise<Finding> {
    if (this.#finding !== undefined && performance.now() < this.#expiresAt) return this.#finding;
    this.#expiresAt = Infinity;
    this.#finding = this.look().finally(() => (this.#expiresAt = performance.now() + this.maxAgeMs));
    return this.#finding;
  }
}
