import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../../database/background-work.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';

const PAUSE_MS = 1_000;

/**
 * Records each second which transactions have ended, so `updated_since` can find what was committed after a time (migration
 * mark-changes). Every instance tries, and one per second writes; if none did, responses contain a little more.
 */
@Injectable()
export class ChangeMarks extends BackgroundWork {
  constructor(
    logger: Logger,
    private readonly database: Database,
  ) {
    super(logger, PAUSE_MS, 'no change mark could be taken');
  }

  async take(): Promise<void> {
    await this.database.prepared('SELECT take_change_mark()', []);
  }

  protected async work(): Promise<void> {
    await this.take();
  }
}
