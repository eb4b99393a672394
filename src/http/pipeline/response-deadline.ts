import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { ProblemFilter } from '../output/problem.filter.js';
import { Problem } from '../output/problems.js';
import { endWorkFor } from '../../database/postgres/callers.js';

/** Restarts a request's deadline, and extends it by this many milliseconds. */
export function extendDeadline({ context }: IncomingMessage, milliseconds: number): void {
  context.waitsSince = performance.now() + milliseconds;
}

/** Interval of checks, in ms. A timer per request would cost more. */
const LOOK_MS = 25;

/**
 * Responds 503 after `milliseconds`, and ends the request's open transactions. The outcome of a COMMIT or of a write without a
 * transaction is then unknown. The time restarts when the body is complete ({@link receiving}); the server's `requestTimeout` limits the
 * time to receive the body.
 */
export function responseDeadline(milliseconds: number, filter: ProblemFilter) {
  // An unordered array: old tables of a Map or Set could keep finished requests in memory until a full garbage collection.
  const inProgress: Request[] = [];
  const forget = ({ context }: IncomingMessage) => {
    const last = inProgress.pop()!;
    if (last.context === context) return;
    inProgress[context.indexInProgress] = last;
    last.context.indexInProgress = context.indexInProgress;
  };
  let looking = false;
  const look = () => {
    const late = performance.now() - milliseconds;
    for (const request of inProgress.filter(
      ({ context }) => !context.readingBody && context.waitsSince <= late,
    ))
      if (!request.res!.headersSent) {
        filter.answer(new Problem('temporarily_unavailable'), request, request.res!);
        endWorkFor(request.context.requester);
      }
    looking = inProgress.length > 0;
    if (looking) setTimeout(look, LOOK_MS).unref();
  };
  return (request: Request, _response: Response, next: NextFunction): void => {
    const { context } = request;
    context.waitsSince = performance.now();
    context.indexInProgress = inProgress.push(request) - 1;
    context.whenOver.push(forget);
    if (!looking) {
      looking = true;
      setTimeout(look, LOOK_MS).unref();
    }
    next();
  };
}
