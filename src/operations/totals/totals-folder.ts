import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../../database/background-work.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';

const PAUSE_MS = 1_000;
/** Of each kind in one statement, which stays well within its deadline. */
const BATCH = 5_000;

/**
 * Folds what was counted, each second. Totals are right without it: it keeps what a read has to add up short, and the rarities
 * of achievements young. Every instance tries; one at a time folds.
 */
@Injectable()
export class TotalsFolder extends BackgroundWork {
  constructor(
    logger: Logger,
    private readonly database: Database,
  ) {
    super(logger, PAUSE_MS, 'totals could not be folded');
  }

  /** Folds until nothing is left, or another instance is at it. */
  protected async work(): Promise<void> {
    for (let folded = Infinity; folded > 0 && !this.ended;) {
      const [row] = await this.database.prepared<{ folded: number }>('SELECT fold_totals($1) AS folded', [
        BATCH,
      ]);
      folded = row!.folded;
    }
  }
}
