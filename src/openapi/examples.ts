import { readFileSync } from 'node:fs';

/** A request of the demo's first member or platform, and its response, recorded by `npm run docs` and compared by a test. */
export interface Example {
  /** Unique per operation: `events`, `event_not_found`. */
  readonly name: string;
  readonly summary: string;
  readonly request: {
    readonly method: 'GET' | 'PUT' | 'POST';
    /** The path with the query. */
    readonly path: string;
    readonly body?: unknown;
    /** Media type of the body; JSON if absent. */
    readonly type?: string;
  };
  readonly response: {
    readonly status: number;
    /** Only headers that are specific to this response. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** PUBLIC_URL of the recorded responses and their URLs. */
export const RECORDED_AT = 'http://localhost:3000';

/** Examples by operation or variant; the first one is a success. */
export const EXAMPLES = JSON.parse(
  readFileSync(new URL('../../docs/examples.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, readonly Example[]>>;
