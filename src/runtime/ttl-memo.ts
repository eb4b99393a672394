/** Calls `look`, and returns its result or error to all callers until `maxAgeMs` after it finished. */
export class TtlMemo<Finding> {
  #finding: Promise<Finding> | undefined;
  /** Expiry in ms of `performance.now()`; Infinity while `look` runs. */
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
