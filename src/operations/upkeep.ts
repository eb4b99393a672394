import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { Periodic } from '../runtime/periodic-work.js';
import { writeNextMembers } from '../import/pending-members.js';
import { ARE_PENDING } from '../import/staging.js';

const SECOND_MS = 1_000;
const ENDING_KEYS_MS = 30_000;
/** Grants or keys per statement, so that it ends within the time limit of the requests' connections. */
const AT_ONCE = 100;
const MAX_LOOK_MS = 5_000;

/** Periodic work in the database, for which no request needs to wait. */
@Injectable()
export class Upkeep {
  /** The last grants that the two searches for ending access checked; null if they start again. */
  #reported: object | null = null;
  #told: object | null = null;

  constructor(private readonly database: Database) {}

  /** Compacts counter deltas, so that reads stay fast and the rarities of achievements recent. */
  @Periodic({ work: 'totals', everyMs: SECOND_MS, failure: 'totals could not be compacted' })
  foldTotals(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT fold_totals($1) AS done', 5_000, 1, end);
  }

  /** Copies new names of members to the connections that are searched and sorted by them, so that a rename need not wait. */
  @Periodic({ work: 'names', everyMs: SECOND_MS, failure: 'names of renamed members could not be copied' })
  copyNames(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT copy_names($1) AS done', 500, 1, end);
  }

  /** Applies the pending changes of an import, also if the import was killed after its commit. */
  @Periodic({ work: 'members', everyMs: SECOND_MS, failure: 'members of an import could not be changed' })
  async writePendingMembers(end: AbortSignal): Promise<void> {
    const [row] = await this.database.prepared<{ pending: boolean }>(ARE_PENDING, []);
    if (!row!.pending) return;
    const dataSource = await this.database.background('settling');
    while (!end.aborted && (await writeNextMembers(dataSource)) > 0);
  }

  /** Deletes changes that a later change of the same item and kind replaces, so that the change log stays short. */
  @Periodic({ work: 'changes', everyMs: SECOND_MS, failure: 'changes could not be coalesced' })
  coalesceChanges(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT coalesce_changes($1) AS done', 5_000, 5_000, end);
  }

  /** Records which transactions have ended, so that `updated_since` finds later commits (`schema/changes.sql`). */
  @Periodic({ work: 'change_marks', everyMs: SECOND_MS, failure: 'no change mark could be taken' })
  async takeChangeMark(): Promise<void> {
    await this.database.prepared('SELECT take_change_mark()', []);
  }

  @Periodic({
    work: 'ending_keys',
    everyMs: ENDING_KEYS_MS,
    failure: 'members could not be notified of keys that end',
  })
  reportEndingKeys(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT report_ending_keys($1) AS done', AT_ONCE, AT_ONCE, end);
  }

  /** Notifies members of access that ends within 7 days, if the app uses it. */
  @Periodic({
    work: 'ending_access',
    everyMs: ENDING_KEYS_MS,
    failure: 'members could not be notified of access that ends',
  })
  async reportEndingAccess(end: AbortSignal): Promise<void> {
    const statement = 'SELECT report_ending_access($1, $2::jsonb) AS last';
    this.#reported = await this.#lookAtGrants(statement, this.#reported, end);
  }

  /** Makes webhook messages for apps whose access changed or ended. */
  @Periodic({
    work: 'access_changes',
    everyMs: SECOND_MS,
    failure: 'apps could not be notified of their access',
  })
  tellAppsOfAccess(end: AbortSignal): Promise<void> {
    return this.#untilDone('SELECT tell_apps_of_access($1) AS done', AT_ONCE, 1, end);
  }

  /** Makes webhook messages about access and keys that end within 7 days, and about keys that have ended. */
  @Periodic({
    work: 'ending_credentials',
    everyMs: ENDING_KEYS_MS,
    failure: 'apps could not be notified of access and keys that end',
  })
  async tellOfEndingAccess(end: AbortSignal): Promise<void> {
    await this.#untilDone('SELECT tell_of_ending_keys($1) AS done', AT_ONCE, AT_ONCE, end);
    const statement = 'SELECT tell_of_ending_access($1, $2::jsonb) AS last';
    this.#told = await this.#lookAtGrants(statement, this.#told, end);
  }

  /** Calls a database function until it has checked all grants, or time is up. @returns the last checked grant; null after all */
  async #lookAtGrants(statement: string, last: object | null, end: AbortSignal): Promise<object | null> {
    const latest = performance.now() + MAX_LOOK_MS;
    do {
      const values = [AT_ONCE, JSON.stringify(last)];
      const [row] = await this.database.prepared<{ last: object | null }>(statement, values);
      ({ last } = row!);
    } while (last && !end.aborted && performance.now() < latest);
    return last;
  }

  /** Calls a database function until its result is less than `enough`. @param batch the function's argument, a number of rows */
  async #untilDone(statement: string, batch: number, enough: number, end: AbortSignal): Promise<void> {
    for (let done = enough; done >= enough && !end.aborted;) {
      const [row] = await this.database.prepared<{ done: number }>(statement, [batch]);
      done = row!.done;
    }
  }
}
