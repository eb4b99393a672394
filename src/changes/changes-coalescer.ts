import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../database/background-work.js';
import { Database } from '../database/database.js';
import { Logger } from '../http/logger.js';

const PAUSE_MS = 1_000;
/** Looked at in one statement, which stays well within its deadline. */
const BATCH = 5_000;

/**
 * Keeps of all that was written of one thing within a second the last, so that what is read of a busy member stays short. Every
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

  /** Coalesces until nothing is left, or another instance is at it. */
  protected async work(): Promise<void> {
    for (let seen = BATCH; seen === BATCH && !this.ended;) {
      const [row] = await this.database.prepared<{ seen: number }>('SELECT coalesce_changes($1) AS seen', [
        BATCH,
      ]);
      seen = row!.seen;
    }
  }
}
