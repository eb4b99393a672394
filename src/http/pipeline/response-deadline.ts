import type { NextFunction, Request, Response } from 'express';
import type { ProblemFilter } from '../output/problem.filter.js';
import { Problem } from '../output/problems.js';

/**
 * Answers 503 where nothing was answered within `milliseconds`: each wait for the database is bounded, and this
 * bounds their sum. What a write did by then is unknown to the caller; sending the same PUT again is safe.
 *
 * It counts anew from the end of the body (see {@link JsonBody}); how long that may take is the server's `requestTimeout`.
 */
export function responseDeadline(milliseconds: number, filter: ProblemFilter) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { context } = request;
    const timer = setTimeout(() => {
      if (context.readingBody) timer.refresh();
      else if (!response.headersSent)
        filter.answer(new Problem('temporarily_unavailable'), request, response);
    }, milliseconds);
    context.deadline = timer;
    response.once('close', () => {
      clearTimeout(timer);
      context.deadline = undefined;
    });
    next();
  };
}
