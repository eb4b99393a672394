import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { drawn } from './chart.js';

describe('a chart', () => {
  it('stacks the counts of each time in proportion to the axis', () => {
    const { bars, lines } = drawn({ series: [{ counts: [1, 0] }, { counts: [2, 4] }] });
    expect(lines.map(({ value, y }) => [value, y])).toEqual([
      [4, '0%'],
      [2, '50%'],
      [0, '100%'],
    ]);
    expect(bars.map((of) => of.map(({ y, height }) => [y, height]))).toEqual([
      [['75%', '25%']],
      [
        ['25%', '50%'],
        ['0%', '100%'],
      ],
    ]);
  });

  it.each([
    [0, 2],
    [2, 2],
    [3, 4],
    [5, 6],
    [7, 10],
    [11, 20],
    [61, 100],
    [128, 200],
    [1_001, 2_000],
  ])('with a maximum count of %d has an axis up to %d', (most, top) => {
    expect(drawn({ series: [{ counts: [most] }] }).lines[0]!.value).toBe(top);
  });

  it('stays within its bounds, and its axis has whole numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(10 ** 9), fc.nat(10 ** 9)), { minLength: 1 }), (counts) => {
        const series = [0, 1].map((of) => ({ counts: counts.map((both) => both[of]!) }));
        const { bars, lines } = drawn({ series });
        for (const { x, y, width, height } of bars.flat()) {
          const [left, up, wide, high] = [x, y, width, height].map(parseFloat) as [
            number,
            number,
            number,
            number,
          ];
          expect(Math.min(left, up)).toBeGreaterThanOrEqual(0);
          expect(Math.max(left + wide, up + high)).toBeLessThan(100.02);
        }
        expect(lines.every(({ value }) => Number.isInteger(value))).toBe(true);
      }),
    );
  });

  it('has no bars without series', () => {
    expect(drawn({ series: [] }).bars).toEqual([]);
  });
});
