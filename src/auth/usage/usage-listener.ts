import type { Request } from 'express';

/** A listener for finished requests, called by `Usage`. */
export interface UsageListener {
  /**
   * Called for each request to a route that requires a credential, including refused ones, when its response is written and before the caller has it.
   * Runs within the request: it has to be very cheap, and must not write.
   *
   * @param request `principal` is missing where there was no credential, or it was refused; `context` has the code of a problem, and the id of
   *   a credential that is known, whether or not it was accepted
   * @param status of the response
   */
  finished(request: Request, status: number): void;

  /** Writes what was collected, without throwing: what cannot be written is kept or dropped. Called every half minute and at the end. */
  flush(): Promise<void>;
}
