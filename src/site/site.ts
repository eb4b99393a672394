import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { apiNameOf, Config } from '../config/config.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { themeOf } from '../layout/icons.js';
import { InlineText, Layout } from '../layout/layout.js';
import { PLATFORM_LOGO_PATH } from '../member-pages/rendering/logos.controller.js';
import { escapeHtml } from '../values/string-rules.js';
import { highlight } from './highlight.js';

/** Modules of the pages' script, in order; the first is the client library's sign-in. */
const MODULES = [
  '../../clients/typescript/src/sign-in.js',
  './script/snippets.js',
  './script/tokens.js',
  './script/page.js',
  './script/contents.js',
  './script/try.js',
].map((module) => readFileSync(new URL(module, import.meta.url), 'utf8'));

/** A guide of `docs/`, rendered at build time. */
interface Guide {
  /** The last part of the guide's path, `/docs/<name>`. */
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly source: string;
  readonly html: string;
  readonly markdown: string;
  readonly sections: readonly { readonly id: string; readonly title: string }[];
  /** Texts for the search; `id` is the fragment of the URL, or empty. */
  readonly passages: readonly { readonly id: string; readonly title: string; readonly text: string }[];
}

export const GUIDES = JSON.parse(
  readFileSync(new URL('../../docs/guides.json', import.meta.url), 'utf8'),
) as readonly Guide[];

export interface SitePage {
  readonly template: 'front' | 'reference' | 'guide' | 'status';
  /** Title of the window before the API's name; default: only the API's name. */
  readonly title?: string;
  readonly content: object;
}

/** Renders the public pages. */
@Injectable()
export class Site {
  readonly #script = new InlineText(joinScripts(MODULES));
  readonly #languageScript = new InlineText(
    readFileSync(new URL('./script/language.js', import.meta.url), 'utf8'),
  );

  readonly #theme: string;

  constructor(
    private readonly config: Config,
    private readonly layout: Layout,
  ) {
    this.#theme = themeOf(config);
  }

  document(page: SitePage, more: Record<string, string> = {}): UnchangingDocument {
    const { html, headers } = this.render(page);
    return new UnchangingDocument(html, { ...headers, ...more, 'Cache-Control': 'no-cache' });
  }

  render({ template, title, content }: SitePage): { html: string; headers: Record<string, string> } {
    const { publicUrl, seedDemo, developerConsole, platformLogoUrl, supportUrl, privacyUrl } = this.config;
    const data = {
      language: 'en',
      theme: this.#theme,
      script: this.#script.text,
      languageScript: this.#languageScript.text,
      title,
      apiName: apiNameOf(this.config),
      logo: platformLogoUrl === undefined ? undefined : PLATFORM_LOGO_PATH,
      support: supportUrl,
      privacy: privacyUrl,
      publicUrl,
      demo: seedDemo,
      developers: developerConsole,
      assistants: this.config.assistants,
      highlight,
      prose,
      ...content,
    };
    return this.layout.render(
      `site/templates/${template}`,
      data,
      [this.#script, this.#languageScript],
      "'none'",
    );
  }
}

/** Joins modules into one script, which the CSP allows by its hash. */
function joinScripts(modules: readonly string[]): string {
  const script = modules
    .join('')
    .replace(/^import .* from '.*';?\n/gm, '')
    .replace(/^(.*\*\/ )?export /gm, '$1')
    .replace(/^\/\/# sourceMappingURL=.*\n?/gm, '');
  if (/^import .* from |^export /m.test(script) || script.includes('</script'))
    throw new Error('Remove `import`, `export` and `</script` from the script of the pages');
  return script;
}

function prose(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
