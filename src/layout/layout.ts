import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Injectable, Req } from '@nestjs/common';
import { Eta } from 'eta';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { Config } from '../config/config.js';
import { fingerprint, sha256 } from '../crypto/digests.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
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

/** A script inside a page, and the source by which a Content-Security-Policy allows it. */
export class InlineScript {
  readonly source: string;

  constructor(readonly text: string) {
    this.source = `'sha256-${sha256(text, 'base64')}'`;
  }
}

/** What a template gets; its layout, `layout.eta`, uses the rest of it. */
interface TemplateData {
  readonly language: string;
  readonly [name: string]: unknown;
}

/** Renders every page for browsers: one layout and one style sheet, nothing from elsewhere, and no script but inline ones known by their hash. */
@Injectable()
export class Layout {
  readonly #eta = new Eta({
    views: fileURLToPath(new URL('../', import.meta.url)),
    autoEscape: true,
    cache: true,
  });

  /** The style sheet in the platform's colour. */
  readonly style: string;
  /** Its address, which changes with it. */
  readonly styleAddress: string;

  constructor({ platformColor }: Config) {
    const style = readFileSync(new URL('./style.css', import.meta.url), 'utf8');
    this.style = style + (platformColor === undefined ? '' : paletteOf(platformColor));
    this.styleAddress = `/style.css?${fingerprint(this.style)}`;
  }

  /**
   * @param template path below `src/`, without its extension
   * @param scripts those that the template may contain
   * @param formTargets where forms and redirects after them may lead: sources as CSP writes them
   */
  render(
    template: string,
    data: TemplateData,
    scripts: readonly InlineScript[],
    formTargets: readonly string[],
  ): { html: string; headers: Record<string, string> } {
    const html = this.#eta.render(template, { ...data, style: this.styleAddress });
    const run = scripts.filter(({ text }) => html.includes(text)).map(({ source }) => source);
    const policy = [
      "default-src 'none'",
      "style-src 'self'",
      ...(run.length > 0 ? [`script-src ${run.join(' ')}`, "connect-src 'self'"] : []),
      "img-src 'self'",
      ...(html.includes('rel="manifest"') ? ["manifest-src 'self'"] : []),
      `form-action ${formTargets.length > 0 ? formTargets.join(' ') : "'none'"}`,
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

/** The style sheet of all pages, kept by browsers for a year, since its address changes with it. */
@Controller('style.css')
@Public()
@OutsideApi()
export class StyleController {
  readonly #current: UnchangingDocument;
  readonly #other: UnchangingDocument;

  constructor(private readonly layout: Layout) {
    const document = (cacheControl: string) =>
      new UnchangingDocument(layout.style, {
        'Content-Type': 'text/css; charset=utf-8',
        'X-Content-Type-Options': 'nosniff',
        'Cache-Control': cacheControl,
      });
    this.#current = document('public, max-age=31536000, immutable');
    this.#other = document('no-cache');
  }

  /** A page of another version of the server, as during an upgrade, gets this one's style sheet for that once. */
  @Get()
  style(@Req() request: Request): UnchangingDocument {
    return request.url === this.layout.styleAddress ? this.#current : this.#other;
  }
}
