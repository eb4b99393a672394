import { hash as argon2 } from '@node-rs/argon2';
import bcrypt from 'bcrypt';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { IMPORTED_KINDS, RefusalTime } from '../../src/accounts/passwords/refusal-time.js';
import {
  SignInThrottle,
  type Blocked,
  type ReservedAttempt,
  type Subject,
} from '../../src/accounts/sign-in/sign-in-throttle.js';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import type { Config } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { Database } from '../../src/database/database.js';
import { isUnavailable } from '../../src/database/postgres/unavailable.js';
import { Meter } from '../../src/runtime/meter.js';
import { withoutAudit } from '../support/audit.js';
import { atOnce, tally } from '../support/concurrent.js';
import {
  createTestDatabase,
  hold,
  postgres,
  testConfig,
  thorough,
  waitingForLock,
  type TestDatabase,
} from '../support/database.js';
import { Platform } from '../support/platform.js';
import { costsAtMost, eventually, PATIENCE_MS, timeIn, until } from '../support/timing.js';

const PASSWORD = 'correct horse battery';
const NO_LIMIT = 1_000_000;

interface Instance {
  readonly signIn: SignIn;
  readonly throttle: SignInThrottle;
  readonly database: Database;
}

describe('a sign-in', () => {
  let store: TestDatabase;
  let dataSource: DataSource;
  let platform: Platform;
  const instances: Instance[] = [];
  let passwordHash: string;
  let addresses = 0;

  /** Another instance over the same database. */
  async function instance(authLimit = NO_LIMIT, overrides: Partial<Config> = {}): Promise<Instance> {
    const rateLimits = { read: 0, write: 0, auth: authLimit };
    const config = testConfig(store.environment, { rateLimits, ...overrides });
    const database = new Database(await createDataSource(config, 'requests').initialize(), config);
    const throttle = new SignInThrottle(database, config);
    const signIn = new SignIn(database, throttle, new RefusalTime(database, config), config);
    const started = { database, throttle, signIn };
    instances.push(started);
    return started;
  }

  beforeAll(async () => {
    store = await createTestDatabase();
    dataSource = await createDataSource(testConfig(store.environment), 'maintenance').initialize();
    platform = new Platform(dataSource);
    passwordHash = await hashPassword(PASSWORD);
    await instance();
    await instance();
  });
  afterAll(async () => {
    await upgraded();
    for (const { database } of instances) if (database.dataSource.isInitialized) await database.end();
    await dataSource.destroy();
    await store.drop();
  });

  const ip = () => `198.51.100.${++addresses % 250}`;
  const attempt = (username: string, password = PASSWORD, at = instances[0]!) =>
    at.signIn.attempt({ username, password, ip: ip() });
  /** Resolves when all hash upgrades that a sign-in has started are stored. */
  const upgraded = () => instances[0]!.signIn.onApplicationShutdown();
  const guesses = (username: string, count: number) =>
    atOnce(count, (i) => attempt(username, `guess ${i}`, instances[i % 2]));
  const outcomes = (results: readonly object[]) =>
    tally(results.map((each) => ('reason' in each ? String(each.reason) : 'signed-in')));
  /** An attempt as the throttle sees it, without hashing a password. */
  const take = (name: string, at = instances[0]!, patience = PATIENCE_MS) =>
    at.throttle.take([{ kind: 'account', of: name }], timeIn(patience));
  /** @returns number of the `count` failures whose password was checked */
  const fail = async (name: string, count: number) => {
    let through = 0;
    for (let i = 0; i < count; i++) {
      const taken = await take(name);
      if ('settle' in taken) through++;
      if ('settle' in taken) await taken.settle('failed');
    }
    return through;
  };
  /** Ends windows, as waiting this many seconds would. */
  const pass = (seconds: number) =>
    dataSource.query(
      'UPDATE login_throttle SET window_ends_at = window_ends_at - make_interval(secs => $1)',
      [seconds],
    );
  const eventsOf = (userId: number) =>
    dataSource.query<{ type: string; details: Record<string, unknown>; ip: string }[]>(
      'SELECT type, details, host(ip) AS ip FROM auth_events WHERE user_id = $1 ORDER BY id',
      [userId],
    );
  const reasonsOf = async (userId: number) => (await eventsOf(userId)).map(({ details }) => details.reason);
  const storedHash = async (userId: number) => {
    const stored = 'SELECT username, password_hash, version FROM users WHERE id = $1';
    const [row] = await dataSource.query<[Record<'username' | 'password_hash', string>]>(stored, [userId]);
    return row;
  };

  describe('with a password', () => {
    it('succeeds with the name in another case, and is recorded', async () => {
      const userId = await platform.user({ username: 'Grace', password_hash: passwordHash });
      expect(await attempt('grace')).toMatchObject({ userId });
      expect(await eventsOf(userId)).toEqual([
        { type: 'sign_in.succeeded', details: { method: 'password' }, ip: expect.any(String) },
      ]);
    });

    it('succeeds together with its audit event, or not at all', async () => {
      const userId = await platform.user({ username: 'unrecorded', password_hash: passwordHash });
      const [{ begun }] = await dataSource.query<[{ begun: string }]>(
        'SELECT clock_timestamp()::text AS begun',
      );
      const refused = withoutAudit(dataSource, 'sign_in.succeeded', () => attempt('unrecorded'));
      await expect(refused).rejects.toThrow('the trail is full');
      const taken = await dataSource.query<object[]>(
        `SELECT FROM login_throttle, unnest(under_way) AS lease WHERE lease > $1::timestamptz + interval '30 s'`,
        [begun],
      );
      expect([await eventsOf(userId), taken.length]).toEqual([[], 2]);
      expect(await attempt('unrecorded')).toMatchObject({ userId });
    });

    it.each([
      ['bcrypt', () => bcrypt.hash(PASSWORD, 4)],
      ['argon2i', () => argon2(PASSWORD, { algorithm: 1 })],
      ['weak argon2id', () => argon2(PASSWORD, { memoryCost: 8192, timeCost: 1 })],
      ['earlier argon2id', () => argon2(PASSWORD, { memoryCost: 19_456, timeCost: 2 })],
    ])('replaces an imported %s hash the first time that it succeeds', async (_, imported) => {
      const userId = await platform.user({ password_hash: await imported() });
      const before = await storedHash(userId);
      expect(await attempt(before.username, 'wrong')).toEqual({ reason: 'invalid' });
      expect(await storedHash(userId)).toEqual(before);
      expect(await attempt(before.username)).toMatchObject({ userId });
      await upgraded();
      const after = await storedHash(userId);
      const password_hash = expect.stringMatching(/^\$argon2id\$v=19\$m=12288,t=3,p=1\$/);
      expect(after).toEqual({ ...before, password_hash });
      expect(await attempt(before.username)).toMatchObject({ userId });
      await upgraded();
      expect(await storedHash(userId)).toEqual(after);
    });

    postgres.it(
      'does not wait for the new hash, which never undoes a concurrent password change',
      async () => {
        const before = await bcrypt.hash(PASSWORD, 4);
        const userId = await platform.user({ username: 'beside', password_hash: before });
        const admin = await hold(dataSource, 'SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [userId]);
        expect(await attempt('beside')).toMatchObject({ userId });
        await waitingForLock(dataSource, 'UPDATE users SET password_hash'); // the old hash was valid, and the new one is about to be stored
        await admin.query('UPDATE users SET password_hash = $2 WHERE id = $1', [userId, passwordHash]);
        await admin.commit();
        await upgraded();
        expect((await storedHash(userId)).password_hash).toBe(passwordHash);
      },
    );

    it('accepts an imported password shorter than the minimum, and replaces its hash', async () => {
      const userId = await platform.user({ username: 'short', password_hash: await bcrypt.hash('abc', 4) });
      expect(await attempt('short', 'abc')).toMatchObject({ userId });
      await upgraded();
      expect((await storedHash(userId)).password_hash).toMatch(/^\$argon2id\$/);
    });
  });

  describe('that is rejected', () => {
    it('gets the same response for every reason, and a member’s audit log names the reason', async () => {
      const wrong = await platform.user({ username: 'wrong', password_hash: passwordHash });
      const none = await platform.user({ username: 'none' });
      const disabled = await platform.user({
        username: 'disabled',
        password_hash: passwordHash,
        disabled_at: '2026-01-01T00:00:00Z',
      });
      const broken = await platform.user({ username: 'broken', password_hash: 'no hash' });
      const tries: [username: string, password: string][] = [
        ['nobody', PASSWORD],
        ['wrong', 'wrong'],
        ['none', ''],
        ['disabled', PASSWORD],
        ['broken', 'no hash'],
        ['wrong\0', PASSWORD],
        ['\ud800', PASSWORD],
        ['x'.repeat(100_000), PASSWORD],
        ['wrong', `${PASSWORD}\0`],
        ['wrong', 'x'.repeat(100_000)],
        ['', ''],
      ];
      for (const result of await Promise.all(tries.map(([name, password]) => attempt(name, password))))
        expect(result).toEqual({ reason: 'invalid' });
      for (const [userId, ...reasons] of [
        [wrong, 'wrong_password', 'wrong_password', 'wrong_password'],
        [none, 'no_password'],
        [disabled, 'disabled'],
        [broken, 'wrong_password'],
      ] as [number, ...string[]][])
        expect((await eventsOf(userId)).map(({ details }) => details)).toEqual(
          reasons.map((reason) => ({ method: 'password', reason })),
        );
      expect(await dataSource.query('SELECT FROM auth_events WHERE user_id IS NULL')).toEqual([]);
    });

    thorough.it('lasts at least half a second, for a known and an unknown name', async () => {
      await platform.user({ username: 'timed', password_hash: passwordHash });
      const as = await instance(NO_LIMIT, { shortestRefusal: 500 });
      for (const username of ['timed', 'not-timed']) {
        const startedAt = performance.now();
        await attempt(username, 'wrong', as);
        expect(performance.now() - startedAt).toBeGreaterThan(495);
      }
    });

    thorough.it(
      'costs at most twice as much processor time for a known name as for an unknown name',
      async () => {
        await platform.user({ username: 'weighed', password_hash: passwordHash });
        const as = (username: string) => () => attempt(username, 'wrong');
        expect(await costsAtMost(2, as('weighed'), as('not-weighed'))).toBe(true);
      },
    );
  });

  describe('that is throttled', () => {
    it('has the limit of 10 failures also for an unknown name, with one count for upper and lower case', async () => {
      const results = await Promise.all(
        ['ghost', 'GHOST', 'Ghost'].flatMap((name) => Array.from({ length: 7 }, () => attempt(name))),
      );
      expect(outcomes(results)).toEqual({ invalid: 10, throttled: 11 });
      const [first] = await guesses('ghost', 1);
      expect(first).toEqual({ reason: 'throttled', retryAfterSeconds: expect.any(Number) });
    });

    it('rejects the right password until the block expires', async () => {
      const userId = await platform.user({ username: 'owner', password_hash: passwordHash });
      await guesses('owner', 11);
      const blocked = await attempt('owner');
      expect(blocked).toEqual({ reason: 'throttled', retryAfterSeconds: expect.any(Number) });
      const { retryAfterSeconds } = blocked as { retryAfterSeconds: number };
      expect(retryAfterSeconds).toBeGreaterThan(50);
      expect(retryAfterSeconds).toBeLessThanOrEqual(60);
      await pass(60);
      expect(await attempt('owner')).toMatchObject({ userId });
    });

    thorough.it(
      'is blocked twice as long each time, up to a quarter of an hour, until the owner signs in',
      async () => {
        const block = async () => {
          await fail('doubled', 10);
          const { retryAfterSeconds } = (await take('doubled')) as Blocked;
          await pass(retryAfterSeconds);
          return retryAfterSeconds;
        };
        const seconds = [];
        for (let i = 0; i < 6; i++) seconds.push(await block());
        expect(seconds).toEqual([60, 120, 240, 480, 900, 900]);
        await ((await take('doubled')) as ReservedAttempt).settle('signed-in');
        expect(await block()).toBe(60);
      },
    );

    thorough.it('does not extend a block by further tries', async () => {
      await fail('patient', 11);
      await pass(40);
      await fail('patient', 5);
      await pass(20);
      expect(await fail('patient', 1)).toBe(1);
    });

    thorough.it(
      'is allowed 10 failures in 60 seconds; after a minute without a failure, the count starts again',
      async () => {
        await fail('slow', 9);
        await pass(30);
        expect(await fail('slow', 3)).toBe(1);
        await fail('slower', 9);
        await pass(61);
        expect(await fail('slower', 3)).toBe(3);
      },
    );

    thorough.it(
      'is limited by failures per IPv6 network over all accounts, without affecting other networks',
      async () => {
        const limited = await instance(5);
        const from = (address: string, username: string) =>
          limited.signIn.attempt({ username, password: 'guess', ip: address });
        const sprayed = await atOnce(8, (i) => from(`2001:db8:7::${i}`, `sprayed${i}`));
        expect(outcomes(sprayed)).toEqual({ invalid: 5, throttled: 3 });
        expect(await from('2001:db8:8::1', 'sprayed0')).toEqual({ reason: 'invalid' });
        await pass(60);
        expect(await from('2001:db8:7::1', 'sprayed0')).toEqual({ reason: 'invalid' });
      },
    );

    thorough.it('is limited by account, but not by address, if RATE_LIMIT_AUTH is 0', async () => {
      const { signIn } = await instance(0);
      const guess = { username: 'always', password: 'guess', ip: '192.0.2.1' };
      expect(outcomes(await atOnce(12, () => signIn.attempt(guess)))).toEqual({ invalid: 10, throttled: 2 });
    });
  });

  describe('among concurrent sign-ins', () => {
    beforeEach(() => dataSource.query('DELETE FROM login_throttle'));

    /** Slots of withdrawn attempts become free without a delay for others. */
    const becomesCounted = async (attempts: number, underWay: number) => {
      for (;;) {
        const [row] = await dataSource.query<{ attempts: number; under_way: number }[]>(
          `SELECT COALESCE(sum(attempts), 0)::int AS attempts, COALESCE(sum(cardinality(under_way)), 0)::int AS under_way
          FROM login_throttle`,
        );
        if (row!.attempts === attempts && row!.under_way === underWay) return;
      }
    };
    const takeAll = (name: string) => atOnce(10, () => take(name)) as Promise<ReservedAttempt[]>;

    thorough.it(
      'succeeds 24 times at once, from one address to one account, and counts no failure',
      async () => {
        const { signIn } = await instance(20);
        await platform.user({ username: 'crowd', password_hash: passwordHash });
        const sent = { username: 'crowd', password: PASSWORD, ip: '192.0.2.77' };
        expect(outcomes(await atOnce(24, () => signIn.attempt(sent)))).toEqual({ 'signed-in': 24 });
        await becomesCounted(0, 0);
      },
    );

    postgres.it('checks the password for only 10 of 200 guesses on two instances', async () => {
      const userId = await platform.user({ username: 'besieged', password_hash: passwordHash });
      expect(outcomes(await guesses('besieged', 200))).toEqual({ invalid: 10, throttled: 190 });
      const reasons = (await reasonsOf(userId)) as string[];
      expect(tally(reasons)).toEqual({ account_blocked: 1, wrong_password: 10 });
    });

    postgres.it(
      'reserves its account and address without a deadlock, and a success counts as no failure',
      async () => {
        const subjects: Subject[] = [
          { kind: 'address', of: '192.0.2.1' },
          { kind: 'account', of: 'crossed' },
        ];
        for (let round = 0; round < 20; round++) {
          const places = await atOnce(10, (i) => instances[i % 2]!.throttle.take(subjects, timeIn(60_000)));
          await Promise.all(places.map((place) => (place as ReservedAttempt).settle('signed-in')));
        }
        expect(await fail('crossed', 11)).toBe(10);
      },
    );

    thorough.it('frees its slot, even when several sign-ins end at the same moment', async () => {
      for (let round = 0; round < 20; round++) {
        await Promise.all((await takeAll(`crowded-${round}`)).map((place) => place.settle('signed-in')));
      }
      expect(
        await dataSource.query('SELECT FROM login_throttle WHERE attempts <> 0 OR under_way <> $1', ['{}']),
      ).toEqual([]);
    });

    thorough.it('waits for a slot that another instance frees', async () => {
      const places = await takeAll('waited-for');
      const waiting = take('waited-for', instances[1]);
      const next = take('waited-for', instances[1]);
      await places[3]!.settle('signed-in');
      expect(await Promise.race([waiting, next])).toHaveProperty('settle');
      places[4]!.withdraw();
      for (const taken of await Promise.all([waiting, next])) expect(taken).toHaveProperty('settle');
    });

    thorough.it('is blocked as soon as 10 earlier sign-ins have failed', async () => {
      const places = await takeAll('watched');
      const waiting = [take('watched', instances[1]), take('watched', instances[1]), take('watched')];
      for (const place of places) await place.settle('failed');
      const results = (await Promise.all(waiting)) as Blocked[];
      expect(results.map(({ retryAfterSeconds }) => retryAfterSeconds > 50)).toEqual([true, true, true]);
      expect(results.filter(({ first }) => first)).toHaveLength(1);
    });

    it('gets a busy response if no slot becomes free in time, which does not count as a failure', async () => {
      const hasty = await instance(NO_LIMIT, { signInPatience: 100 });
      const userId = await platform.user({ username: 'queued', password_hash: passwordHash });
      const places = await takeAll('queued');
      expect(await attempt('queued', PASSWORD, hasty)).toEqual({ reason: 'busy', retryAfterSeconds: 2 });
      await becomesCounted(10, 10);
      for (const place of places) place.withdraw();
      await becomesCounted(0, 0);
      expect(await attempt('queued', PASSWORD, hasty)).toMatchObject({ userId });
    });

    thorough.it('counts as failed and frees its slot if it has not ended within 30 seconds', async () => {
      const abandoned = (await takeAll('orphaned'))[0]!;
      await dataSource.query(
        `UPDATE login_throttle SET under_way = ARRAY(SELECT lease - interval '30 s' FROM unnest(under_way) AS lease)`,
      );
      expect(await take('orphaned')).toMatchObject({ first: true });
      await abandoned.settle('signed-in');
      expect(await take('orphaned')).toMatchObject({ first: false });
      await pass(60);
      expect(await fail('orphaned', 11)).toBe(10);
    });

    thorough.it('keeps counted failures despite concurrent successes', async () => {
      const place = (await take('mixed')) as ReservedAttempt;
      await fail('mixed', 9);
      await place.settle('signed-in');
      expect(await fail('mixed', 2)).toBe(1);
    });

    thorough.it('counts as failed in the minute of its end', async () => {
      const place = (await take('late')) as ReservedAttempt;
      await fail('late', 5);
      await pass(61);
      await place.settle('failed');
      expect(await fail('late', 10)).toBe(9);
    });

    thorough.it('is served before waiting guesses from addresses that have failed before', async () => {
      const { database, throttle } = await instance(20);
      const config = testConfig(store.environment, { signInPatience: 60_000 });
      const meter = new Meter();
      const signIn = new SignIn(database, throttle, new RefusalTime(database, config), config, meter);
      const areWaiting = (count: number) =>
        until(async () => (await meter.readings('password_hashing_queue'))![1]![1] === count);
      const names = ['guessed-0', 'guessed-1', 'guessed-2', 'guessed-3'];
      const imported = await bcrypt.hash(PASSWORD, 4);
      for (const username of [...names, 'newcomer'])
        await platform.user({ username, password_hash: imported });
      const guess = (username: string, i: number) =>
        signIn.attempt({ username, password: 'guess', ip: `203.0.113.${i}` });
      await Promise.all(names.map((name, i) => guess(`no-${name}`, i)));
      // The first two checks last until the newcomer waits.
      const checked: unknown[] = [];
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const compare = jest.spyOn(bcrypt, 'compare').mockImplementation(async (password) => {
        checked.push(password);
        await begun;
        return password === PASSWORD;
      });
      try {
        const guesses = Promise.all(names.map(guess));
        await areWaiting(2);
        const newcomer = signIn.attempt({ username: 'newcomer', password: PASSWORD, ip: '203.0.113.200' });
        await areWaiting(3);
        begin();
        expect(await newcomer).toMatchObject({ userId: expect.any(Number) });
        await guesses;
      } finally {
        compare.mockRestore();
      }
      expect(checked).toEqual(['guess', 'guess', PASSWORD, 'guess', 'guess']);
      await signIn.onApplicationShutdown();
    });

    postgres.it('succeeds or gets a busy response if 150 sign-ins run at once', async () => {
      const busy = await instance(NO_LIMIT, { signInPatience: 2_000 });
      for (let i = 0; i < 150; i++)
        await platform.user({ username: `rush-${i}`, password_hash: passwordHash });
      const results = await atOnce(150, (i) => attempt(`rush-${i}`, PASSWORD, busy));
      const { 'signed-in': served = 0, busy: refused = 0 } = outcomes(results);
      expect([served + refused, served > 0]).toEqual([150, true]);
      await becomesCounted(0, 0);
    });
  });

  describe('from a known browser', () => {
    const own = (username: string, password = PASSWORD, at = instances[0]!, device = 'own browser') =>
      at.signIn.attempt({ username, password, ip: '192.0.2.200', deviceOf: () => device });

    thorough.it('succeeds on both instances despite 200 guesses by attackers', async () => {
      const userId = await platform.user({ username: 'wanted', password_hash: passwordHash });
      const attack = [await guesses('wanted', 100), await guesses('wanted', 100)].flat();
      expect(outcomes(attack)).toEqual({ invalid: 10, throttled: 190 });
      expect(await attempt('wanted')).toMatchObject({ reason: 'throttled' });
      for (const at of instances.slice(0, 2))
        expect(await own('wanted', PASSWORD, at)).toMatchObject({ userId });
      expect(await attempt('wanted')).toMatchObject({ reason: 'throttled' });
    });

    thorough.it('succeeds even if its address is blocked', async () => {
      const limited = await instance(3);
      const userId = await platform.user({ username: 'neighbour', password_hash: passwordHash });
      for (let i = 0; i < 4; i++)
        await limited.signIn.attempt({ username: `x${i}`, password: 'guess', ip: '192.0.2.200' });
      const stranger = { username: 'neighbour', password: PASSWORD, ip: '192.0.2.200' };
      expect(await limited.signIn.attempt(stranger)).toMatchObject({ reason: 'throttled' });
      expect(await own('neighbour', PASSWORD, limited)).toMatchObject({ userId });
    });

    thorough.it(
      'is blocked after 10 failures, which block no other browser, and the audit log shows the block once',
      async () => {
        const userId = await platform.user({ username: 'robbed', password_hash: passwordHash });
        const thief = await atOnce(30, (i) => own('robbed', `guess ${i}`, instances[i % 2], 'stolen'));
        expect(outcomes(thief)).toEqual({ invalid: 10, throttled: 20 });
        expect(await own('robbed', PASSWORD, instances[0], 'stolen')).toMatchObject({ reason: 'throttled' });
        expect(await attempt('robbed')).toMatchObject({ userId });
        expect(await own('robbed')).toMatchObject({ userId });
        expect((await reasonsOf(userId)).filter((reason) => reason === 'device_blocked')).toHaveLength(1);
      },
    );

    it('with an unknown name does not read the device cookie', async () => {
      const asked: number[] = [];
      const deviceOf = (userId: number) => void asked.push(userId);
      const nobody = { username: 'nobody-here', password: 'guess', ip: ip(), deviceOf };
      expect(await instances[0]!.signIn.attempt(nobody)).toEqual({ reason: 'invalid' });
      expect(asked).toEqual([]);
    });
  });

  describe('that is rejected, with imported hashes in the database,', () => {
    /** Each kind of hash has its own duration; the password changes in NFKC, so the server checks both forms. */
    const TWO_FORMS = 'ﬁne but wrong';

    postgres.it(
      'takes about equally long for an unknown name, a wrong password and a disabled account',
      async () => {
        const password_hash = await bcrypt.hash(PASSWORD, 11);
        const at = await instance();
        let tries = 0;
        /** Ratio of the slowest kind's time to the fastest, by the medians of three. New members: an account has ten attempts. */
        const ratio = async () => {
          const name = `time${++tries}`;
          await platform.user({ username: `${name}-bcrypt`, password_hash });
          const disabled_at = '2026-01-01T00:00:00Z';
          await platform.user({ username: `${name}-disabled`, password_hash, disabled_at });
          const times = new Map<string, number[]>();
          for (let round = 0; round < 3; round++) {
            for (const kind of ['unknown', 'bcrypt', 'disabled']) {
              const startedAt = performance.now();
              expect(await attempt(`${name}-${kind}`, TWO_FORMS, at)).toEqual({ reason: 'invalid' });
              times.set(
                kind,
                [...(times.get(kind) ?? []), performance.now() - startedAt].sort((one, other) => one - other),
              );
            }
          }
          const medians = [...times.values()].map(([, median]) => median!);
          return Math.max(...medians) / Math.min(...medians);
        };
        // Other load slows one kind or another at random; a fault would show each time.
        expect(await eventually(async () => (await ratio()) < 1.4 || undefined, 300_000)).toBe(true);
      },
    );

    postgres.it(
      'lasts at least as long as the most expensive imported hash needs, and less once that hash is deleted',
      async () => {
        const config = testConfig(store.environment, { shortestRefusal: 500 });
        const refusal = async () => {
          const time = new RefusalTime(instances[0]!.database, config);
          await time.waitFrom(Number.NEGATIVE_INFINITY); // only measures, and does not wait
          const startedAt = performance.now();
          await time.waitFrom(startedAt);
          return performance.now() - startedAt;
        };
        await dataSource.query('UPDATE users SET password_hash = NULL WHERE password_hash NOT LIKE $1', [
          '$argon2id$v=19$m=12288,t=3,p=1$%',
        ]);
        const hash = await bcrypt.hash(PASSWORD, 13);
        let milliseconds = Infinity; // other work of this process also counts, but not in each round
        for (let run = 0; run < 3; run++) {
          const startedAt = process.cpuUsage();
          await bcrypt.compare('wrong', hash);
          milliseconds = Math.min(milliseconds, process.cpuUsage(startedAt).user / 1000);
        }
        expect(await refusal()).toBeGreaterThan(495);
        const userId = await platform.user({ username: 'dearest', password_hash: hash });
        expect(await refusal()).toBeGreaterThan(milliseconds * 2.5);
        await dataSource.query('UPDATE users SET password_hash = NULL WHERE id = $1', [userId]);
        // A busy host may end the wait late, but not each time.
        expect(await eventually(async () => (await refusal()) < milliseconds * 2 || undefined)).toBe(true);
      },
    );

    it('does not wait for hashes that are invalid or too expensive', async () => {
      for (const hash of ['no hash', `$2b$31$${'a'.repeat(53)}`, '$argon2id$v=19$m=9999999,t=99,p=1$x$y'])
        await platform.user({ password_hash: hash });
      const time = new RefusalTime(instances[0]!.database, testConfig(store.environment));
      await expect(time.waitFrom(timeIn(0))).resolves.toBeUndefined(); // $2b$31 takes a day
    });

    postgres.it('finds the kinds of hashes by an index', async () => {
      await dataSource.query('SET enable_seqscan = off');
      const [row] = await dataSource.query<{ 'QUERY PLAN': object[] }[]>(
        `EXPLAIN (FORMAT json) ${IMPORTED_KINDS}`,
      );
      await dataSource.query('RESET enable_seqscan');
      expect(JSON.stringify(row)).not.toContain('"Seq Scan"');
      expect(JSON.stringify(row)).toContain('users_imported_hash_kind_idx');
    });
  });

  it('fails as unavailable if the database connection is closed', async () => {
    await platform.user({ username: 'early', password_hash: passwordHash });
    const cutOff = await instance();
    await cutOff.database.end();
    const failure: unknown = await attempt('early', PASSWORD, cutOff).catch((error: unknown) => error);
    expect(isUnavailable(failure)).toBe(true);
  });
});
