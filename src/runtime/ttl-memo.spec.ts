import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { TtlMemo } from './ttl-memo.js';

describe('a memo with a time to live', () => {
  let now = 0;
  beforeEach(() => void jest.spyOn(performance, 'now').mockImplementation(() => now));
  afterEach(() => void jest.restoreAllMocks());

  const counting = (maxAgeMs: number, look: () => Promise<number>) => {
    let looks = 0;
    const recent = new TtlMemo(maxAgeMs, async () => {
      looks++;
      return look();
    });
    return { recent, looks: () => looks };
  };

  it('loads a value once for concurrent and later callers', async () => {
    const { recent, looks } = counting(60_000, async () => turn(1));
    await Promise.all(Array.from({ length: 1_500 }, () => recent.find()));
    await recent.find();
    expect(looks()).toBe(1);
  });

  it('loads the value again when its time to live, counted from the end of the load, has passed', async () => {
    const { recent, looks } = counting(20, async () => (now += 40));
    await recent.find();
    await recent.find();
    expect(looks()).toBe(1);
    now += 19;
    await recent.find();
    expect(looks()).toBe(1);
    now += 1;
    await recent.find();
    expect(looks()).toBe(2);
  });

  it('stores a failure, which expires as well', async () => {
    let fails = true;
    const { recent, looks } = counting(500, async () => {
      if (fails) throw new Error('away');
      return 1;
    });
    await expect(recent.find()).rejects.toThrow('away');
    await expect(recent.find()).rejects.toThrow('away');
    expect(looks()).toBe(1);
    fails = false;
    now += 500;
    expect(await recent.find()).toBe(1);
  });
});
