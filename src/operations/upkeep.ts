import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { Periodic } from '../runtime/periodic-work.js';
import { writeNextMembers } from '../import/pending-members.js';
import { ARE_PENDING } from '../import/staging.js';

const SECOND_MS = 1_000;
const ENDING_KEYS_MS = 30_000;

/** What the database leaves to be done a moment after a change, by its own functions, so that whoever changes something need not wait. */
@Injectable()
export class Upkeep {
  constructor(private readonly database: Database) {}

  /**
   * Folds counted changes into the totals. Totals are right without it: it keeps short what a read must add up, and the rarities of
   * achievements recent.
   */
  @Periodic({ work: 'totals', everyMs: SECOND_MS, failure: 'totals could not be folded' })
  foldTotals(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT fold_totals($1) AS done', 5_000, 1, end);
  }

  /**
   * Copies the names of renamed members to others' connections, which are searched and sorted by them. So a rename is quick however
   * many are connected; lists show the new name at once, and find it a second or so later (for 100,000 connections up to a minute).
   */
  @Periodic({ work: 'names', everyMs: SECOND_MS, failure: 'names of renamed members could not be copied' })
  copyNames(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT copy_names($1) AS done', 500, 1, end);
  }

  /** Changes the members of an import that was committed and then killed. While it runs, it does the same. */
  @Periodic({ work: 'members', everyMs: SECOND_MS, failure: 'members of an import could not be changed' })
  async writePendingMembers(end: AbortSignal): Promise<void> {
    const [row] = await this.database.prepared<{ pending: boolean }>(ARE_PENDING, []);
    if (!row!.pending) return;
    const dataSource = await this.database.background('settling');
    while (!end.aborted && (await writeNextMembers(dataSource)) > 0);
  }

  /** Of several changes to one thing within a second, keeps only the last, so that the log of a busy member stays short. */
  @Periodic({ work: 'changes', everyMs: SECOND_MS, failure: 'changes could not be coalesced' })
  coalesceChanges(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT coalesce_changes($1) AS done', 5_000, 5_000, end);
  }

  /**
   * Records which transactions have ended, so `updated_since` can find what was committed after a time (migration mark-changes). If
   * nobody did, responses would contain a little more.
   */
  @Periodic({ work: 'change_marks', everyMs: SECOND_MS, failure: 'no change mark could be taken' })
  async takeChangeMark(): Promise<void> {
    await this.database.prepared('SELECT take_change_mark()', []);
  }

  /** Notifies members of API keys in use that end within 7 days. */
  @Periodic({
    work: 'ending_keys',
    everyMs: ENDING_KEYS_MS,
    failure: 'members could not be notified of keys that end',
  })
  reportEndingKeys(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT report_ending_keys($1) AS done', 1_000, 1_000, end);
  }

  /**
   * Calls a function of the database until it does too little, or another instance is in it.
   *
   * @param batch rows of each kind per statement, which keeps it well within its deadline
   * @param enough what the function has to have done for it to be called again
   */
  async #untilDone(statement: string, batch: number, enough: number, end: AbortSignal): Promise<void> {
    for (let done = enough; done >= enough && !end.aborted;) {
      const [row] = await this.database.prepared<{ done: number }>(statement, [batch]);
      done = row!.done;
    }
  }
}
