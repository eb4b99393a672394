import { readdirSync, readFileSync } from 'node:fs';
import { SCOPES } from '../../../auth/scopes.js';
import { CLIENT_FAULTS } from '../../../clients/client-rules.js';
import type { FaultName } from '../../../authorization-server/failures/page-fault.js';
import { REFUSAL_REASONS } from '../../../authorization-server/failures/refusal-reasons.js';
import type developers from './en/developers.json';
import type members from './en/members.json';

/** What pages say in a language: `{name}` is a placeholder that a page fills in. */
export type Texts = Omit<typeof members, 'faults' | 'scopes'> & {
  /** What happened, and what to do. */
  readonly faults: Readonly<Record<FaultName, readonly [title: string, message: string]>>;
  /** What a scope lets an app do. */
  readonly scopes: typeof members.scopes & typeof SCOPES;
  readonly developer: typeof developers & {
    readonly faults: typeof CLIENT_FAULTS;
    /** Why a request was refused. */
    readonly reasons: Readonly<Record<string, string>>;
  };
};

const FOLDER = new URL('./', import.meta.url);

/** The languages of pages (BCP 47), each a folder of texts; the first one is the default. */
export const LANGUAGES: readonly string[] = [
  'en',
  ...readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'en')
    .map(({ name }) => name),
];

const TEXTS = new Map(LANGUAGES.map((language) => [language, textsOf(language)]));

/** Gives the texts of one of {@link LANGUAGES}. */
export function textsIn(language: string): Texts {
  return TEXTS.get(language)!;
}

/** The texts of the default language, which every other has, too. */
export const ENGLISH = textsIn('en');

function textsOf(language: string): Texts {
  const read = <Content>(file: string) =>
    JSON.parse(readFileSync(new URL(`${language}/${file}.json`, FOLDER), 'utf8')) as Content;
  const { scopes, faults: ofPages, ...ofMembers } = read<typeof members>('members');
  const { faults, reasons, ...ofDevelopers } = read<Texts['developer']>('developers');
  const meanings = Object.entries(REFUSAL_REASONS).map(([reason, { meaning }]) => [reason, meaning]);
  // What the API and the log say in English, every other language translates.
  return {
    ...ofMembers,
    faults: ofPages satisfies Record<FaultName, string[]> as unknown as Texts['faults'],
    scopes: { ...SCOPES, ...scopes },
    developer: {
      ...ofDevelopers,
      faults: { ...CLIENT_FAULTS, ...faults },
      reasons: { ...Object.fromEntries(meanings), ...reasons },
    },
  };
}

/**
 * Chooses the language of a page.
 *
 * @param uiLocales what the app requested, in order of preference (OpenID Connect Core §3.1.2.1)
 * @param accept the browser's `Accept-Language` (RFC 9110 §12.5.4), used if none of the app's languages is available
 */
export function languageOf(uiLocales: unknown, accept: string | undefined): string {
  const asked = typeof uiLocales === 'string' ? uiLocales.split(' ') : [];
  return firstKnown(asked) ?? firstKnown(preferred(accept ?? '')) ?? LANGUAGES[0]!;
}

function firstKnown(tags: readonly string[]): string | undefined {
  const languages = tags.map((tag) => tag.toLowerCase().split('-')[0]!);
  return languages.find((language) => TEXTS.has(language));
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
