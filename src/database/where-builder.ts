/** Builds a WHERE that depends on the request: conditions are constants of the code, values come from the caller. */
export class WhereBuilder {
  readonly #conditions: string[];
  readonly values: unknown[];
  readonly #always: number;

  /** @param always conditions of every request (access first), over the first `values` */
  constructor(always: readonly string[], values: readonly unknown[]) {
    this.#conditions = [...always];
    this.#always = always.length;
    this.values = [...values];
  }

  /** Adds a condition if the caller gave a value; `sql` receives the value's placeholder. */
  whereGiven(value: unknown, sql: (placeholder: string) => string): void {
    if (value === undefined) return;
    this.values.push(value);
    this.#conditions.push(`(${sql(`$${this.values.length}`)})`);
  }

  where(sql: string | undefined): void {
    if (sql !== undefined) this.#conditions.push(`(${sql})`);
  }

  /** Whether no condition was added. */
  get unfiltered(): boolean {
    return this.#conditions.length === this.#always;
  }

  get sql(): string {
    return this.#conditions.join(' AND ');
  }
}
