/**
 * What `look` found, no older than `maxAgeMs`; however many ask, it looks once at a time. A failure is remembered as long as a
 * finding.
 */
export class Recent<Finding> {
  #finding: Promise<Finding> | undefined;
  /** By `performance.now()`; Infinity while looking. */
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
