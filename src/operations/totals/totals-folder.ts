import { Injectable } from '@nestjs/common';
import { BackgroundWork } from '../../database/background-work.js';
import { Database } from '../../database/database.js';
import { Logger } from '../../http/logger.js';

const PAUSE_MS = 1_000;
/** Rows of each kind per statement, which keeps it well within its deadline. */
const BATCH = 5_000;

/**
 * Folds counted changes into the totals each second. Totals are right without it: it keeps short what a read must add up, and the
 * rarities of achievements recent. Every instance tries; one at a time folds.
 */
@Injectable()
export class TotalsFolder extends BackgroundWork {
  constructor(
    logger: Logger,
    private readonly database: Database,
  ) {
    super(logger, PAUSE_MS, 'totals could not be folded');
  }

  /** Folds until nothing is left, or another instance is folding. */
  protected async work(): Promise<void> {
    for (let folded = Infinity; folded > 0 && !this.ended;) {
      const [row] = await this.database.prepared<{ folded: number }>('SELECT fold_totals($1) AS folded', [
        BATCH,
      ]);
      folded = row!.folded;
    }
  }
}
