import { describe, expect, it } from '@jest/globals';
import { browserOf } from './sign-in-origin.js';

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
  ])('reads the User-Agent %s as %s', (userAgent, name) => {
    const { browser = 'Unknown browser', system } = browserOf(userAgent);
    expect(system === undefined ? browser : `${browser} on ${system}`).toBe(name);
  });

  it('ignores the end of a long User-Agent header', () => {
    expect(browserOf(`${'Version/1 '.repeat(100)}Safari/1 iPhone`)).toEqual({
      browser: undefined,
      system: undefined,
    });
  });
});
