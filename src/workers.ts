import cluster, { type Worker } from 'node:cluster';
import { OperatorError } from './values/operator-error.js';

/** A dead worker is replaced after this long: without a pause, it might die again and again in a tight loop. */
const REPLACE_MS = 1_000;

interface Workers {
  /** Resolves when all listen; rejects with OperatorError if one ends before, having reported why itself. */
  readonly ready: Promise<void>;
  end(): Promise<void>;
}

/** Runs `count` server processes on one port, and replaces those that die. */
export function superviseWorkers(count: number): Workers {
  let ending = false;
  const fork = (): Worker => {
    const worker = cluster.fork();
    worker.once('exit', () => {
      if (!ending) setTimeout(() => (ending ? undefined : fork()), REPLACE_MS);
    });
    return worker;
  };
  const listening = Array.from({ length: count }, () => {
    const worker = fork();
    return new Promise<void>((resolve, reject) => {
      worker.once('listening', () => resolve());
      worker.once('exit', () => {
        if (!ending) reject(new OperatorError('A server process ended before it was ready'));
      });
    });
  });
  return {
    ready: Promise.all(listening).then(() => undefined),
    end: async () => {
      ending = true;
      const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
      const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
      for (const worker of workers) worker.process.kill('SIGTERM');
      await Promise.all(ended);
    },
  };
}
