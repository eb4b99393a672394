import { readFileSync } from 'node:fs';

/** A call of the demo's first member, and what the server answered: `npm run docs` makes it, and a test compares it. */
export interface Example {
  /** Among those of its call: `events`, `event_not_found`. */
  readonly name: string;
  readonly summary: string;
  readonly request: {
    readonly method: 'GET' | 'PUT' | 'POST';
    /** With its query. */
    readonly path: string;
    readonly body?: unknown;
    /** Of the body; JSON unless said. */
    readonly type?: string;
  };
  readonly response: {
    readonly status: number;
    /** Those that say something of this response alone. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** PUBLIC_URL of the server that was recorded: stands in the examples wherever an address of it does. */
export const RECORDED_AT = 'http://localhost:3000';

/** Name of a call, or of a variant of one → its examples; the first is a success. */
export const EXAMPLES = JSON.parse(
  readFileSync(new URL('./examples.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, readonly Example[]>>;
