import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { ProblemFilter } from '../output/problem.filter.js';
import { Problem } from '../output/problems.js';

/** How often requests under way are looked at. A timer of each would cost more than all that is done here. */
const LOOK_MS = 25;

/**
 * Answers 503 where nothing was answered within `milliseconds`: each wait for the database is bounded, and this
 * bounds their sum. What a write did by then is unknown to the caller; sending the same PUT again is safe.
 *
 * It counts anew from the end of the body (see {@link JsonBody}); how long that may take is the server's `requestTimeout`.
 */
export function responseDeadline(milliseconds: number, filter: ProblemFilter) {
  const underWay = new Map<IncomingMessage, Response>();
  const over = (request: IncomingMessage) => void underWay.delete(request);
  let looking = false;
  const look = () => {
    const late = performance.now() - milliseconds;
    for (const [request, response] of underWay) {
      const { readingBody, waitsSince } = request.context;
      if (readingBody || waitsSince > late) continue;
      underWay.delete(request);
      if (!response.headersSent)
        filter.answer(new Problem('temporarily_unavailable'), request as Request, response);
    }
    looking = underWay.size > 0;
    if (looking) setTimeout(look, LOOK_MS).unref();
  };
  return (request: Request, response: Response, next: NextFunction): void => {
    const { context } = request;
    context.waitsSince = performance.now();
    underWay.set(request, response);
    context.whenOver.push(over);
    if (!looking) {
      looking = true;
      setTimeout(look, LOOK_MS).unref();
    }
    next();
  };
}
