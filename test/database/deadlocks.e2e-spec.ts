import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { DataSource, EntityManager } from 'typeorm';
import { audited } from '../../src/audit/audit.js';
import { TestApi } from '../support/api.js';
import { asSuperuser, postgres, waitingForLock } from '../support/database.js';

postgres.describe('two deadlocked transactions', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  it.each([
    [
      'a transaction',
      <T>(source: DataSource, act: (manager: EntityManager) => Promise<T>) => source.transaction(act),
    ],
    ['a transaction with an audit event', audited],
  ])(
    'both commit, since the server retries the transaction that the database aborts (%s)',
    async (_, run) => {
      const [one, other] = [await api.platform.user(), await api.platform.user()];
      const lock = 'SELECT FROM users WHERE id = $1 FOR UPDATE';
      let attempts = 0;
      const [holdsOne, bothHoldOne] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];

      // The waiting session checks for deadlocks once, after a second, and aborts its own transaction: the other session must not check first.
      const waiting = await asSuperuser(api, (superuser) =>
        superuser.transaction(async (holder) => {
          await holder.query("SET LOCAL deadlock_timeout = '1min'");
          await holder.query(lock, [other]);
          const result = run(api.dataSource, async (manager) => {
            attempts++;
            await manager.query(lock, [one]);
            holdsOne.resolve();
            await bothHoldOne.promise;
            await manager.query(lock, [other]);
            return 'done';
          });
          await holdsOne.promise;
          const locked = holder.query(lock, [one]);
          await waitingForLock(superuser, lock);
          bothHoldOne.resolve();
          await locked;
          return { result };
        }),
      );

      expect(await waiting.result).toBe('done');
      // A second attempt may lock the first row before the waiting holder does, which is the same deadlock again.
      expect(attempts).toBeGreaterThanOrEqual(2);
    },
  );
});
