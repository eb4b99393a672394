import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueryConfig } from 'pg';

/** The caller of some work: small and separate from the request's context, since timers and connections may keep it after the request. */
export class Requester {
  gone = false;
  whenGone: Set<() => void> | undefined;
  /** Comment for the caller's statements; undefined unless SQL_REQUEST_IDS is set. */
  comment: string | undefined;
}

const callers = new AsyncLocalStorage<Requester>();

/** Runs work for a caller: its transactions end when the caller disconnects (see BoundedClient). */
export function workFor<T>(caller: Requester, work: () => T): T {
  return callers.run(caller, work);
}

/** The caller for whom the current work is done; undefined for the server's own work. */
export const currentCaller = (): Requester | undefined => callers.getStore();

/** Ends the open transactions of a caller that disconnected or timed out, and rejects later statements in them. */
export function endWorkFor(caller: Requester): void {
  caller.gone = true;
  for (const end of caller.whenGone ?? []) end();
}

/** Adds the caller's comment to a statement, which then cannot be prepared. */
export function commented<Query extends string | QueryConfig>(query: Query): Query {
  const comment = currentCaller()?.comment;
  if (comment === undefined) return query;
  const whole =
    typeof query === 'string'
      ? `${query}${comment}`
      : { ...(query as QueryConfig), name: undefined, text: `${query.text}${comment}` };
  return whole as Query;
}

/** Makes a comment in sqlcommenter's format; the value cannot end the comment. */
export function commentOf(id: string): string {
  const value = encodeURIComponent(id).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return ` /*request_id='${value}'*/`;
}
