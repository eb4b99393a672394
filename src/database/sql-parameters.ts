/** Numbers a statement's parameters. The text must not depend on values, since PostgreSQL prepares each different text. */
export class SqlParameters {
  /** @param values of parameters whose numbers the text already contains */
  constructor(readonly values: unknown[] = []) {}

  /** @returns the value’s placeholder in the SQL: `$7`, or with a type, `$7::bytea` */
  add(value: unknown, type?: string): string {
    const number = this.values.push(value);
    return type === undefined ? `$${number}` : `$${number}::${type}`;
  }

  /** @returns the first value's number */
  addAll(values: readonly unknown[]): number {
    return this.values.push(...values) - values.length + 1;
  }
}
