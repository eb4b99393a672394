import { setTimeout } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { Config } from '../config/config.js';
import { Logger } from './logger.js';
import { Meter } from './meter.js';
import type { LabelsOf } from './metrics.js';

/** Does the work once; stops between its steps if `end` is aborted. */
type Work = (end: AbortSignal) => unknown;

interface Schedule {
  readonly work: LabelsOf<'periodic_work_failures_total'>['work'];
  /** Time between the end of one run and the start of the next, in ms. */
  readonly everyMs: number | ((config: Config) => number);
  /** Log message for the first of consecutive failures. */
  readonly failure: string;
  /** Delays the first run by one interval. */
  readonly waits?: boolean;
}

/** Calls the method periodically while the application runs. */
export const Periodic = DiscoveryService.createDecorator<Schedule>();

/** Runs every {@link Periodic} method until shutdown, and waits for current runs before the application closes its resources. */
@Injectable()
export class PeriodicWork implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #end = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly meter: Meter,
  ) {}

  onApplicationBootstrap(): void {
    this.#running = this.declared().map(({ schedule, run }) => this.#repeat(schedule, run));
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#running);
  }

  declared(): { schedule: Schedule; run: Work }[] {
    const scanner = new MetadataScanner();
    return this.discovery.getProviders().flatMap((provider) => {
      const instance = provider.instance as Record<string, Work> | null;
      if (provider.isAlias || !instance || typeof provider.metatype !== 'function') return [];
      return scanner.getAllMethodNames(Object.getPrototypeOf(instance) as object).flatMap((name) => {
        const schedule = this.discovery.getMetadataByDecorator(Periodic, provider, name);
        return schedule ? [{ schedule, run: (end: AbortSignal) => instance[name]!(end) }] : [];
      });
    });
  }

  async #repeat({ work, everyMs, failure, waits = false }: Schedule, run: Work): Promise<void> {
    const { signal } = this.#end;
    const pause = async () => {
      const milliseconds = typeof everyMs === 'number' ? everyMs : everyMs(this.config);
      await setTimeout(milliseconds, undefined, { signal, ref: false }).catch(() => undefined);
    };
    if (waits) await pause();
    for (let failing = false; !signal.aborted; await pause()) {
      try {
        await run(signal);
        failing = false;
      } catch (error) {
        this.meter.count('periodic_work_failures_total', { work });
        if (!failing) this.logger.warn({ reason: (error as Error).message }, failure);
        failing = true;
      }
    }
  }
}
