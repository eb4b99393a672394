import { setTimeout } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { Config } from '../config/config.js';
import { Logger } from './logger.js';
import { Meter } from './meter.js';
import type { LabelsOf } from './metrics.js';

/** A run of the work. Between steps it looks at `end`, and stops once that is aborted. */
type Work = (end: AbortSignal) => unknown;

interface Schedule {
  /** Name in the metrics. */
  readonly work: LabelsOf<'periodic_work_failures_total'>['work'];
  /** Between the end of one run and the start of the next, in ms. */
  readonly everyMs: number | ((config: Config) => number);
  /** Log message of the first of several runs in a row that fail. */
  readonly failure: string;
  /** The first run is one interval after the start, rather than at the start. */
  readonly waits?: boolean;
}

/** Declares that the application calls the method again and again, from its start to its end. */
export const Periodic = DiscoveryService.createDecorator<Schedule>();

/** Runs every method that is declared {@link Periodic}, until the application ends: before anything that it needs is closed. */
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

  /** All periodic work of the application. */
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
