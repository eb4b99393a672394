import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DataSource } from 'typeorm';
import { createApp } from '../../src/app.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { Database } from '../../src/database/database.js';
import { RefreshGracePeriod } from '../../src/authorization-server/requests/kept-response.js';
import { endApp } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import {
  createTestDatabase,
  hold,
  postgres,
  testConfig,
  thorough,
  type TestDatabase,
} from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { eventually, until } from '../support/timing.js';

describe('the stored response of a used refresh token', () => {
  let oauth: OauthTest;
  let clientId: string;
  beforeAll(async () => {
    oauth = await OauthTest.start();
    clientId = await oauth.client();
  });
  afterAll(() => oauth.close());

  const kept = async (dataSource = oauth.dataSource): Promise<number> => {
    const [row] = await dataSource.query<{ count: number }[]>(
      'SELECT count(*) AS count FROM oauth_tokens WHERE successor IS NOT NULL',
    );
    return row!.count;
  };
  /** Refreshes once. @returns the used token, and its response */
  const refreshed = async () => {
    const { refresh_token } = await oauth.tokens(clientId, (await oauth.member()).username);
    return { used: refresh_token, ...(await oauth.refresh(clientId, refresh_token)) };
  };
  const usedEarlier = (seconds: number) =>
    oauth.query(
      `UPDATE oauth_tokens SET consumed_at = clock_timestamp() - make_interval(secs => $1) WHERE successor IS NOT NULL`,
      [seconds],
    );
  const goneInTime = (dataSource = oauth.dataSource) => until(async () => (await kept(dataSource)) === 0);

  thorough.it('is kept for 10 seconds after the use, and then deleted', async () => {
    const repeat = async () => {
      const { used, body } = await refreshed();
      const begun = performance.now();
      await usedEarlier(9);
      await oauth.api.app.get(RefreshGracePeriod).forget();
      const again = await oauth.refresh(clientId, used);
      // On a busy host the tenth second may pass meanwhile, and the round says nothing.
      return performance.now() - begun < 1_000 ? { used, body, again } : undefined;
    };
    const { used, body, again } = await eventually(repeat);
    expect(again.body.refresh_token).toBe(body.refresh_token);
    await usedEarlier(10);
    await goneInTime();
    // The used token stays stored: another use of the token revokes its family.
    expect((await oauth.refresh(clientId, used)).body.error).toBe('invalid_grant');
    expect(await oauth.me(body.access_token)).toBe(401);
  });

  thorough.it('is deleted even if an earlier deletion failed', async () => {
    await refreshed();
    await usedEarlier(11);
    const database = oauth.api.app.get(Database);
    const { prepared } = database;
    await new Promise<void>((failed) => {
      database.prepared = () => {
        failed();
        return Promise.reject(new Error('the database is away'));
      };
    });
    database.prepared = prepared;
    await goneInTime();
  });

  it('is found by an index', async () => {
    const plan = await oauth.dataSource.transaction(async (manager) => {
      await manager.query('SET LOCAL enable_seqscan = off'); // the table of this test is too small for an index
      return manager.query<{ 'QUERY PLAN': string }[]>(
        `EXPLAIN SELECT key FROM oauth_tokens WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '10 s'`,
      );
    });
    expect(JSON.stringify(plan)).toContain('oauth_tokens_successor_idx');
  });

  postgres.it('is skipped while a transaction locks its row, and deleted later', async () => {
    await refreshed();
    await usedEarlier(11);
    const lock = 'SELECT FROM oauth_tokens WHERE successor IS NOT NULL FOR UPDATE';
    const locked = await hold(oauth.dataSource, lock);
    expect(await oauth.api.app.get(RefreshGracePeriod).forget().finally(locked.rollback)).toBe(0);
    await goneInTime();
  });

  thorough.describe('that a stopped server left', () => {
    let database: TestDatabase;
    let dataSource: DataSource;
    /** Application of the next server, which does nothing by itself before it listens. */
    let app: NestExpressApplication;
    beforeEach(async () => {
      database = await createTestDatabase();
      const config = testConfig(database.environment);
      dataSource = await createDataSource(config, 'maintenance').initialize();
      await dataSource.query(`
INSERT INTO users (id, username) VALUES (1, 'ada');
INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ('app', 'App', 'web', '{https://app.example/}', '{}');
INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at) VALUES ('g', 1, 'app', '{}', now() + interval '1 day')`);
      app = await createApp(config);
    });
    afterEach(async () => {
      await endApp(app);
      await dataSource.destroy();
      await database.drop();
    });

    const leave = (count: number) =>
      dataSource.query(
        `INSERT INTO oauth_tokens (key, model, grant_id, payload, consumed_at, expires_at, successor)
SELECT sha256(gen_random_uuid()::text::bytea), 'RefreshToken', 'g', '{}', now() - interval '1 hour', now() + interval '1 day', 'sealed'
FROM generate_series(1, $1)`,
        [count],
      );

    it('is deleted when the next server starts', async () => {
      await leave(1);
      await app.listen(0, '127.0.0.1');
      await goneInTime(dataSource);
    });

    it('is deleted in one run with thousands of other responses', async () => {
      await leave(2_500);
      expect(await app.get(RefreshGracePeriod).forget()).toBe(2_500);
    });

    it('is deleted once by three concurrent runs', async () => {
      await leave(2_500);
      const counts = await atOnce(3, () => app.get(RefreshGracePeriod).forget());
      expect(counts.reduce((sum, count) => sum + count)).toBe(2_500);
    });
  });
});
