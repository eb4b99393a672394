import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { Config } from '../config/config.js';
import { Logger } from './logger.js';
import { Meter } from './meter.js';
import { Periodic, PeriodicWork } from './periodic-work.js';

/** Runs in progress: the test ends each run. */
class Runs {
  readonly begun: PromiseWithResolvers<void>[] = [];
  readonly #awaited: (() => void)[] = [];

  readonly begin = (): Promise<void> => {
    const run = Promise.withResolvers<void>();
    this.begun.push(run);
    for (const tell of this.#awaited.splice(0)) tell();
    return run.promise;
  };

  async until(count: number): Promise<void> {
    while (this.begun.length < count) await new Promise<void>((resolve) => void this.#awaited.push(resolve));
  }
}

/** An application with one kind of periodic work, at startup and every millisecond, or every `everyMs`. */
async function start(everyMs = 1, waits = false) {
  const runs = new Runs();
  const counted: unknown[] = [];
  const logged: unknown[] = [];
  @Injectable()
  class Folder {
    @Periodic({
      work: 'totals',
      everyMs: ({ sweepIntervalSeconds }) => sweepIntervalSeconds,
      failure: 'it failed',
      waits,
    })
    fold(end: AbortSignal): Promise<void> {
      return Promise.race([runs.begin(), new Promise<void>((resolve) => (end.onabort = () => resolve()))]);
    }
  }
  @Module({
    imports: [DiscoveryModule],
    providers: [
      Folder,
      { provide: 'alias', useExisting: Folder },
      PeriodicWork,
      { provide: Config, useValue: { sweepIntervalSeconds: everyMs } },
      { provide: Logger, useValue: { warn: (...line: unknown[]) => logged.push(line) } },
      { provide: Meter, useValue: { count: (...count: unknown[]) => counted.push(count) } },
    ],
  })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  return { app, runs, counted, logged };
}

describe('periodic work', () => {
  it('runs at startup, and again after each run, one run at a time', async () => {
    const { app, runs } = await start();
    await runs.until(1);
    await setTimeout(20);
    expect(runs.begun).toHaveLength(1);
    runs.begun[0]!.resolve();
    await runs.until(2);
    await app.close();
  });

  it('waits for its first interval if configured so', async () => {
    const { app, runs } = await start(1_000, true);
    expect(runs.begun).toHaveLength(0);
    await runs.until(1);
    await app.close();
  });

  it('counts each failure, and logs only the first of consecutive failures', async () => {
    const { app, runs, counted, logged } = await start();
    for (const [i, outcome] of ['fails', 'fails', 'succeeds', 'fails'].entries()) {
      await runs.until(i + 1);
      if (outcome === 'fails') runs.begun[i]!.reject(new Error('no database'));
      else runs.begun[i]!.resolve();
    }
    await runs.until(5);
    const line = [{ reason: 'no database' }, 'it failed'];
    expect(logged).toEqual([line, line]);
    const count = ['periodic_work_failures_total', { work: 'totals' }];
    expect(counted).toEqual([count, count, count]);
    await app.close();
  });

  it('does not run again after the application has closed', async () => {
    const { app, runs } = await start();
    await runs.until(1);
    await app.close();
    await setTimeout(20);
    expect(runs.begun).toHaveLength(1);
  });
});
