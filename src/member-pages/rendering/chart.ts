/** Patterns of 8 × 8 pixels (path data), which distinguish series without color. */
export const PATTERNS: readonly string[] = [
  'M0 0h8v8H0z',
  'M0 0h8v4H0z',
  'M0 0h4v4H0zM4 4h4v4H4z',
  'M0 0h8v1H0zM0 4h8v1H0z',
  'M0 0h2v2H0zM4 4h2v2H4z',
  'M0 0h2v8H0zM4 0h2v8H4z',
];

const GAP = 0.15;

/** Computes a stacked bar chart in percentages, the first series at the bottom. @returns bars by series, lines from the top, labels, sums */
export function drawn({ series }: { readonly series: readonly { readonly counts: readonly number[] }[] }) {
  const times = series[0]?.counts.length ?? 0;
  const sums = Array.from({ length: times }, (_, i) =>
    series.reduce((sum, { counts }) => sum + counts[i]!, 0),
  );
  const top = topOf(Math.max(0, ...sums));
  const reached = sums.map(() => 0);
  const bars = series.map(({ counts }) =>
    counts.flatMap((count, i) => {
      if (count === 0) return [];
      reached[i]! += count;
      return {
        x: percent((i + GAP / 2) / times),
        y: percent(1 - reached[i]! / top),
        width: percent((1 - GAP) / times),
        height: percent(count / top),
      };
    }),
  );
  const lines = [top, top / 2, 0].map((value) => ({ value, y: percent(1 - value / top) }));
  const labels = [0, 1, 2, 3].map((third) => {
    const index = Math.round((third * (times - 1)) / 3);
    return { index, x: percent((index + 0.5) / times) };
  });
  return { bars, lines, labels, sums };
}

/** Returns the axis's maximum: an even number, so that half of it is a whole number. */
function topOf(most: number): number {
  const power = 10 ** Math.max(0, Math.ceil(Math.log10(Math.max(1, most))) - 1);
  return [2, 4, 6, 10, 20].map((step) => step * power).find((step) => step >= most)!;
}

function percent(part: number): string {
  return `${Number((100 * part).toFixed(2))}%`;
}
