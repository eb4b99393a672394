import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';

const INTERVAL_MS = 1_000;
/** Of each kind in one statement, which stays well within its deadline. */
const BATCH = 5_000;

/**
 * Folds what was counted into the base of every total, each second. Totals are right without it: it keeps what a read has to
 * add up short, and the rarities of achievements young. Every instance tries; one at a time folds.
 */
@Injectable()
export class TotalsFolder implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<unknown> | undefined;
  #ended = false;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly database: Database,
  ) {}

  onApplicationBootstrap(): void {
    this.#run();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Folds until nothing is left, or another instance is at it. */
  async fold(): Promise<void> {
    for (let folded = Infinity; folded > 0 && !this.#ended;) {
      const [row] = await this.database.prepared<{ folded: number }>('SELECT fold_totals($1) AS folded', [
        BATCH,
      ]);
      folded = row!.folded;
    }
  }

  #run(): void {
    this.#running = this.fold()
      .catch((error: unknown) =>
        this.logger.warn({ reason: (error as Error).message }, 'totals could not be folded'),
      )
      .finally(() => {
        if (!this.#ended) this.#timer = setTimeout(() => this.#run(), INTERVAL_MS).unref();
      });
  }
}
