import { readFileSync } from 'node:fs';

/** A request to a server with the demo, and its response, recorded by `npm run docs`. */
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
    /** Only headers that differ between responses. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** PUBLIC_URL during the recording; URLs in the responses start with it. */
export const RECORDED_AT = 'http://localhost:3000';

/** Examples by `operationId`; the first one is a success. */
export const EXAMPLES = JSON.parse(
  readFileSync(new URL('../../docs/examples.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, readonly Example[]>>;
