import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import supertest from 'supertest';
import { closeApp, createApp } from '../../src/app.js';
import { postgresCounts } from '../../src/auth/rate-limits/count-stores.js';
import { Counter } from '../../src/auth/rate-limits/rate-limits.js';
import type { Config } from '../../src/config/config.js';
import { TestApi } from '../support/api.js';
import { hold, postgres } from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { eventually } from '../support/timing.js';
import { freshAddress, inOneWindow, itInOneWindow } from '../support/windows.js';

/** The host may be slow, and only the behavior with a responding store is tested. */
const deadlines = { connect: 10_000, lock: 10_000, statement: 10_000, answer: 15_000 };
/** Counts are exchanged only when the test requests it. */
const NEVER_MS = 2 ** 31 - 1;

postgres.describe('shared rate-limit counts', () => {
  let database: OpenDatabase;
  let proxy: TcpProxy;
  let ended: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    database = await openDatabase();
    proxy = await TcpProxy.start(database.environment.DATABASE_URL!);
  });
  afterEach(async () => {
    proxy.mend();
    proxy.resume();
    await Promise.all(ended.map((end) => end()));
    ended = [];
  });
  afterAll(async () => {
    await proxy.close();
    await database.close();
  });

  /** An instance with its own connection, which ends with the test. */
  const instance = ({ url = '', intervalMs = NEVER_MS, patience = deadlines } = {}) => {
    const counts = postgresCounts(url || database.environment.DATABASE_URL!, patience);
    const add = jest.spyOn(counts, 'add');
    const log: string[] = [];
    const counter = new Counter(counts, {
      info: (message: unknown) => void log.push(String(message)),
      warn: (_: unknown, message?: string) => void log.push(message!),
    });
    let end: Promise<void> | undefined;
    const timer = setInterval(() => void counter.exchange(), intervalMs);
    ended.push(() => {
      clearInterval(timer);
      return (end ??= counter.end());
    });
    return { counter, counts, add, log, end: ended.at(-1)! };
  };
  const take = (counter: Counter, caller: string, quota: number, times: number) => {
    let admitted = 0;
    for (let i = 0; i < times; i++) if (counter.take('read', caller, quota).admitted) admitted++;
    return admitted;
  };
  /** The caller's count in the store. */
  const sum = async (caller: string) => {
    const window = Math.floor(Date.now() / 60_000);
    const key = `${window}:read:${caller}`;
    return (await instance().counts.add(window, new Map([[key, 0]]))).get(key);
  };

  it('admit all requests up to the quota, and at most the requests of one interval above it', async () => {
    const counters = [0, 1, 2].map(() => instance().counter);
    let exceeded = 0;
    const round = fc.record({
      order: fc.shuffledSubarray([0, 1, 2], { minLength: 3 }),
      calls: fc.array(fc.nat(12), { minLength: 3, maxLength: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.array(round, { minLength: 1, maxLength: 8 }),
        (quota, rounds) =>
          inOneWindow(async () => {
            const caller = randomUUID();
            const most = [0, 0, 0];
            let admitted = 0;
            let arrived = 0;
            // Each instance exchanges its counts once per round, after its requests of that round.
            for (const { order, calls } of rounds) {
              for (const on of order) {
                arrived += calls[on]!;
                most[on] = Math.max(most[on]!, calls[on]!);
                admitted += take(counters[on]!, caller, quota, calls[on]!);
                await counters[on]!.exchange();
              }
            }
            expect(admitted).toBeGreaterThanOrEqual(Math.min(quota, arrived));
            expect(admitted).toBeLessThanOrEqual(quota + Math.max(0, most[0]! + most[1]! + most[2]! - 1));
            expect(await sum(caller)).toBe(admitted);
            if (admitted > quota) exceeded++;
          })(),
      ),
      { numRuns: 60 },
    );
    expect(exceeded).toBeGreaterThan(0);
  });

  itInOneWindow('are sent in one statement, once more, and then only after admitted requests', async () => {
    const { counter, add } = instance();
    const callers = Array.from({ length: 1_000 }, () => randomUUID());
    for (const caller of callers) take(counter, caller, 3, 2);
    await counter.exchange();
    await counter.exchange();
    const exchanged = [
      [1_000, 2],
      [1_000, 0],
    ];
    const sent = () => add.mock.calls.map(([, calls]) => [calls.size, ...new Set(calls.values())]);
    expect(sent()).toEqual(exchanged);
    await counter.exchange();
    for (const caller of callers) take(counter, caller, 2, 5);
    await counter.exchange();
    expect(sent()).toEqual(exchanged);
  });

  it.each([
    ['first', [0, 1]],
    ['last', [1, 0]],
  ])(
    'reach an instance within two intervals, without new requests, if it exchanges its counts %s',
    inOneWindow(async (_, order) => {
      const counters = [instance().counter, instance().counter];
      const caller = randomUUID();
      expect([take(counters[0]!, caller, 30, 21), take(counters[1]!, caller, 30, 30)]).toEqual([21, 30]);
      for (const on of [...order, ...order]) await counters[on]!.exchange();
      expect(counters.map((counter) => take(counter, caller, 30, 51))).toEqual([0, 0]);
    }),
  );

  itInOneWindow('are exact on one instance, even if the store loses the counts', async () => {
    const { counter } = instance();
    const caller = randomUUID();
    let admitted = take(counter, caller, 30, 10);
    await counter.exchange();
    await database.dataSource.query('TRUNCATE rate_limit_counts');
    for (let i = 0; i < 5; i++) {
      admitted += take(counter, caller, 30, 5);
      await counter.exchange();
    }
    expect(admitted).toBe(30);
  });

  it('are exchanged periodically, and once more when an instance ends', async () => {
    const [early, late] = [randomUUID(), randomUUID()];
    const quick = instance({ intervalMs: 10 });
    await eventually(async () => {
      take(quick.counter, early, 1_000, 1);
      return (await sum(early))! > 0 || undefined;
    });
    await inOneWindow(async () => {
      const { counter, end } = instance();
      take(counter, late, 10, 3);
      await end();
      expect(await sum(late)).toBe(3);
    })();
  });

  itInOneWindow('are local while the store is unavailable, logged once, and sent afterwards', async () => {
    proxy.mend(); // if this is the second attempt
    const { counter, log } = instance({ url: proxy.url });
    const caller = randomUUID();
    expect(take(counter, caller, 40, 10)).toBe(10);
    await counter.exchange();
    proxy.cut();
    for (let i = 0; i < 3; i++) {
      expect(take(counter, caller, 40, 5)).toBe(5);
      await counter.exchange();
    }
    expect([counter.alone, log]).toEqual([
      true,
      ['rate limits are not shared: this instance counts only its own requests'],
    ]);
    expect(await sum(caller)).toBe(10);
    expect(take(counter, caller, 40, 20)).toBe(15);
    proxy.mend();
    await eventually(async () => {
      await counter.exchange();
      return !counter.alone || undefined;
    });
    expect(log.slice(1)).toEqual(['rate limits are shared again']);
    expect(await sum(caller)).toBeGreaterThanOrEqual(40); // more if the store counted an exchange whose response was lost
  });

  itInOneWindow('never delay requests if the store does not respond', async () => {
    proxy.resume(); // if this is the second attempt
    const { counter } = instance({ url: proxy.url, patience: { ...deadlines, lock: 50 } });
    take(counter, randomUUID(), 1, 1);
    await counter.exchange();
    expect(counter.alone).toBe(false);
    proxy.stall();
    take(counter, 'a', 30, 1);
    const exchanged = counter.exchange();
    expect(counter.take('read', 'a', 30)).toMatchObject({ admitted: true, left: 28 });
    await exchanged;
    expect(counter.alone).toBe(true);
  });
});

postgres.describe('rate limits on two servers', () => {
  const limits = { read: 30, write: 30, auth: 20 };
  let api: TestApi;
  let other: NestExpressApplication;
  const start = async (overrides: Partial<Config> = {}) => {
    api = await TestApi.start({ rateLimits: limits, rateLimitSyncMs: 20, trustProxy: 1, ...overrides });
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

  it('apply to both servers together, and the second server states the remainder of both', async () => {
    await start();
    await inOneWindow(async () => {
      const key = await api.key(await api.platform.user());
      for (let i = 0; i < 20; i++) expect((await get(api.app, key)).status).toBe(200);
      let asked = 0;
      const left = async () => Number(/;r=(\d+)/.exec((await get(other, key)).headers.ratelimit!)![1]);
      await eventually(async () => (await left()) === 30 - 20 - ++asked || undefined);
      while ((await get(other, key)).status === 200) expect(++asked).toBeLessThanOrEqual(10);
      await eventually(async () => (await get(api.app, key)).status === 429 || undefined);
    })();
  });

  it('apply to guessed credentials per address, but not to a valid credential from that address', async () => {
    await start();
    await inOneWindow(async () => {
      const address = freshAddress();
      for (let i = 0; i < 20; i++) expect((await get(api.app, 'pua_live_wrong', address)).status).toBe(401);
      expect((await get(api.app, 'pua_live_wrong', address)).status).toBe(429);
      let guesses = 0;
      await eventually(async () => {
        if ((await get(other, 'pua_live_wrong', address)).status === 429) return true;
        expect(++guesses).toBeLessThan(20);
        return undefined;
      });
      expect((await get(other, await api.key(await api.platform.user()), address)).status).toBe(200);
    })();
  });

  it('do not cause a 503 while the table of counts is locked', async () => {
    await start({ databaseDeadlines: { ...deadlines, lock: 300 } });
    const key = await api.key(await api.platform.user());
    const runner = await hold(api.dataSource, 'LOCK TABLE rate_limit_counts IN ACCESS EXCLUSIVE MODE');
    try {
      const { status, headers } = await get(api.app, key);
      expect([status, headers.ratelimit]).toEqual([200, expect.stringMatching(/^"read";r=29;/)]);
    } finally {
      await runner.rollback();
    }
  });
});
