import { AsyncLocalStorage } from 'node:async_hooks';

/** For whom work is done: a request's context. */
export interface Requester {
  /** Whether nobody waits for the result any more. */
  gone: boolean;
  /** To be called when the caller goes. */
  readonly whenGone: Set<() => void>;
}

const callers = new AsyncLocalStorage<Requester>();

/** Does the work of a request: the transactions that it begins end with it (see BoundedClient). */
export function workFor(caller: Requester, work: () => void): void {
  callers.run(caller, work);
}

/** The caller for whom the current work is done; undefined for the server's own. */
export const currentCaller = (): Requester | undefined => callers.getStore();

/** The caller left, or was told that it takes too long: what is done for them ends. */
export function endWorkFor(caller: Requester): void {
  caller.gone = true;
  for (const end of caller.whenGone) end();
}
