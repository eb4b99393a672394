import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import { Config } from '../config/config.js';
import { sha256 } from '../crypto/digests.js';
import { mixed, readableOn } from '../values/colors.js';

/** Default headers of members' pages and of OAuth responses; {@link Layout.render} replaces the Content-Security-Policy. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
};

/** An inline script or style sheet, and its source for the Content-Security-Policy. */
export class InlineText {
  readonly source: string;

  constructor(readonly text: string) {
    this.source = `'sha256-${sha256(text, 'base64')}'`;
  }
}

/** Reads a style sheet without its comments and indentation. */
const sheet = (name: string) =>
  readFileSync(new URL(name, import.meta.url), 'utf8').replace(/\/\*[^]*?\*\/|^\s+/gm, '');

/** Renders pages with inline styles and scripts, which the Content-Security-Policy allows by hash. */
@Injectable()
export class Layout {
  readonly #eta = new Eta({
    views: fileURLToPath(new URL('../', import.meta.url)),
    autoEscape: true,
    cache: true,
  });

  readonly #style: InlineText;
  readonly #siteStyle: InlineText;

  constructor({ platformColor }: Config) {
    const palette = platformColor === undefined ? '' : writePalette(platformColor);
    const style = sheet('style.css') + palette;
    this.#style = new InlineText(style);
    this.#siteStyle = new InlineText(style + sheet('site.css'));
  }

  /** @param template path below `src/`, without extension @param data also for `layout.eta` @param formAction CSP sources; undefined: any */
  render(
    template: string,
    data: { readonly language: string; readonly [name: string]: unknown },
    scripts: readonly InlineText[],
    formAction: string | undefined,
  ): { html: string; headers: Record<string, string> } {
    const style = template.startsWith('site/') ? this.#siteStyle : this.#style;
    const html = this.#eta.render(template, { ...data, style: style.text });
    const run = scripts.filter(({ text }) => html.includes(text)).map(({ source }) => source);
    const policy = [
      "default-src 'none'",
      `style-src ${style.source}`,
      ...(run.length > 0 ? [`script-src ${run.join(' ')}`, "connect-src 'self'"] : []),
      "img-src 'self'",
      ...(html.includes('rel="manifest"') ? ["manifest-src 'self'"] : []),
      ...(formAction === undefined ? [] : [`form-action ${formAction}`]),
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ];
    const headers = {
      ...SECURITY_HEADERS,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy.join('; '),
    };
    return { html, headers };
  }
}

/** Background colors of the style sheet: `--ground` in light mode, `--card` in dark mode. */
const [GROUND, DARK_CARD] = ['#f2f4f8', '#171b23'];

/** Returns CSS that replaces the accent colors with readable shades of the platform's color (WCAG 2.2, 1.4.3). */
export function writePalette(color: string): string {
  const light = readableOn(color, GROUND, 4.5);
  const dark = readableOn(color, DARK_CARD, 6);
  const variables = (accent: string, strong: string, on: string, tint: string) =>
    `--accent:${accent};--accent-strong:${strong};--on-accent:${on};--tint:${tint}`;
  return (
    `\n:root{${variables(light, mixed(light, '#000000', 0.2), '#ffffff', mixed(light, '#ffffff', 0.9))}}` +
    `\n@media (prefers-color-scheme: dark){:root{${variables(dark, mixed(dark, '#ffffff', 0.3), '#0b0f19', mixed(color, DARK_CARD, 0.8))}}}\n`
  );
}
