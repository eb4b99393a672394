import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clip, fill, fillHtml, initialOf, isolated } from './wording.js';
import { costsAtMost } from '../../../test/support/timing.js';

describe('clip', () => {
  it('keeps an ordinary name', () => {
    for (const name of ['Trailmix', 'Café Zoë', '旅の友', 'عداء', 'Pogo 🎈', 'Смена'])
      expect(clip(name, 60)).toBe(name);
  });

  it('returns for ASCII text the same result as its slower path for other text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '~', '!', ' ', '\t', '\x7f', 'é'), maxLength: 9 }),
        (text) => {
          // A leading character that is not plain forces the slow path.
          const longWay = clip(`é${text.replace(/^[\s\p{Cc}]+/u, '')}`, 7).slice(1);
          expect(clip(text, 6)).toBe(longWay);
        },
      ),
    );
  });

  it('cuts to a length in visible characters', () => {
    expect(clip('abcdef', 6)).toBe('abcdef');
    expect(clip('abcdefg', 6)).toBe('abcde…');
    expect(clip('🇨🇭'.repeat(10), 4)).toBe('🇨🇭🇨🇭🇨🇭…');
  });

  it('removes or replaces invisible, direction-changing and invalid characters', () => {
    expect(clip('pay\u202epal\u2066.example\u200b\ufeff', 60)).toBe('paypal.example');
    expect(clip('two\r\n\tlines\0', 60)).toBe('two lines');
    expect(clip('half \ud800', 60)).toBe('half \ufffd');
  });

  it('keeps only a few combining marks per character', () => {
    expect(clip(`a${'\u0301'.repeat(500)}b`, 60).length).toBeLessThan(10);
    expect(clip('Ṩ̣', 60)).toBe('Ṩ̣');
  });

  it('needs time at most in proportion to the length of a text', async () => {
    // Checking every prefix of the text would take minutes.
    expect(
      await costsAtMost(
        100,
        () => clip('a'.repeat(1_000_000), 60),
        () => clip('a'.repeat(10_000), 60),
      ),
    ).toBe(true);
  });
});

describe('initialOf', () => {
  it.each([
    ['trailmix', 'T'],
    ['  “élan”', 'É'],
    ['旅の友', '旅'],
    ['<script>', 'S'],
    ['!?', '?'],
    ['', '?'],
  ])('returns for %j the initial %j', (name, initial) => expect(initialOf(name)).toBe(initial));
});

describe('a text with placeholders', () => {
  it('inserts the values literally', () => {
    expect(fill('Back to {place}, {place}', { place: '$& {other}' })).toBe('Back to $& {other}, $& {other}');
  });

  it('escapes the text for HTML, and isolates an untrusted name', () => {
    expect(fillHtml('a < b, {app}', { app: isolated('<b>"x"\u202e') })).toBe(
      'a &lt; b, <bdi>&lt;b&gt;&quot;x&quot;</bdi>',
    );
  });
});
