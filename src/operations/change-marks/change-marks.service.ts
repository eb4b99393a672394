import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { Database } from '../../database/database.js';
import { LOGGER } from '../../http/logger.js';

const INTERVAL_MS = 1_000;

/**
 * Notes each second which transactions have ended, so that `updated_since` knows what was committed after a moment (migration
 * mark-changes). Every instance tries, one of them a second writes; where none did, answers hold a little more.
 */
@Injectable()
export class ChangeMarks implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<unknown> | undefined;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly database: Database,
  ) {}

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => {
      this.#running ??= this.take()
        .catch((error: unknown) =>
          this.logger.warn({ reason: (error as Error).message }, 'no change mark could be taken'),
        )
        .finally(() => (this.#running = undefined));
    }, INTERVAL_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  async take(): Promise<void> {
    await this.database.prepared('SELECT take_change_mark()', []);
  }
}
