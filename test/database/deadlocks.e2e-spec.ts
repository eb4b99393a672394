import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource, type EntityManager } from 'typeorm';
import { audited } from '../../src/audit/audit.js';
import { TestApi } from '../support/api.js';
import { postgres, waitingForLock } from '../support/database.js';

postgres.describe('Two transactions that wait for each other', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  it.each([
    [
      'a transaction',
      <T>(source: DataSource, act: (manager: EntityManager) => Promise<T>) => source.transaction(act),
    ],
    ['an act of the audit trail', audited],
  ])('both come to their end: the one that the database ends is tried again (%s)', async (_, run) => {
    const [one, other] = [await api.platform.user(), await api.platform.user()];
    const lock = 'SELECT FROM users WHERE id = $1 FOR UPDATE';
    const holder = api.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(lock, [other]);
    let attempts = 0;

    const waiting = run(api.dataSource, async (manager) => {
      attempts++;
      await manager.query(lock, [one]);
      await manager.query(lock, [other]);
      return 'done';
    });
    await waitingForLock(api.app.get(DataSource));
    // The database looks for deadlocks when a statement has waited for a second: that of the transaction waits longer.
    await holder.query(lock, [one]);
    await holder.commitTransaction();
    await holder.release();

    expect([await waiting, attempts]).toEqual(['done', 2]);
  });
});
