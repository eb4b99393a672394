import { describe, expect, it } from '@jest/globals';
import { lazily } from './lazily.js';

describe('lazily', () => {
  it('makes a value once, for callers at the same time too, and not before it is asked for', async () => {
    let made = 0;
    const value = lazily(async () => ({ number: ++made }));
    expect(made).toBe(0);
    const [one, other] = await Promise.all([value(), value()]);
    expect(one).toBe(other);
    expect(await value()).toBe(one);
    expect(made).toBe(1);
  });

  it('keeps no failure', async () => {
    let tried = 0;
    const value = lazily(async () => {
      if (++tried === 1) throw new Error('too many open files');
      return 'made';
    });
    await expect(Promise.all([value(), value()])).rejects.toThrow('too many open files');
    expect(await value()).toBe('made');
    expect(tried).toBe(2);
  });
});
