import { setTimeout } from 'node:timers/promises';

/**
 * What a promise in wall time is given beside it: other tests, databases and browsers take the same two processors. What breaks
 * such a promise takes much longer: 30 s where a notice is not heard, for ever where a wait has no bound.
 */
export const SLOW_MACHINE_MS = 5_000;

/** The latest moment, by `performance.now()`, for what is promised within so many milliseconds from now. */
export function latestFor(promisedMs: number): number {
  return performance.now() + promisedMs + SLOW_MACHINE_MS;
}

/** Between two looks. Who looks without a pause keeps from its work what the test waits for: there are two processors. */
const LOOK_MS = 10;

/** Asks again and again until there is an answer: what is waited for happens in another process, and tells nobody. */
export async function eventually<T>(
  ask: () => Promise<T | undefined> | T | undefined,
  withinMs = 45_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`it did not come to pass within ${withinMs} ms`);
    await setTimeout(LOOK_MS);
  }
}
