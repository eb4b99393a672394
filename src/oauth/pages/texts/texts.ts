import { de } from './de.js';
import { en } from './en.js';
import type { Texts } from './en.js';

/** The languages of members' pages (BCP 47); the first one is the default. */
export const TEXTS = { en, de } as const satisfies Readonly<Record<string, Texts>>;

export type Language = keyof typeof TEXTS;

export const LANGUAGES = Object.keys(TEXTS) as Language[];

/**
 * Chooses the language of a page.
 *
 * @param uiLocales what the app requested, in order of preference (OpenID Connect Core §3.1.2.1)
 * @param accept the browser's `Accept-Language` (RFC 9110 §12.5.4), used if none of the app's languages is available
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
