import { describe, expect, it } from '@jest/globals';
import { randomText } from './random.js';

describe('a random text', () => {
  it('has its length, characters of its alphabet alone, and each of them', () => {
    const text = randomText(2_000, 'abcdé');
    expect(text).toMatch(/^[abcdé]{2000}$/);
    expect(new Set(text).size).toBe(5); // one is missing once in 10^190 runs
  });

  it('is another each time', () => expect(randomText(30, 'ab01')).not.toBe(randomText(30, 'ab01')));
});
