import { describe, expect, it } from '@jest/globals';
import { contrastOf, mixed, readableOn } from './colors.js';

describe('colors', () => {
  it('have the contrast that WCAG defines', () => {
    expect(contrastOf('#ffffff', '#000000')).toBeCloseTo(21, 5);
    expect(contrastOf('#767676', '#ffffff')).toBeCloseTo(4.54, 2);
    expect(contrastOf('#ffffff', '#ffffff')).toBe(1);
  });

  it('are mixed channel by channel', () => {
    expect(mixed('#000000', '#ffffff', 0.5)).toBe('#808080');
    expect(mixed('#123456', '#ffffff', 0)).toBe('#123456');
  });

  it.each(['#1f55d8', '#000000', '#7a0019', '#005a2b'])(
    'become readable on a dark background: %s',
    (color) => {
      expect(contrastOf(readableOn(color, '#171b23', 4.5), '#171b23')).toBeGreaterThanOrEqual(4.5);
    },
  );
});
