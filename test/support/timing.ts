import { setTimeout } from 'node:timers/promises';
import { expect } from '@jest/globals';

/** Limit of a wait, in ms: only a failing test takes this long. */
export const PATIENCE_MS = 600_000;

/** Limit of a wait for a notification between servers, in ms: the change takes effect in under a second, or after 30 s without notifications. */
const SOON_MS = 20_000;

/** Pause between two checks in ms, so that the test does not take processor time from the awaited work. */
const LOOK_MS = 10;

/** Maximum number of rounds in which processor time is measured. */
const ROUNDS = 30;

/** Asserts that a condition becomes true through another process or the system, which sends no notification. @param what names the condition in the error */
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

/** Asserts that a change takes effect within a second, since all servers get a notification. */
export async function soon(condition: () => boolean | Promise<boolean>, what?: string): Promise<void> {
  await until(condition, what, SOON_MS);
}

/** Repeats a query until it has a result, for work of another process without a notification. */
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

/** The time this many milliseconds ahead, by `performance.now()`: a deadline for the code under test. */
export function timeIn(milliseconds: number): number {
  return performance.now() + milliseconds;
}

/** Whether `work` takes at most this many times the processor time of `baseline`, by the minimum of several rounds: other load only adds to it. */
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
  await cost(baseline); // the code is not optimized yet
  await cost(work);
  let [most, least] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    most = Math.min(most, times * (await cost(baseline)));
    least = Math.min(least, await cost(work));
    if (least <= most) return true;
  }
  return false;
}
