import type { NextFunction, Request, Response } from 'express';
import type { ProblemFilter } from './problem.filter.js';
import { Problem } from './problems.js';

/**
 * Answers 503 where nothing was answered within `milliseconds`: each wait for the database is bounded, and this
 * bounds their sum. What a write did by then is unknown to the caller; sending the same PUT again is safe.
 */
export function answerDeadline(milliseconds: number, filter: ProblemFilter) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const timer = setTimeout(() => {
      if (!response.headersSent) filter.answer(new Problem('temporarily_unavailable'), request, response);
    }, milliseconds);
    response.once('close', () => clearTimeout(timer));
    next();
  };
}
