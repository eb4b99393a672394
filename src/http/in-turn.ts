import type { RequestHandler } from 'express';

/**
 * Several handlers as one: each is called by the `next` of the one before it. A layer of Express of its own would cost each
 * of them about 2 µs and 2 KB a request (docs/performance.md).
 */
export function inTurn(...handlers: readonly RequestHandler[]): RequestHandler {
  return handlers.reduceRight((following, handler) => (request, response, next) => {
    void handler(request, response, (error?: unknown) => {
      if (error === undefined) void following(request, response, next);
      else next(error);
    });
  });
}
