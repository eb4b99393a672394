/** WHERE of a statement whose parts depend on the request: the conditions are ours, the values the caller's. */
export class WhereBuilder {
  readonly #conditions: string[];
  readonly values: unknown[];
  readonly #always: number;

  /** @param always holds for every request (access first), over the first `values` */
  constructor(always: readonly string[], values: readonly unknown[]) {
    this.#conditions = [...always];
    this.#always = always.length;
    this.values = [...values];
  }

  /** Adds a condition where the caller gave a value; `sql` gets the value's placeholder. */
  whereGiven(value: unknown, sql: (placeholder: string) => string): void {
    if (value === undefined) return;
    this.values.push(value);
    this.#conditions.push(`(${sql(`$${this.values.length}`)})`);
  }

  where(sql: string | undefined): void {
    if (sql !== undefined) this.#conditions.push(`(${sql})`);
  }

  /** Whether nothing narrows the list. */
  get unfiltered(): boolean {
    return this.#conditions.length === this.#always;
  }

  get sql(): string {
    return this.#conditions.join(' AND ');
  }
}
