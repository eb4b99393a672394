import type { Request } from 'express';

/** Is told of finished requests by `Usage`. */
export interface UsageListener {
  /**
   * Of each request to what takes a credential, as its response is written and before the caller can have it; refused ones too.
   * Runs within the request: it is to cost next to nothing, and to write nothing.
   *
   * @param request `principal` is missing where there was no credential, or it was refused; `context` has the code of a problem, and the id of
   *   a credential that is known, whether or not it was accepted
   * @param status of the response
   */
  finished(request: Request, status: number): void;

  /** Writes what was gathered, without throwing: what cannot be written is kept or given up. Called every half minute and at the end. */
  flush(): Promise<void>;
}
