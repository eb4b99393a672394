import { readFileSync } from 'node:fs';

/** A call of the demo's first member, and the server's response: recorded by `npm run docs`, and compared by a test. */
export interface Example {
  /** Unique among the examples of its call: `events`, `event_not_found`. */
  readonly name: string;
  readonly summary: string;
  readonly request: {
    readonly method: 'GET' | 'PUT' | 'POST';
    /** Including the query. */
    readonly path: string;
    readonly body?: unknown;
    /** Media type of the body; JSON if absent. */
    readonly type?: string;
  };
  readonly response: {
    readonly status: number;
    /** Only the headers that are particular to this response. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** PUBLIC_URL of the server whose responses were recorded; URLs in the examples begin with it. */
export const RECORDED_AT = 'http://localhost:3000';

/** Name of a call, or of a variant of it → its examples; the first is a success. */
export const EXAMPLES = JSON.parse(
  readFileSync(new URL('../../docs/examples.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, readonly Example[]>>;
