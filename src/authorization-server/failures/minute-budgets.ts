import { LRUCache } from 'lru-cache';

/** Counts what is done within a minute. */
export class MinuteBudgets {
  readonly #spent = new LRUCache<string, number>({ max: 10_000, ttl: 60_000, noUpdateTTL: true });

  /**
   * Counts one for each name, where none has had the most that it may have.
   *
   * @param budgets how many each may have
   * @returns whether it was counted
   */
  spend(budgets: Readonly<Record<string, number>>): boolean {
    const spent = (name: string) => this.#spent.get(name) ?? 0;
    if (Object.entries(budgets).some(([name, most]) => spent(name) >= most)) return false;
    for (const name of Object.keys(budgets)) this.#spent.set(name, spent(name) + 1);
    return true;
  }
}
