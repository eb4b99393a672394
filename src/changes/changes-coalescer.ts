import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../database/background-work.js';
import { Database } from '../database/database.js';
import { Logger } from '../http/logger.js';

const PAUSE_MS = 1_000;
/** Rows per statement, so that it stays well within its deadline. */
const BATCH = 5_000;

/**
 * Of several changes to one thing within a second, keeps only the last, so that the log of a busy member stays short. Every
 * instance tries; one at a time does it.
 */
@Injectable()
export class ChangesCoalescer extends BackgroundWork {
  constructor(
    logger: Logger,
    private readonly database: Database,
  ) {
    super(logger, PAUSE_MS, 'changes could not be coalesced');
  }

  /** Coalesces until nothing is left to do, or another instance is doing it. */
  protected async work(): Promise<void> {
    for (let seen = BATCH; seen === BATCH && !this.ended;) {
      const [row] = await this.database.prepared<{ seen: number }>('SELECT coalesce_changes($1) AS seen', [
        BATCH,
      ]);
      seen = row!.seen;
    }
  }
}
