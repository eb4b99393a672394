import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../../database/background-work.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';

const PAUSE_MS = 1_000;
/** Connections per statement, which keeps it well within its deadline. */
const BATCH = 500;

/**
 * Copies the names of renamed members to others' connections, which are searched and sorted by them. So a rename is quick however
 * many are connected; lists show the new name at once, and find it a second or so later (for 100,000 connections up to a minute).
 * Every instance tries; one at a time copies.
 */
@Injectable()
export class NamesCopier extends BackgroundWork {
  constructor(
    logger: Logger,
    private readonly database: Database,
  ) {
    super(logger, PAUSE_MS, 'names of renamed members could not be copied');
  }

  /** Copies until nothing more can be done now, or another instance is copying. */
  protected async work(): Promise<void> {
    for (let steps = Infinity; steps > 0 && !this.ended;) {
      const [row] = await this.database.prepared<{ steps: number }>('SELECT copy_names($1) AS steps', [
        BATCH,
      ]);
      steps = row!.steps;
    }
  }
}
