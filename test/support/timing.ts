import { setTimeout } from 'node:timers/promises';

/**
 * Tolerance added to promised wall times: other tests, databases and browsers use the same two processors. A broken promise takes
 * much longer: 30 s if a notice is lost, for ever if a wait is unbounded.
 */
export const SLOW_MACHINE_MS = 5_000;

/** The deadline, by `performance.now()`, for what is promised within so many milliseconds from now. */
export function latestFor(promisedMs: number): number {
  return performance.now() + promisedMs + SLOW_MACHINE_MS;
}

/** Limit of a wait for what is not promised within a time, in ms. */
const PATIENCE_MS = 120_000;

/** Pause between two looks. Without one, the test would take processor time from what it waits for: there are two processors. */
const LOOK_MS = 10;

/** Waits for a condition that another process, or the system, fulfils without a notification. @param what is awaited, for the error */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'it',
  withinMs = PATIENCE_MS,
): Promise<void> {
  const isSo = async () => (await condition()) || undefined;
  await eventually(isSo, withinMs).catch((cause: unknown) => {
    throw new Error(`not in time: ${what}`, { cause });
  });
}

/** Asks repeatedly until there is a result: what is awaited happens in another process, without a notification. */
export async function eventually<T>(
  ask: () => Promise<T | undefined> | T | undefined,
  withinMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`it did not come to pass within ${withinMs} ms`);
    await setTimeout(LOOK_MS);
  }
}
