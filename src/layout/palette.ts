import { mixed, readableOn } from '../values/colors.js';

/** Background colours of the style sheet: `--ground` in light, `--card` in dark. */
const [GROUND, DARK_CARD] = ['#f2f4f8', '#171b23'];

/** Overrides the style sheet's accent with the platform's colour, made light or dark enough to be readable (WCAG 2.2, 1.4.3). */
export function paletteOf(color: string): string {
  const light = readableOn(color, GROUND, 4.5);
  const dark = readableOn(color, DARK_CARD, 6);
  const variables = (accent: string, strong: string, on: string, tint: string) =>
    `--accent:${accent};--accent-strong:${strong};--on-accent:${on};--tint:${tint}`;
  return (
    `\n:root{${variables(light, mixed(light, '#000000', 0.2), '#ffffff', mixed(light, '#ffffff', 0.9))}}` +
    `\n@media (prefers-color-scheme: dark){:root{${variables(dark, mixed(dark, '#ffffff', 0.3), '#0b0f19', mixed(color, DARK_CARD, 0.8))}}}\n`
  );
}
