import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { CountStore } from './count-stores.js';
import { Counter } from './rate-limits.js';

/** The start of a minute. */
const BEGIN = Date.UTC(2030, 0, 1);

describe('the rate-limit counter of one instance', () => {
  let now: number;
  beforeEach(() => {
    now = BEGIN;
    jest.spyOn(Date, 'now').mockImplementation(() => now);
  });
  afterEach(() => void jest.restoreAllMocks());
  const counter = (store?: CountStore) =>
    new Counter(store, { info: () => undefined, warn: () => undefined });

  it('admits the quota, reports the remainder and the reset, and does not count rejected requests', () => {
    const limit = counter();
    now += 17_900;
    for (let left = 2; left >= 0; left--)
      expect(limit.take('read', 'a', 3)).toEqual({ admitted: true, left, resetSeconds: 43 });
    for (let i = 0; i < 10; i++)
      expect(limit.take('read', 'a', 3)).toEqual({ admitted: false, left: 0, resetSeconds: 43 });
    expect(limit.take('read', 'a', 4).admitted).toBe(true);
  });

  it('counts callers and limits separately', () => {
    const limit = counter();
    expect(limit.take('read', 'a', 1).admitted).toBe(true);
    expect(limit.take('read', 'b', 1).admitted).toBe(true);
    expect(limit.take('write', 'a', 1).admitted).toBe(true);
    expect(limit.take('read', 'a', 1).admitted).toBe(false);
  });

  it('starts again with each minute', () => {
    const limit = counter();
    expect(limit.take('read', 'a', 1)).toEqual({ admitted: true, left: 0, resetSeconds: 60 });
    now += 59_999;
    expect(limit.take('read', 'a', 1)).toEqual({ admitted: false, left: 0, resetSeconds: 1 });
    now += 1;
    expect(limit.take('read', 'a', 1)).toEqual({ admitted: true, left: 0, resetSeconds: 60 });
  });

  it('remembers 100,000 callers per limit, then forgets the oldest, but no caller of another limit', async () => {
    const sent: string[] = [];
    const store: CountStore = {
      add: (_, counts) => (sent.push(...counts.keys()), Promise.resolve(counts)),
      end: () => Promise.resolve(),
    };
    const limit = counter(store);
    limit.take('read', 'member', 1);
    limit.take('oauth_requests', 'first', 1);
    for (let i = 1; i < 100_000; i++) limit.take('oauth_requests', `address ${i}`, 1);
    expect(limit.take('oauth_requests', 'first', 1).admitted).toBe(false);
    limit.take('oauth_requests', 'one more', 1);
    expect(limit.take('oauth_requests', 'first', 1).admitted).toBe(true);
    expect(limit.take('read', 'member', 1).admitted).toBe(false);
    await limit.exchange();
    expect(sent.map((key) => key.split(':').slice(1).join(' '))).toEqual([
      'read member',
      'oauth_requests one more',
      'oauth_requests first',
    ]);
  });
});
