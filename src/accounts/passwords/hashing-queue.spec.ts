import { describe, expect, it } from '@jest/globals';
import { timeIn } from '../../../test/support/timing.js';
import { Busy, HashingQueue } from './passwords.js';

const inAMinute = () => timeIn(60_000);

/** A task that runs until the test ends it. */
function task() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  return { run: () => promise, end: resolve, fail: reject };
}

describe('HashingQueue', () => {
  it('runs two tasks at a time, in order of arrival', async () => {
    const queue = new HashingQueue();
    const started: number[] = [];
    const tasks = Array.from({ length: 4 }, task);
    const runs = tasks.map(({ run }, i) =>
      queue.run(() => {
        started.push(i);
        return run();
      }, inAMinute()),
    );
    expect(started).toEqual([0, 1]);
    tasks[1]!.end();
    await runs[1];
    await Promise.resolve();
    expect(started).toEqual([0, 1, 2]);
    for (const { end } of tasks) end();
    await Promise.all(runs);
    expect(started).toEqual([0, 1, 2, 3]);
  });

  it('rejects a task while 150 tasks wait, and accepts a task after they end', async () => {
    const queue = new HashingQueue();
    const tasks = Array.from({ length: 152 }, task);
    const runs = tasks.map(({ run }) => queue.run(run, inAMinute()));
    await expect(queue.run(async () => undefined, inAMinute())).rejects.toBeInstanceOf(Busy);
    for (const { end } of tasks) end();
    await Promise.all(runs);
    await expect(queue.run(async () => 'done', inAMinute())).resolves.toBe('done');
  });

  it('rejects a task that has not begun by its deadline, and runs the other tasks', async () => {
    const queue = new HashingQueue();
    const running = [task(), task()];
    const runs = running.map(({ run }) => queue.run(run, inAMinute()));
    const late = queue.run(() => Promise.reject(new Error('began')), timeIn(20));
    const patient = queue.run(async () => 'done', inAMinute());
    await expect(late).rejects.toBeInstanceOf(Busy);
    for (const { end } of running) end();
    await expect(patient).resolves.toBe('done');
    await Promise.all(runs);
    await expect(queue.run(async () => 'done', inAMinute())).resolves.toBe('done');
  });

  it('runs tasks of callers with fewer failures first, and tasks with equal failures in order of arrival', async () => {
    const queue = new HashingQueue();
    const running = [task(), task()];
    const runs = running.map(({ run }) => queue.run(run, inAMinute()));
    const started: string[] = [];
    const waiting = (['guesser 7', 'stranger 1', 'known 0', 'stranger 1 later', 'guesser 3'] as const).map(
      (name) => queue.run(async () => void started.push(name), inAMinute(), Number(/\d/.exec(name)![0])),
    );
    for (const { end } of running) end();
    await Promise.all([...runs, ...waiting]);
    expect(started).toEqual(['known 0', 'stranger 1', 'stranger 1 later', 'guesser 3', 'guesser 7']);
  });

  it('rejects the waiting task with the most failures, not the newest task, if too many wait', async () => {
    const queue = new HashingQueue();
    const tasks = Array.from({ length: 152 }, task);
    const runs = tasks.map(({ run }, i) => queue.run(run, inAMinute(), i));
    const newcomer = queue.run(async () => 'done', inAMinute(), 1);
    await expect(runs[151]).rejects.toBeInstanceOf(Busy);
    for (const { end } of tasks) end();
    await expect(newcomer).resolves.toBe('done');
    await Promise.all(runs.slice(0, 151));
  });

  it('frees the slot of a task that fails', async () => {
    const queue = new HashingQueue();
    for (let i = 0; i < 5; i++) {
      const failing = queue.run(() => Promise.reject(new Error('broken')), inAMinute());
      await expect(failing).rejects.toThrow('broken');
    }
    await expect(queue.run(async () => 'done', inAMinute())).resolves.toBe('done');
  });
});
