/** Three values from 0 to 255. */
type Rgb = readonly [red: number, green: number, blue: number];

/** @param color `#rrggbb` */
function parseColor(color: string): Rgb {
  const bits = Number.parseInt(color.slice(1), 16);
  return [bits >> 16, (bits >> 8) & 0xff, bits & 0xff];
}

/** WCAG 2.2, “relative luminance”. */
function luminanceOf(color: string): number {
  const [red, green, blue] = parseColor(color).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Computes the contrast of two colors, from 1 to 21 (WCAG 2.2, “contrast ratio”): text of normal size needs at least 4.5. */
export function contrastOf(one: string, other: string): number {
  const [dark, light] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** Mixes two colors, each `#rrggbb`. @param share of the other color, 0 to 1 */
export function mixed(color: string, other: string, share: number): string {
  const [one, two] = [parseColor(color), parseColor(other)];
  const parts = one.map((value, index) => Math.round(value + (two[index]! - value) * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

/** Makes the color lighter or darker until its contrast with `ground` is at least `contrast`; returns black or white if none suffices. */
export function readableOn(color: string, ground: string, contrast: number): string {
  const towards = contrastOf(ground, '#ffffff') > contrastOf(ground, '#000000') ? '#ffffff' : '#000000';
  for (let share = 0; share < 1; share += 0.05) {
    const candidate = mixed(color, towards, share);
    if (contrastOf(candidate, ground) >= contrast) return candidate;
  }
  return towards;
}
