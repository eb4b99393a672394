import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueryConfig } from 'pg';

/**
 * For whom work is done. Apart from the request's context, and small, since whatever is begun in its asynchronous context (a timer,
 * a connection) keeps it for longer than the request takes.
 */
export class Requester {
  /** Whether nobody waits for the result any more. */
  gone = false;
  /** To be called when the caller goes. */
  whenGone: Set<() => void> | undefined;
  /** What stands behind each statement (SQL_REQUEST_IDS). */
  comment: string | undefined;
}

const callers = new AsyncLocalStorage<Requester>();

/** Does the work of a request: the transactions that it begins end with it (see BoundedClient). */
export function workFor<T>(caller: Requester, work: () => T): T {
  return callers.run(caller, work);
}

/** The caller for whom the current work is done; undefined for the server's own. */
export const currentCaller = (): Requester | undefined => callers.getStore();

/** The caller left, or was told that it takes too long: what is done for them ends. */
export function endWorkFor(caller: Requester): void {
  caller.gone = true;
  for (const end of caller.whenGone ?? []) end();
}

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
