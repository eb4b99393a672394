import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { ProblemFilter } from '../output/problem.filter.js';
import { Problem } from '../output/problems.js';
import { endWorkFor } from '../../database/postgres/callers.js';

/** Extends a request's deadline, from now on, by this many milliseconds. */
export function extendDeadline({ context }: IncomingMessage, milliseconds: number): void {
  context.waitsSince = performance.now() + milliseconds;
}

/** How often requests under way are checked. A timer for each would cost more than everything done here. */
const LOOK_MS = 25;

/**
 * Answers 503 where nothing was answered within `milliseconds`: each wait for the database is bounded, and this
 * bounds their sum. A transaction that was not yet being committed is undone; otherwise the caller does not know what a write
 * has done, and sending the same PUT again is safe.
 *
 * The time starts again at the end of the body (see {@link JsonBody}), which is itself bounded by the server's `requestTimeout`.
 */
export function responseDeadline(milliseconds: number, filter: ProblemFilter) {
  // Unordered, each with its index in its context. Not a Map or a Set: as entries come and go, V8 creates one table after another, and
  // once one of them has become old, everything that was ever in a later one is retained until the whole heap is collected.
  const underWay: Request[] = [];
  const forget = ({ context }: IncomingMessage) => {
    const last = underWay.pop()!;
    if (last.context === context) return;
    underWay[context.placeUnderWay] = last;
    last.context.placeUnderWay = context.placeUnderWay;
  };
  let looking = false;
  const look = () => {
    const late = performance.now() - milliseconds;
    for (const request of underWay.filter(
      ({ context }) => !context.readingBody && context.waitsSince <= late,
    ))
      if (!request.res!.headersSent) {
        filter.answer(new Problem('temporarily_unavailable'), request, request.res!);
        endWorkFor(request.context.requester);
      }
    looking = underWay.length > 0;
    if (looking) setTimeout(look, LOOK_MS).unref();
  };
  return (request: Request, _response: Response, next: NextFunction): void => {
    const { context } = request;
    context.waitsSince = performance.now();
    context.placeUnderWay = underWay.push(request) - 1;
    context.whenOver.push(forget);
    if (!looking) {
      looking = true;
      setTimeout(look, LOOK_MS).unref();
    }
    next();
  };
}
