import { AsyncLocalStorage } from 'node:async_hooks';

/** For whom work is done: a request's context. */
export interface Caller {
  /** Whether nobody waits for the result any more. */
  gone: boolean;
  /** To be called when the caller goes. */
  readonly whenGone: Set<() => void>;
}

const callers = new AsyncLocalStorage<Caller>();

/** Does the work of a request: the transactions that it begins end with it (see BoundedClient). */
export function workFor(caller: Caller, work: () => void): void {
  callers.run(caller, work);
}

/** The caller for whom the current work is done; undefined for the server's own. */
export const currentCaller = (): Caller | undefined => callers.getStore();

/** The caller left, or was told that it takes too long: what is done for them ends. */
export function endWorkFor(caller: Caller): void {
  caller.gone = true;
  for (const end of caller.whenGone) end();
}
