import type { Request } from 'express';

/** Gives the query as it was sent: nothing else parses it. */
export function queryOf({ originalUrl, context }: Request): URLSearchParams {
  return new URLSearchParams(originalUrl.slice(context.path.length));
}
