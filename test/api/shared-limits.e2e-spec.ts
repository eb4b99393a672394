import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout as pause } from 'node:timers/promises';
import supertest from 'supertest';
import type { DataSource } from 'typeorm';
import { closeApp, createApp } from '../../src/app.js';
import { Limit } from '../../src/auth/rate-limits/limit.js';
import type { Count } from '../../src/auth/rate-limits/limit.js';
import { Membership } from '../../src/auth/rate-limits/membership.js';
import { PostgresCounts } from '../../src/auth/rate-limits/postgres-counts.js';
import { RedisCounts } from '../../src/auth/rate-limits/redis-counts.js';
import type { SharedCounts } from '../../src/auth/rate-limits/shared-counts.js';
import type { Config } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/data-source.js';
import { Database } from '../../src/database/database.js';
import { TestApi } from '../support/api.js';
import { createTestDatabase, postgres, testConfig } from '../support/database.js';
import type { TestDatabase } from '../support/database.js';
import { RedisServer } from '../support/redis.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { SLOW_MACHINE_MS } from '../support/timing.js';
import { freshAddress, inOneWindow } from '../support/windows.js';

/** The machine that runs the tests may be slow: what is tested is what happens while the store answers. */
const deadlines = { connect: 10_000, lock: 10_000, statement: 10_000, answer: 15_000 };

/** Until `condition` holds; the test's own time ends it. */
async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await pause(20);
}

postgres.describe.each(['PostgreSQL', 'Redis'])('a limit over %s', (store) => {
  let redis: RedisServer;
  let database: TestDatabase;
  let dataSource: DataSource;
  let proxy: TcpProxy;
  let ended: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    redis = await RedisServer.start();
    database = await createTestDatabase();
    dataSource = await createDataSource(testConfig(database.environment), 'maintenance').initialize();
    proxy = await TcpProxy.start(store === 'Redis' ? redis.url : database.environment.DATABASE_URL!);
  });
  afterEach(async () => {
    proxy.mend();
    proxy.resume();
    for (const end of ended) await end();
    ended = [];
  });
  afterAll(async () => {
    await proxy.close();
    await dataSource.destroy();
    await database.drop();
    await redis.stop();
  });

  const connect = async (url?: string): Promise<SharedCounts> => {
    if (store === 'Redis') return RedisCounts.connect(url ?? redis.url, deadlines);
    const config = testConfig(
      { ...database.environment, ...(url ? { DATABASE_URL: url } : {}) },
      { databaseDeadlines: deadlines },
    );
    return PostgresCounts.connect(config, new Database(dataSource, { ...config, databaseUrl: undefined }));
  };
  /** An instance's side of the limit, over a connection of its own, that ends with the test. */
  const instance = async (quota: number, url?: string, patienceMs = deadlines.lock) => {
    const shared = await connect(url);
    const settle = jest.spyOn(shared, 'settle');
    const changes: (string | undefined)[] = [];
    const membership = new Membership(shared);
    await membership.join();
    const limit = new Limit(quota, patienceMs, membership, (reason) => changes.push(reason));
    ended.push(async () => {
      await limit.end();
      await membership.end();
      await shared.end();
    });
    return { limit, changes, settle, shared, membership };
  };
  /** Until it is restored, or the test ends, the limit sends nothing but for calls: on a slow machine a tick may come at any time. */
  const withoutTicks = (limit: Limit) => jest.spyOn(limit, 'tick').mockReturnValue();
  const instances = (number: number, quota: number) =>
    Promise.all(Array.from({ length: number }, () => instance(quota)));
  const admittedOf = (counts: readonly { admitted: boolean }[]) =>
    counts.filter(({ admitted }) => admitted).length;

  it(
    'admits never more than the quota of a burst over two instances, and 29 of 30 at least',
    inOneWindow(async () => {
      const [one, other] = await instances(2, 30);
      for (let round = 0; round < 20; round++) {
        const key = randomUUID();
        const burst = Array.from({ length: 51 }, async (_, i) => (i % 2 ? one! : other!).limit.take(key));
        const admitted = admittedOf(await Promise.all(burst));
        expect([29, 30]).toContain(admitted);
      }
    }),
  );

  it(
    'admits the quota, one call after the other over two instances in turns, and never says that more is left',
    inOneWindow(async () => {
      for (const quota of [30, 300]) {
        const [one, other] = await instances(2, quota);
        const key = randomUUID();
        let admitted = 0;
        for (let call = 0; call < quota + 10; call++) {
          const count = await (call % 2 ? one! : other!).limit.take(key);
          if (count.admitted) admitted++;
          expect(count.left).toBeLessThanOrEqual(quota - admitted);
          expect(count.left).toBeGreaterThanOrEqual(quota - admitted - quota / 4);
        }
        expect(admitted).toBeLessThanOrEqual(quota);
        expect(admitted).toBeGreaterThanOrEqual(0.95 * quota);
      }
    }),
  );

  it(
    'says to the call what is left where one instance alone is called, and rarely asks the store',
    inOneWindow(async () => {
      const { limit, settle } = await instance(300);
      const key = randomUUID();
      for (let call = 1; call <= 300; call++) {
        const { admitted, left, resetSeconds } = await limit.take(key);
        expect([admitted, left]).toEqual([true, 300 - call]);
        expect(resetSeconds).toBeGreaterThanOrEqual(1);
        expect(resetSeconds).toBeLessThanOrEqual(60);
      }
      expect(settle.mock.calls.length).toBeLessThan(75);
    }),
  );

  it(
    'refuses from memory what is used up: a flood costs no statement',
    inOneWindow(async () => {
      const [one, other] = await instances(2, 5);
      const key = randomUUID();
      while ((await one!.limit.take(key)).admitted);
      await other!.limit.take(key);
      const before = other!.settle.mock.calls.length;
      const flood = Array.from({ length: 10_000 }, () => other!.limit.take(key) as Count);
      expect(admittedOf(flood)).toBe(0);
      expect(flood.every(({ left }) => left === 0)).toBe(true);
      expect(other!.settle.mock.calls.length).toBe(before);
    }),
  );

  it(
    'asks soon what others took of a key that is used much, and of others only now and then',
    inOneWindow(async () => {
      const [one] = await instances(2, 300);
      const tick = one!.limit.tick.bind(one!.limit);
      withoutTicks(one!.limit);
      const heardOf = async (key: string) => {
        one!.settle.mockClear();
        tick();
        await setImmediate(); // what is asked in one turn is sent in the next
        await setImmediate();
        return one!.settle.mock.calls.flatMap(([, , asks]) => asks).some((ask) => ask.key === key);
      };
      const [little, much] = [randomUUID(), randomUUID()];
      await one!.limit.take(little);
      expect(await heardOf(little)).toBe(false);
      while (((await one!.limit.take(much)) as Count).left > 260);
      for (let call = 0; call < 5; call++) void one!.limit.take(much);
      expect(await heardOf(much)).toBe(true);
    }),
  );

  it(
    'leaves 95 % to others while one instance holds what it took and does not use it, and soon all of it',
    inOneWindow(async () => {
      const [idle, busy] = await instances(2, 300);
      const key = randomUUID();
      const holding = withoutTicks(idle!.limit); // it gives nothing back before the other has used up the rest
      for (let call = 0; call < 32; call++) await idle!.limit.take(key);
      let admitted = 32;
      while ((await busy!.limit.take(key)).admitted) admitted++;
      expect(admitted).toBeGreaterThanOrEqual(285);
      expect(admitted).toBeLessThan(300);
      holding.mockRestore();
      await until(async () => {
        if ((await busy!.limit.take(key)).admitted) admitted++;
        return admitted === 300;
      });
      expect((await busy!.limit.take(key)).admitted).toBe(false);
    }),
  );

  it(
    'gets back what an instance took that ends',
    inOneWindow(async () => {
      const [ending, other] = await instances(2, 100);
      const key = randomUUID();
      for (let call = 0; call < 9; call++) await ending!.limit.take(key);
      await ending!.limit.end();
      let admitted = 9;
      while ((await other!.limit.take(key)).admitted) admitted++;
      expect(admitted).toBe(100);
    }),
  );

  it(
    'sends what many keys need at the same time in one statement',
    inOneWindow(async () => {
      const { limit, settle } = await instance(10);
      withoutTicks(limit);
      await limit.take(randomUUID());
      settle.mockClear();
      const counts = await Promise.all(Array.from({ length: 200 }, async () => limit.take(randomUUID())));
      expect(admittedOf(counts)).toBe(200);
      expect(settle.mock.calls.length).toBe(1);
    }),
  );

  it(
    'asks nobody once it knows a key, where one instance has been alone for a while, and tells what it admitted',
    inOneWindow(async () => {
      const { limit, membership, shared } = await instance(100);
      await until(() => membership.aloneSince(performance.now()));
      const key = randomUUID();
      await limit.take(key);
      for (let left = 98; left >= 0; left--) expect(limit.take(key)).toMatchObject({ admitted: true, left });
      expect(limit.take(key)).toMatchObject({ admitted: false, left: 0 });
      limit.tick();
      await until(
        async () => (await shared.settle(100, 0, [{ key, spent: 0, wanted: 0 }])).told[0]!.used === 100,
      );
    }),
  );

  it(
    'lets in another instance only when the one that was alone has reported everything that it admitted',
    inOneWindow(async () => {
      for (let round = 0; round < 3; round++) {
        const one = await instance(30);
        await until(() => one.membership.aloneSince(performance.now()));
        const key = randomUUID();
        await one.limit.take(key);
        let admitted = 1;
        for (let call = 0; call < 19; call++) if ((one.limit.take(key) as Count).admitted) admitted++;
        const other = await instance(30);
        expect(one.membership.aloneSince(performance.now())).toBe(false);
        const calls = Array.from({ length: 40 }, async (_, i) => (i % 2 ? one : other).limit.take(key));
        admitted += admittedOf(await Promise.all(calls));
        expect([29, 30]).toContain(admitted);
        for (const end of ended.splice(0)) await end();
      }
    }),
  );

  it(
    'lets in another instance when the one that was alone is cut off, and that one is not alone any more by then',
    inOneWindow(async () => {
      const gone = await instance(30, proxy.url);
      await until(() => gone.membership.aloneSince(performance.now()));
      const known = performance.now();
      proxy.cut();
      await instance(30);
      expect(gone.membership.aloneSince(known)).toBe(false);
    }),
  );

  it('never admits more than the quota, whoever is alone in between, and however short that lasts', async () => {
    const shareds = await Promise.all([0, 1].map(() => connect()));
    const command = fc.record({
      on: fc.nat(1),
      do: fc.constantFrom('take' as const, 'leave' as const, 'come' as const),
      times: fc.integer({ min: 1, max: 12 }),
      pause: fc.constantFrom(0, 0, 60, 120),
    });
    let alone = 0;
    type Command = typeof command extends fc.Arbitrary<infer One> ? One : never;
    const round = (quota: number, commands: readonly Command[]) =>
      inOneWindow(async () => {
        const key = randomUUID();
        const come = async (on: number) => {
          const membership = new Membership(shareds[on]!, 45);
          await membership.join();
          return { membership, limit: new Limit(quota, deadlines.lock, membership, () => undefined) };
        };
        const there: (Awaited<ReturnType<typeof come>> | undefined)[] = [await come(0), undefined];
        let admitted = 0;
        for (const { on, do: what, times, pause: milliseconds } of commands) {
          const one = there[on];
          if (what === 'come') there[on] ??= await come(on);
          if (what === 'leave' && one) {
            there[on] = undefined;
            await one.limit.end();
            await one.membership.end();
          }
          if (what === 'take' && one) {
            if (one.membership.aloneSince(performance.now())) alone++;
            admitted += admittedOf(
              await Promise.all(Array.from({ length: times }, async () => one.limit.take(key))),
            );
            expect(admitted).toBeLessThanOrEqual(quota);
          }
          await pause(milliseconds);
        }
        for (const one of there) {
          await one?.limit.end();
          await one?.membership.end();
        }
        const { told } = await shareds[0]!.settle(quota, 0, [{ key, spent: 0, wanted: 0 }]);
        expect(told[0]!.used).toBeGreaterThanOrEqual(admitted);
      })();
    try {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 10, max: 60 }), fc.array(command, { maxLength: 16 }), round),
        { numRuns: 20 },
      );
      expect(alone).toBeGreaterThan(0);
    } finally {
      await Promise.all(shareds.map((shared) => shared.end()));
    }
  });

  it('begins anew with the window, whatever the one before came to', async () => {
    const { shared, settle } = await instance(10);
    const key = randomUUID();
    const { window } = await shared.settle(10, 0, [{ key, spent: 0, wanted: 10 }]);
    const wasUsedUp = (await shared.settle(10, window, [{ key, spent: 0, wanted: 1 }])).told[0];
    expect(wasUsedUp).toMatchObject({ used: 10, granted: 0 });
    if (store === 'Redis') {
      const client = (shared as unknown as { redis: { hset(...values: unknown[]): Promise<unknown> } }).redis;
      await client.hset(`rate:${key}`, 'window', window - 1);
    } else {
      await dataSource.query('UPDATE rate_limit_counts SET window_number = $2 WHERE key = $1', [
        key,
        window - 1,
      ]);
    }
    const fresh = await shared.settle(10, window, [{ key, spent: 0, wanted: 4 }]);
    expect(fresh.told[0]).toMatchObject({ used: 4, granted: 4 });
    // What was taken or spent in a window that is over is nothing in this one.
    const late = await shared.settle(10, window - 1, [{ key, spent: 5, wanted: -3 }]);
    expect(late.told[0]).toMatchObject({ used: 4, granted: 0 });
    expect(settle).toHaveBeenCalledTimes(4);
  });

  it('never gives back more than was taken, nor grants more than is left after what was spent', async () => {
    const { shared } = await instance(10);
    const key = randomUUID();
    const { window } = await shared.settle(10, 0, [{ key, spent: 0, wanted: 3 }]);
    const settled = async (spent: number, wanted: number) =>
      (await shared.settle(10, window, [{ key, spent, wanted }])).told[0];
    expect(await settled(0, -9)).toMatchObject({ used: 0, granted: -9 });
    expect(await settled(8, 5)).toMatchObject({ used: 10, granted: 2 });
    expect(await settled(4, 5)).toMatchObject({ used: 14, granted: 0 });
    const other = randomUUID(); // its first row
    expect((await shared.settle(10, window, [{ key: other, spent: 8, wanted: 5 }])).told[0]).toMatchObject({
      used: 10,
      granted: 2,
    });
  });

  it(
    'lets each instance limit alone while the store is away, says so once, and is shared again when it is back',
    inOneWindow(async () => {
      const { limit, changes, settle } = await instance(40, proxy.url);
      const other = await instance(40);
      const key = randomUUID();
      let admitted = 0;
      const call = async () => void (admitted += (await limit.take(key)).admitted ? 1 : 0);
      for (let i = 0; i < 10; i++) await call();
      expect([limit.together, changes.length]).toEqual([true, 0]);
      proxy.cut();
      for (let i = 0; i < 10; i++) await call();
      expect([limit.together, changes.length, admitted]).toEqual([false, 1, 20]);
      expect(changes[0]).toEqual(expect.any(String));
      const asked = settle.mock.calls.length;
      for (let i = 0; i < 10; i++) expect(limit.take(randomUUID())).not.toBeInstanceOf(Promise);
      expect(settle.mock.calls.length).toBe(asked);
      proxy.mend();
      await until(async () => {
        await limit.take(randomUUID());
        return limit.together;
      });
      expect(changes).toEqual([expect.any(String), undefined]);
      // What it admitted meanwhile counts for all.
      await until(async () => {
        const { left } = await other.limit.take(key);
        return left <= 20;
      });
    }),
  );

  it(
    'waits a fifth of a second at most for a store that does not answer, and for that only once',
    inOneWindow(async () => {
      const { limit, changes } = await instance(40, proxy.url, 200);
      await limit.take('warm');
      proxy.stall();
      const begun = performance.now();
      const counts = await Promise.all([limit.take('a'), limit.take('b'), limit.take('b')]);
      const waited = performance.now() - begun;
      expect(admittedOf(counts)).toBe(3);
      expect(counts.map(({ left }) => left)).toEqual([39, 39, 38]);
      expect(waited).toBeGreaterThan(150);
      expect(waited).toBeLessThan(200 + SLOW_MACHINE_MS);
      expect(limit.take('c')).toMatchObject({ admitted: true, left: 39 });
      expect(changes).toEqual(['no answer within 200 ms']);
    }),
  );

  it('never admits more than the quota, and loses none of it, whatever comes in whatever order', async () => {
    const command = fc.record({
      on: fc.nat(2),
      do: fc.oneof(
        { weight: 8, arbitrary: fc.constant('take' as const) },
        { weight: 2, arbitrary: fc.constant('tick' as const) },
        { weight: 1, arbitrary: fc.constant('restart' as const) },
      ),
      times: fc.integer({ min: 1, max: 12 }),
      wait: fc.boolean(),
    });
    const shareds = await Promise.all([0, 1, 2].map(() => connect()));
    const members = shareds.map((shared) => new Membership(shared));
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 60 }),
          fc.array(command, { maxLength: 40 }),
          (quota, commands) =>
            inOneWindow(async () => {
              const key = randomUUID();
              const limits = members.map(
                (member) => new Limit(quota, deadlines.lock, member, () => undefined),
              );
              let admitted = 0;
              const calls: Promise<void>[] = [];
              for (const { on, do: what, times, wait } of commands) {
                if (what === 'tick') limits[on]!.tick();
                if (what === 'restart') {
                  await limits[on]!.end();
                  limits[on] = new Limit(quota, deadlines.lock, members[on], () => undefined);
                }
                for (let i = 0; what === 'take' && i < times; i++) {
                  calls.push(
                    Promise.resolve(limits[on]!.take(key)).then((count) => {
                      if (count.admitted) admitted++;
                      expect(admitted).toBeLessThanOrEqual(quota);
                    }),
                  );
                }
                if (wait) await Promise.all(calls);
              }
              await Promise.all(calls);
              await Promise.all(limits.map((limit) => limit.end()));
              // What is counted is what was admitted: nothing is lost, nothing invented.
              const { told } = await shareds[0]!.settle(quota, 0, [{ key, spent: 0, wanted: 0 }]);
              expect(told[0]!.used).toBe(admitted);
            })(),
        ),
        { numRuns: 150 },
      );
    } finally {
      await Promise.all(members.map((member) => member.end()));
      await Promise.all(shareds.map((shared) => shared.end()));
    }
  });
});

postgres.describe('limits over two servers', () => {
  const limits = { read: 30, write: 30, auth: 20 };
  let redis: RedisServer;
  let api: TestApi;
  let other: NestExpressApplication;
  beforeAll(async () => void (redis = await RedisServer.start()));
  afterAll(() => redis.stop());
  const start = async (overrides: Partial<Config>) => {
    api = await TestApi.start({ rateLimits: limits, trustProxy: 1, ...overrides });
    other = await createApp(api.config);
    await other.listen(0, '127.0.0.1');
  };
  afterEach(async () => {
    await closeApp(other);
    await api.close();
  });
  const get = (server: NestExpressApplication, key: string, address = '192.0.2.1') =>
    supertest(server.getHttpServer())
      .get('/api/public/me')
      .set({ 'X-API-Key': key, 'X-Forwarded-For': address });
  const count = (statuses: readonly number[], status: number) =>
    statuses.filter((one) => one === status).length;

  it.each(['PostgreSQL', 'Redis'])(
    'hold for both together over %s: of 51 calls at once 30 are answered, or 29',
    async (store) => {
      await start(store === 'Redis' ? { redisUrl: redis.url } : {});
      await inOneWindow(async () => {
        const key = await api.key(await api.platform.user());
        const answers = await Promise.all(
          Array.from({ length: 51 }, async (_, i) => get(i % 2 ? other : api.app, key)),
        );
        const statuses = answers.map(({ status }) => status);
        expect([29, 30]).toContain(count(statuses, 200));
        expect(count(statuses, 200) + count(statuses, 429)).toBe(51);
      })();
    },
  );

  it.each(['PostgreSQL', 'Redis'])(
    'hold for guesses at credentials from one address over %s, and hold no good one back',
    async (store) => {
      await start(store === 'Redis' ? { redisUrl: redis.url } : {});
      await inOneWindow(async () => {
        const address = freshAddress();
        const statuses: number[] = [];
        for (let i = 0; i < 26; i++)
          statuses.push((await get(i % 2 ? other : api.app, 'pua_live_wrong', address)).status);
        expect([19, 20]).toContain(count(statuses, 401));
        expect(count(statuses, 401) + count(statuses, 429)).toBe(26);
        const key = await api.key(await api.platform.user());
        expect((await get(other, key, address)).status).toBe(200);
      })();
    },
  );

  it('are never a reason to answer 503: a locked table of counts is a store that is away', async () => {
    await start({ databaseDeadlines: { ...deadlines, lock: 300 } });
    const key = await api.key(await api.platform.user());
    const runner = api.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE rate_limit_counts IN ACCESS EXCLUSIVE MODE');
    try {
      const { status, headers } = await get(api.app, key);
      expect([status, headers.ratelimit]).toEqual([200, expect.stringMatching(/^"read";r=29;/)]);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  });
});
