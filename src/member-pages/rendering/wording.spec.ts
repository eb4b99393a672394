import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { browserOf, clip, fill, fillHtml, initialOf, isolated } from './wording.js';

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

  it('takes no longer for a long text', () => {
    const startedAt = performance.now();
    clip('a'.repeat(1_000_000), 60);
    expect(performance.now() - startedAt).toBeLessThan(5_000); // walking through its prefixes takes minutes
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

describe('browserOf', () => {
  const mozilla = 'Mozilla/5.0';
  const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  it.each([
    [`${mozilla} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`, 'Firefox on Linux'],
    [
      `${mozilla} (Windows NT 10.0; Win64; x64) ${webkit} Chrome/140.0 Safari/537.36 Edg/140.0`,
      'Edge on Windows',
    ],
    [`${mozilla} (Linux; Android 10; K) ${webkit} Chrome/140.0 Mobile Safari/537.36`, 'Chrome on Android'],
    [
      `${mozilla} (Macintosh; Intel Mac OS X 10_15_7) ${webkit} Version/18.5 Safari/605.1.15`,
      'Safari on Mac',
    ],
    [
      `${mozilla} (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${webkit} CriOS/140.0 Safari/604.1`,
      'Chrome on iPhone',
    ],
    ['curl/8.5.0', 'Unknown browser'],
    ['<script>alert(1)</script>', 'Unknown browser'],
    [null, 'Unknown browser'],
  ])('%s → %s', (userAgent, name) => {
    const { browser = 'Unknown browser', system } = browserOf(userAgent);
    expect(system === undefined ? browser : `${browser} on ${system}`).toBe(name);
  });
});
