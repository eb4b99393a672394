import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueryConfig } from 'pg';

/** The comment of the current request. If {@link inRequest} is not used, this costs nothing. */
const comments = new AsyncLocalStorage<string>();

/** Runs the work of a request so that its statements carry its id (SQL_REQUEST_IDS). */
export function inRequest<T>(id: string, work: () => T): T {
  return comments.run(commentOf(id), work);
}

/**
 * Returns a statement as it is sent: within {@link inRequest}, with the request's id appended. It can then not be prepared, which
 * requires constant text.
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

/** Makes a comment in sqlcommenter's format: nothing in the value can end the value or the comment. */
export function commentOf(id: string): string {
  const value = encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return ` /*request_id='${value}'*/`;
}
