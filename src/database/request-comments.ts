import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueryConfig } from 'pg';

/** The comment of the request under way. Nothing is kept, or costs anything, where {@link inRequest} is not used. */
const comments = new AsyncLocalStorage<string>();

/** Runs what a request asks for, so that its statements bear its id (SQL_REQUEST_IDS). */
export function inRequest<T>(id: string, work: () => T): T {
  return comments.run(commentOf(id), work);
}

/**
 * A statement as it is sent: within {@link inRequest} with the id of the request behind it, so that it cannot be prepared, which it is by
 * its text.
 */
export function commented<Query extends string | QueryConfig>(query: Query): Query {
  const comment = comments.getStore();
  if (comment === undefined) return query;
  const whole =
    typeof query === 'string'
      ? `${query}${comment}`
      : { ...(query as QueryConfig), name: undefined, text: `${query.text}${comment}` };
  return whole as Query;
}

/** As sqlcommenter writes it: nothing in the value ends the value, or the comment. */
export function commentOf(id: string): string {
  const value = encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return ` /*request_id='${value}'*/`;
}
