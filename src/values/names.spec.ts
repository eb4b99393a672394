import { describe, expect, it } from '@jest/globals';
import { asShown, isName, isUsername } from './string-rules.js';

/** Each of these names is displayed like `ann`. */
const LOOK_ALIKES = [
  'ann\u200b', // zero-width space
  'a\u200dnn', // zero-width joiner
  '\u202eann\u202c', // writing from right to left
  'ann\u2069',
  'ann\ufeff',
  'a\u00adnn', // soft hyphen
  'ann\u009b', // control sequence introducer
  'ann\u3164', // Hangul filler
  'a\u034fnn', // combining grapheme joiner
  'ann\ufe0f', // variation selector
  'ann\u{e0041}', // tag
  'ann\u2800', // blank pattern of Braille
  ' ann',
  'ann\u00a0',
];

describe('isName', () => {
  it.each(LOOK_ALIKES.map((name) => [name]))('rejects %j, which looks like another name', (name) => {
    expect(isName(name)).toBe(false);
    expect(isUsername(name)).toBe(false);
    expect(asShown(name)).toBe('ann');
  });

  it.each(
    ['', ' ', '\u200b', '\ud800', 'two\nlines', 'two  spaces', 'Zoe\u0308', 'a\u2028b'].map((name) => [name]),
  )('rejects %j', (name) => expect(isName(name)).toBe(false));

  it.each([
    'Trailmix',
    'Café Zoë',
    '旅の友',
    'عداء',
    'Смена',
    'Ada’s calendar',
    'Acme™',
    'I ❤️ hiking',
    'श्री',
    '½ day',
  ])('accepts %s', (name) => expect(isName(name)).toBe(true));
});

describe('isUsername', () => {
  it.each(['ａｎｎ', 'ａnn', 'aﬁ', 'ann™', 'ann²', '𝐚𝐧𝐧', 'ann\u2126'])(
    'rejects %s, which differs in NFKC',
    (name) => expect(isUsername(name)).toBe(false),
  );

  it.each(['123', '0', 'erased-7', 'Erased-12'])('rejects the reserved name %s', (name) =>
    expect([isUsername(name), isName(name)]).toEqual([false, true]),
  );

  it.each(['ann', 'Ann.B-2_x', 'zoë', 'смена', '旅の友', 'ann smith', '@ann', '12a', 'erased-'])(
    'accepts %s',
    (name) => expect(isUsername(name)).toBe(true),
  );
});
