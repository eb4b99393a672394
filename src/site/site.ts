import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import { apiNameOf, Config } from '../config/config.js';
import { sha256 } from '../crypto/digests.js';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { paletteOf, PLATFORM_LOGO_PATH } from '../oauth/pages/pages.js';
import { escapeHtml } from '../values/html.js';
import { highlight } from './highlight.js';

const TEMPLATES = new URL('./templates/', import.meta.url);
const CLIENT = new URL('../../clients/typescript/src/sign-in.js', import.meta.url);

/** A template of this folder, with its data. */
export interface SitePage {
  readonly template: 'front' | 'reference' | 'guide' | 'unknown';
  /** Title of the window, before the API's name; without it, that name alone. */
  readonly title?: string;
  readonly content: object;
}

/**
 * Renders the public pages: one layout, one style sheet and one script, both inline and allowed only by their hashes. The script
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

  /** Renders a page that does not change while the process runs. */
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

  /** For all pages: nothing is loaded from elsewhere, only the one script runs, and no other site can frame them. */
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

/** The hash source by which a Content-Security-Policy allows inline content. */
function sourceOf(text: string): string {
  return `'sha256-${sha256(text, 'base64')}'`;
}

/**
 * Joins the client library's sign-in and the pages' script: a page whose policy allows one script by its hash cannot import
 * anything.
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

/** Converts a description to HTML, with `code` as in Markdown. */
function prose(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
