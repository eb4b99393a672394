import { setTimeout } from 'node:timers/promises';
import { expect } from '@jest/globals';

/** Limit of a wait, in ms: only a test that fails takes as long. */
export const PATIENCE_MS = 120_000;

/** Limit of a wait for what servers tell each other within a second, in ms: without the notification it takes 30 s. */
const SOON_MS = 20_000;

/** Pause between two looks. Without one, the test would take processor time from what it waits for: there are two processors. */
const LOOK_MS = 10;

/** Rounds in which processor time is measured, at most. */
const ROUNDS = 30;

/**
 * Asserts that a condition becomes true that another process, or the system, fulfils without a notification.
 *
 * @param what is awaited, for the error
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'it',
  withinMs = PATIENCE_MS,
): Promise<void> {
  const isSo = async () => (await condition()) || undefined;
  const became = await eventually(isSo, withinMs).catch((cause: unknown) => {
    throw new Error(`not in time: ${what}`, { cause });
  });
  expect(became).toBe(true);
}

/** Asserts that a change takes effect that every server is notified of within a second. */
export async function soon(condition: () => boolean | Promise<boolean>, what?: string): Promise<void> {
  await until(condition, what, SOON_MS);
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

/** The moment in so many milliseconds, by `performance.now()`: a deadline for the code under test. */
export function timeIn(milliseconds: number): number {
  return performance.now() + milliseconds;
}

/**
 * Whether `work` takes at most so many times the processor time of `baseline`, which is measured in the same moment. The least of
 * several rounds counts: whatever else happens meanwhile only adds to it.
 */
export async function costsAtMost(
  times: number,
  work: () => unknown,
  baseline: () => unknown,
): Promise<boolean> {
  const cost = async (run: () => unknown) => {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  await cost(baseline); // the compiler is cold
  await cost(work);
  let [most, least] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    most = Math.min(most, times * (await cost(baseline)));
    least = Math.min(least, await cost(work));
    if (least <= most) return true;
  }
  return false;
}
