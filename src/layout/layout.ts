import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import { Config } from '../config/config.js';
import { sha256 } from '../crypto/digests.js';
import { mixed, readableOn } from '../values/colors.js';

/** For every response to a browser, redirects and JSON too. {@link Layout.render} overrides some of them. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
};

/** A script or style sheet inside a page, and the source by which a Content-Security-Policy allows it. */
export class InlineText {
  readonly source: string;

  constructor(readonly text: string) {
    this.source = `'sha256-${sha256(text, 'base64')}'`;
  }
}

/** A style sheet of this folder, without its comments and indentation, a seventh of it. */
const sheet = (name: string) =>
  readFileSync(new URL(name, import.meta.url), 'utf8').replace(/\/\*[^]*?\*\/|^\s+/gm, '');

/** What a template gets; its layout, `layout.eta`, uses the rest of it. */
interface TemplateData {
  readonly language: string;
  readonly [name: string]: unknown;
}

/**
 * Renders every page for browsers: one layout, nothing from elsewhere, and no style sheet or script but inline ones known by their hash. A
 * browser that had to ask for a style sheet would show nothing for another round trip.
 */
@Injectable()
export class Layout {
  readonly #eta = new Eta({
    views: fileURLToPath(new URL('../', import.meta.url)),
    autoEscape: true,
    cache: true,
  });

  /** In the platform's colour: of all pages, and with what only the public ones have. */
  readonly #style: InlineText;
  readonly #siteStyle: InlineText;

  constructor({ platformColor }: Config) {
    const palette = platformColor === undefined ? '' : paletteOf(platformColor);
    const style = sheet('style.css') + palette;
    this.#style = new InlineText(style);
    this.#siteStyle = new InlineText(style + sheet('site.css'));
  }

  /**
   * @param template path below `src/`, without its extension
   * @param scripts those that the template may contain
   * @param formAction where forms and redirects after them may lead, as CSP writes it; undefined: anywhere
   */
  render(
    template: string,
    data: TemplateData,
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
