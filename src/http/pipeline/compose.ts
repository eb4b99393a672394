import type { NextFunction, Request, RequestHandler, Response } from 'express';

/**
 * Several handlers as one: each is called by the `next` of the one before it; what one throws or rejects with goes to the last
 * `next`, as with Express. A layer of Express of its own would cost each of them about 2 µs and 2 KB a request
 * (docs/performance.md).
 */
export function compose(...handlers: readonly RequestHandler[]): RequestHandler {
  return handlers.map(guarded).reduceRight(
    (following, handler) => (request, response, next) =>
      handler(request, response, (error?: unknown) => {
        if (error === undefined) following(request, response, next);
        else next(error);
      }),
  );
}

function guarded(handler: RequestHandler) {
  return (request: Request, response: Response, next: NextFunction): void => {
    try {
      const done: unknown = handler(request, response, next);
      if (done instanceof Promise) void done.then(undefined, next);
    } catch (error) {
      next(error);
    }
  };
}
