/**
 * A successful answer whose JSON text already exists (made by PostgreSQL), with headers of its own.
 * Controllers return this or a plain object; {@link ApiAdapter} sends both.
 */
export class Answer {
  constructor(
    readonly json: string | Buffer,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}
