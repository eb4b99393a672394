import type { Problem } from './schema.js';

/** A call that the API refused; `code` says why, and `docs/errors.md` how to fix each. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** As in the catalogue at `/api/public/problems`; `unknown` if the response came from something in between, such as a proxy. */
  readonly code: string;
  /** The id with which the people who run the server find this call in their log. */
  readonly requestId: string | null;
  readonly problem: Problem | undefined;
  /** Seconds after which the same call may succeed, if the server said so. */
  readonly retryAfter: number | undefined;

  constructor(response: Response, problem: Problem | undefined) {
    super(problem ? `${problem.title}: ${problem.detail}` : `HTTP ${response.status}`);
    this.status = response.status;
    this.code = problem?.code ?? 'unknown';
    this.requestId = response.headers.get('x-request-id');
    this.problem = problem;
    this.retryAfter = secondsOf(response);
  }
}

/** `Retry-After` in seconds (RFC 9110 §10.2.3). */
export function secondsOf(response: Response): number | undefined {
  const value = response.headers.get('retry-after');
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) : undefined;
}
