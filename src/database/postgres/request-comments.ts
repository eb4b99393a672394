import type { QueryConfig } from 'pg';
import { currentCaller } from './callers.js';

/** Returns a statement as it is sent: with the comment of whoever it is for. It can then not be prepared, which requires constant text. */
export function commented<Query extends string | QueryConfig>(query: Query): Query {
  const comment = currentCaller()?.comment;
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
