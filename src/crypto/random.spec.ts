import { describe, expect, it } from '@jest/globals';
import { randomText } from './random.js';

describe('a random text', () => {
  it('has the requested length, and uses every character of its alphabet and no other', () => {
    const text = randomText(2_000, 'abcdé');
    expect(text).toMatch(/^[abcdé]{2000}$/);
    expect(new Set(text).size).toBe(5); // a character is missing once in 10^190 runs
  });

  it('differs each time', () => expect(randomText(30, 'ab01')).not.toBe(randomText(30, 'ab01')));
});
