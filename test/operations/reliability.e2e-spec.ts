import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import supertest, { type Response } from 'supertest';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { closeApp, createApp } from '../../src/app.js';
import { Database } from '../../src/database/database.js';
import { Requester, workFor } from '../../src/database/postgres/callers.js';
import { isUnavailable } from '../../src/database/postgres/unavailable.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { DEADLINES, hold, postgres } from '../support/database.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/timing.js';

it('periodic work runs while requests hold every connection of their pool', async () => {
  await using api = await TestApi.start({ databasePoolSize: 1 });
  const pool = (api.app.get(DataSource).driver as unknown as { master: Pool }).master;
  const held = await workFor(new Requester(), () => pool.connect());
  const done: string[] = [];
  const all = api.app.get(PeriodicWork).declared();
  for (const { schedule, run } of all) {
    await run(new AbortController().signal);
    done.push(schedule.work);
  }
  expect(done).toEqual(expect.arrayContaining(['webhooks', 'logouts', 'signing_keys']));
  expect(api.app.get(Database).poolState()).toEqual({ busy: 1, idle: 0, waiting: 0 });
  held.release();
});

postgres.describe('the server with a failing database', () => {
  let api: TestApi;
  let app: NestExpressApplication;
  let proxy: TcpProxy;
  let key: string;

  beforeAll(async () => {
    api = await TestApi.start();
    proxy = await TcpProxy.start(api.config.databaseUrl!);
    app = await createApp({
      ...api.config,
      databaseUrl: proxy.url,
      databaseDirectUrl: proxy.url,
      databasePoolSize: 4,
      databaseDeadlines: DEADLINES,
    });
    await app.listen(0, '127.0.0.1');
    key = await api.key(await api.platform.user());
  });
  afterEach(() => {
    proxy.resume();
    proxy.mend();
  });
  afterAll(async () => {
    await closeApp(app);
    await proxy.close();
    await api.close();
  });

  const get = async (path: string): Promise<Response> =>
    supertest(app.getHttpServer()).get(path).set('X-API-Key', key);
  const put = async (bio: string): Promise<Response> =>
    supertest(app.getHttpServer()).put('/api/public/profile').set('X-API-Key', key).send({ bio });

  const expectUnavailable = (answer: Response) => {
    expect([answer.status, answer.body.code]).toEqual([503, 'temporarily_unavailable']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  };
  const expectGoodAgain = (path = '/api/public/profile') =>
    until(async () => (await get(path)).status === 200);

  it.each(['cut', 'stall'] as const)('responds 503, stays alive, and recovers (%s)', async (harm) => {
    await expectGoodAgain(); // another test may have cut the connections
    proxy[harm]();
    const answers = await Promise.all([
      get('/api/public/profile'),
      get('/api/public/events?q=none'),
      put('away'),
      ...Array.from({ length: 20 }, () => get('/api/public/me')),
    ]);
    for (const answer of answers) expectUnavailable(answer);
    expect((await get('/livez')).status).toBe(200);
    await until(async () => (await get('/readyz')).status === 503); // a result is cached for a quarter of a second
    proxy.resume();
    proxy.mend();
    await expectGoodAgain();
    await expectGoodAgain('/readyz');
  });

  it('responds 503 while a table is locked, and recovers', async () => {
    const runner = await hold(api.dataSource, 'LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
    try {
      for (const answer of await Promise.all([
        get('/api/public/profile'),
        put('locked'),
        get('/api/public/connections?q=no'),
      ])) {
        expectUnavailable(answer);
      }
    } finally {
      await runner.rollback();
    }
    await expectGoodAgain();
  });

  it('responds 503 while the pool and its queue are full, and recovers', async () => {
    const runner = await hold(api.dataSource, 'LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
    try {
      const answers = await atOnce(200, () => put('flood'));
      // 200 callers also run in this process.
      for (const answer of answers) expectUnavailable(answer);
    } finally {
      await runner.rollback();
    }
    await expectGoodAgain();
  });

  it.each(['manager', 'runner'] as const)(
    'treats a connection that breaks between two statements of a transaction as an unavailable database (%s)',
    async (by) => {
      const error: unknown = await app
        .get(DataSource)
        .transaction(async (manager) => {
          const runner = manager.queryRunner!;
          await manager.query('SELECT 1');
          proxy.cut();
          while (!runner.isReleased) await new Promise(setImmediate);
          await (by === 'manager' ? manager : runner).query('SELECT 1');
        })
        .catch((thrown: unknown) => thrown);
      expect([error, isUnavailable(error)]).toEqual([expect.any(Error), true]);
    },
  );

  it('is not ready, and rejects only writes, while the database is read-only', async () => {
    const [{ name } = { name: '' }] = await api.query<{ name: string }>('SELECT current_database() AS name');
    await api.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    proxy.cut(); // the setting applies to new connections
    proxy.mend();
    try {
      await expectGoodAgain();
      expectUnavailable(await put('read only'));
      // A result is cached for a quarter of a second.
      await until(async () => (await get('/readyz')).status === 503);
    } finally {
      await api.query('SET default_transaction_read_only = off');
      await api.query(`ALTER DATABASE ${name} SET default_transaction_read_only = off`);
      proxy.cut();
      proxy.mend();
    }
    await expectGoodAgain();
    await until(async () => (await put('writable')).status === 200);
  });
});
