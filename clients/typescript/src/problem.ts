import type { Problem } from './schema.js';

/** A call that the API rejected. `code` is the reason; `docs/developers/errors.md` explains how to fix each code. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** A code of the catalog at `/api/public/problems`; `unknown` if another server responded, such as a proxy. */
  readonly code: string;
  /** The id of this call in the server's log. */
  readonly requestId: string | null;
  readonly problem: Problem | undefined;
  /** Seconds after which the same call may succeed, if the server sent them. */
  readonly retryAfter: number | undefined;

  constructor(response: Response, problem: Problem | undefined) {
    super(problem ? `${problem.title}: ${problem.detail}` : strangeAnswer(response));
    this.status = response.status;
    this.code = problem?.code ?? 'unknown';
    this.requestId = response.headers.get('x-request-id');
    this.problem = problem;
    this.retryAfter = secondsOf(response);
  }
}

/** The message for a response that is not from the API. */
function strangeAnswer({ status, url, headers }: Response): string {
  const type = headers.get('content-type')?.split(';')[0] ?? 'nothing';
  return `HTTP ${status} with ${type} instead of JSON, from ${url.split('?')[0]}: a proxy responded, or baseUrl is not the API's URL.`;
}

/** `Retry-After` in seconds (RFC 9110 §10.2.3). */
export function secondsOf(response: Response): number | undefined {
  const value = response.headers.get('retry-after');
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) : undefined;
}
