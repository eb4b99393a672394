import type { NextFunction, Request, RequestHandler, Response } from 'express';

/**
 * Combines several handlers into one: each is called by the `next` of the one before it, and what one throws or rejects with goes to
 * the last `next`, as in Express. As layers of Express they would each cost about 2 µs and 2 KB per request
 * (docs/contributors/performance.md).
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
