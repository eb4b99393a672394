import type { NextFunction, Request, RequestHandler, Response } from 'express';

/** Combines handlers into one, since each Express layer costs time per request (docs/contributors/performance.md). */
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
