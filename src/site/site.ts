import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import { apiNameOf, Config } from '../config/config.js';
import { sha256 } from '../crypto/digests.js';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { paletteOf, PLATFORM_LOGO_PATH } from '../oauth/pages/pages.js';
import { escapeHtml, highlight } from './highlight.js';

const TEMPLATES = new URL('./templates/', import.meta.url);
const CLIENT = new URL('../../clients/typescript/src/sign-in.js', import.meta.url);

/** A template of this folder with what it shows. */
export interface SitePage {
  readonly template: 'front' | 'reference' | 'guide' | 'unknown';
  /** Of the window, before the name of the API; none: that name alone. */
  readonly title?: string;
  readonly content: object;
}

/**
 * The pages for strangers: one layout, one style sheet, one script, both inside the page and allowed by their hash alone. The script
 * copies, filters and tries calls; everything else works without it.
 */
@Injectable()
export class Site {
  readonly #eta = new Eta({ views: fileURLToPath(TEMPLATES), autoEscape: true, cache: true });
  readonly #style: string;
  readonly #script = scriptOf(
    readFileSync(CLIENT, 'utf8'),
    readFileSync(new URL('script.js', TEMPLATES), 'utf8'),
  );

  constructor(private readonly config: Config) {
    const { platformColor } = config;
    const style = readFileSync(new URL('style.css', TEMPLATES), 'utf8');
    this.#style = style + (platformColor === undefined ? '' : paletteOf(platformColor));
  }

  /** A page that stays the same while the process lives. */
  document(page: SitePage): UnchangingDocument {
    return new UnchangingDocument(this.render(page), this.headers);
  }

  render({ template, title, content }: SitePage): string {
    const { publicUrl, seedDemo, platformLogoUrl, supportUrl, privacyUrl } = this.config;
    return this.#eta.render(`./${template}`, {
      style: this.#style,
      script: this.#script,
      title,
      apiName: apiNameOf(this.config),
      logo: platformLogoUrl === undefined ? undefined : PLATFORM_LOGO_PATH,
      support: supportUrl,
      privacy: privacyUrl,
      publicUrl,
      demo: seedDemo,
      highlight,
      prose,
      ...content,
    });
  }

  /** Of every page: nothing is loaded from elsewhere, nothing is run but the one script, and no other site frames it. */
  get headers(): Readonly<Record<string, string>> {
    const policy = [
      "default-src 'none'",
      `style-src ${sourceOf(this.#style)}`,
      `script-src ${sourceOf(this.#script)}`,
      "connect-src 'self'",
      "img-src 'self'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ];
    return {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy.join('; '),
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-cache',
    };
  }
}

/** As a Content-Security-Policy names what stands inside a page. */
function sourceOf(text: string): string {
  return `'sha256-${sha256(text, 'base64')}'`;
}

/**
 * Our script with the sign-in of the client library in front of it: a page whose policy allows one script by its hash can import
 * nothing.
 */
function scriptOf(client: string, own: string): string {
  const inside = (module: string) =>
    module
      .replace(/^import .*\n/gm, '')
      .replace(/^export /gm, '')
      .replace(/^\/\/# sourceMappingURL=.*\n?/gm, '');
  const script = inside(client) + inside(own);
  if (/^\s*(import|export)\b/m.test(script) || script.includes('</script'))
    throw new Error('The script of the pages does not fit into a page');
  return script;
}

/** HTML of a description, which has `code` as Markdown does. */
function prose(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
