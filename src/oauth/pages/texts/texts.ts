import { de } from './de.js';
import { en } from './en.js';
import type { Texts } from './en.js';

/** The languages of members' pages, the first one where nobody asks for another (BCP 47). */
export const TEXTS = { en, de } as const satisfies Readonly<Record<string, Texts>>;

export type Language = keyof typeof TEXTS;

export const LANGUAGES = Object.keys(TEXTS) as Language[];

/**
 * Chooses the language of a page.
 *
 * @param uiLocales what the app asked for, the best first (OpenID Connect Core §3.1.2.1)
 * @param accept `Accept-Language` of the browser (RFC 9110 §12.5.4), which counts where the app asks for nothing that there is
 */
export function languageOf(uiLocales: unknown, accept: string | undefined): Language {
  const asked = typeof uiLocales === 'string' ? uiLocales.split(' ') : [];
  return firstKnown(asked) ?? firstKnown(preferred(accept ?? '')) ?? LANGUAGES[0]!;
}

function firstKnown(tags: readonly string[]): Language | undefined {
  for (const tag of tags) {
    const known = LANGUAGES.find((language) => language === tag.toLowerCase().split('-')[0]);
    if (known) return known;
  }
  return undefined;
}

function preferred(accept: string): string[] {
  return accept
    .slice(0, 500)
    .split(',')
    .map((range) => {
      const [tag = '', quality] = range.trim().split(/\s*;\s*q=/i);
      return { tag, quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag);
}
