import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { StartupError } from './config/config.js';

/** A worker that dies is replaced after this long: at once, it might die again at once, for ever. */
const REPLACE_MS = 1_000;

/**
 * Runs `count` server processes on one port, and replaces those that die.
 *
 * @returns when all listen: how to end them
 * @throws StartupError where one ends before it listens; it has said why
 */
export async function superviseWorkers(count: number): Promise<() => Promise<void>> {
  let ending = false;
  const fork = (): Worker => {
    const worker = cluster.fork();
    worker.once('exit', () => {
      if (!ending) setTimeout(() => (ending ? undefined : fork()), REPLACE_MS);
    });
    return worker;
  };
  await Promise.all(
    Array.from({ length: count }, async () => {
      const worker = fork();
      await new Promise<void>((resolve, reject) => {
        worker.once('listening', () => resolve());
        worker.once('exit', () => reject(new StartupError('A server process ended before it was ready')));
      });
    }),
  );
  return async () => {
    ending = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    for (const worker of workers) worker.process.kill('SIGTERM');
    await Promise.all(ended);
  };
}
