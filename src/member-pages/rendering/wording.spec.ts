import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clip, fill, fillHtml, initialOf, isolated } from './wording.js';
import { costsAtMost } from '../../../test/support/timing.js';

describe('clip', () => {
  it('leaves an honest name as it is', () => {
    for (const name of ['Trailmix', 'Café Zoë', '旅の友', 'عداء', 'Pogo 🎈', 'Смена'])
      expect(clip(name, 60)).toBe(name);
  });

  it('leaves what is plain as it is, and only that', () => {
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

  it('cuts to a length in characters as readers count them', () => {
    expect(clip('abcdef', 6)).toBe('abcdef');
    expect(clip('abcdefg', 6)).toBe('abcde…');
    expect(clip('🇨🇭'.repeat(10), 4)).toBe('🇨🇭🇨🇭🇨🇭…');
  });

  it('leaves out what is not seen or turns the writing around', () => {
    expect(clip('pay\u202epal\u2066.example\u200b\ufeff', 60)).toBe('paypal.example');
    expect(clip('two\r\n\tlines\0', 60)).toBe('two lines');
    expect(clip('half \ud800', 60)).toBe('half \ufffd');
  });

  it('keeps a few marks of a character, not a tower of them', () => {
    expect(clip(`a${'\u0301'.repeat(500)}b`, 60).length).toBeLessThan(10);
    expect(clip('Ṩ̣', 60)).toBe('Ṩ̣');
  });

  it('takes no longer for a long text', async () => {
    // Walking through its prefixes takes minutes.
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
  ])('%s → %s', (name, initial) => expect(initialOf(name)).toBe(initial));
});

describe('a text that is filled in', () => {
  it('has what stands for its names, as it is', () => {
    expect(fill('Back to {place}, {place}', { place: '$& {other}' })).toBe('Back to $& {other}, $& {other}');
  });

  it('is HTML where that is wanted: the text is escaped, and a stranger’s name stands apart', () => {
    expect(fillHtml('a < b, {app}', { app: isolated('<b>"x"\u202e') })).toBe(
      'a &lt; b, <bdi>&lt;b&gt;&quot;x&quot;</bdi>',
    );
  });
});
