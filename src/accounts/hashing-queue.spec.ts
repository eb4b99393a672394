import { describe, expect, it } from '@jest/globals';
import { Unavailable } from '../database/unavailable.js';
import { HashingQueue } from './hashing-queue.js';

/** A task that ends when it is told to. */
function task() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  return { run: () => promise, end: resolve, fail: reject };
}

describe('HashingQueue', () => {
  it('runs two at a time, in the order of arrival', async () => {
    const queue = new HashingQueue();
    const started: number[] = [];
    const tasks = Array.from({ length: 4 }, task);
    const runs = tasks.map(({ run }, i) =>
      queue.run(() => {
        started.push(i);
        return run();
      }),
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

  it('refuses more than a hundred that wait, and takes some again when there is room', async () => {
    const queue = new HashingQueue();
    const tasks = Array.from({ length: 102 }, task);
    const runs = tasks.map(({ run }) => queue.run(run));
    await expect(queue.run(async () => undefined)).rejects.toBeInstanceOf(Unavailable);
    for (const { end } of tasks) end();
    await Promise.all(runs);
    await expect(queue.run(async () => 'done')).resolves.toBe('done');
  });

  it('gives a place back where a task fails', async () => {
    const queue = new HashingQueue();
    for (let i = 0; i < 5; i++) {
      const failing = queue.run(() => Promise.reject(new Error('broken')));
      await expect(failing).rejects.toThrow('broken');
    }
    await expect(queue.run(async () => 'done')).resolves.toBe('done');
  });
});
