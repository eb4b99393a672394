import type { IncomingHttpHeaders } from 'node:http';
import { readdirSync, readFileSync } from 'node:fs';
import { SCOPES } from '../../auth/scopes.js';
import type { Duration } from '../../clients/access-durations.js';
import { CLIENT_FAULTS } from '../../clients/client-rules.js';
import type { FaultName } from '../../authorization-server/failures/page-fault.js';
import { REJECTION_REASONS } from '../../authorization-server/reasons/rejection-reasons.js';
import type developers from './texts/en/developers.json';
import type members from './texts/en/members.json';
import { asShown, escapeHtml } from '../../values/string-rules.js';

/** Texts of pages in a language; pages fill in placeholders such as `{name}`. */
export type Texts = Omit<typeof members, 'faults' | 'scopes'> & {
  /** Title and message of each fault: what happened, and what to do. */
  readonly faults: Readonly<Record<FaultName, readonly [title: string, message: string]>>;
  readonly scopes: typeof members.scopes & typeof SCOPES;
  readonly developer: typeof developers & {
    readonly faults: typeof CLIENT_FAULTS;
    readonly reasons: Readonly<Record<string, string>>;
  };
};

const FOLDER = new URL('./texts/', import.meta.url);

/** Languages of pages (BCP 47), each a folder of texts; the first language is the default. */
export const LANGUAGES: readonly string[] = [
  'en',
  ...readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'en')
    .map(({ name }) => name),
];

const TEXTS = new Map(LANGUAGES.map((language) => [language, readTexts(language)]));

/** Returns the texts of one of {@link LANGUAGES}. */
export function textsIn(language: string): Texts {
  return TEXTS.get(language)!;
}

/** The default language has every text. */
export const ENGLISH = textsIn('en');

const SCOPE_ORDER = ['openid', 'profile', ...Object.keys(SCOPES), 'offline_access'];

/** Sorts scopes in the order in which pages show them. */
export const inOrder = (scopes: readonly string[]): readonly string[] =>
  scopes.toSorted((one, other) => SCOPE_ORDER.indexOf(one) - SCOPE_ORDER.indexOf(other));

function readTexts(language: string): Texts {
  const read = <Content>(file: string) =>
    JSON.parse(readFileSync(new URL(`${language}/${file}.json`, FOLDER), 'utf8')) as Content;
  const { scopes, faults: ofPages, ...ofMembers } = read<typeof members>('members');
  const { faults, reasons, ...ofDevelopers } = read<Texts['developer']>('developers');
  // For scopes, client faults and rejection reasons, English uses the texts of the API and the log; other languages translate these texts.
  return {
    ...ofMembers,
    faults: ofPages satisfies Record<FaultName, string[]> as unknown as Texts['faults'],
    scopes: { ...SCOPES, ...scopes },
    developer: {
      ...ofDevelopers,
      faults: { ...CLIENT_FAULTS, ...faults },
      reasons: { ...REJECTION_REASONS, ...reasons },
    },
  };
}

/** The name of the cookie with the chosen language, without the prefix. */
export const LANGUAGE_COOKIE = 'pua_language';
const CHOSEN = new RegExp(`(?:^|; ?)(?:__Secure-)?${LANGUAGE_COOKIE}=([a-z]{2,3})(?:;|$)`);

/** Chooses a language: the member's choice, else the app's (`ui_locales`, OpenID Connect Core §3.1.2.1), else the browser's. */
export function chooseLanguage(
  uiLocales: unknown,
  { cookie, 'accept-language': accept }: Pick<IncomingHttpHeaders, 'cookie' | 'accept-language'>,
): string {
  const [, chosen] = CHOSEN.exec(cookie ?? '') ?? [];
  const asked = typeof uiLocales === 'string' ? uiLocales.split(' ') : [];
  const tags = [...(chosen === undefined ? [] : [chosen]), ...asked, ...preferred(accept ?? '')];
  const languages = tags.map((tag) => tag.toLowerCase().split('-')[0]!);
  return languages.find((language) => TEXTS.has(language)) ?? LANGUAGES[0]!;
}

export const LANGUAGE_NAMES: ReadonlyMap<string, string> = new Map(
  LANGUAGES.map((language) => [
    language,
    sentence(new Intl.DisplayNames(language, { type: 'language' }).of(language)!),
  ]),
);

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

const SEGMENTS = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Cuts untrusted text to one line of at most `longest` graphemes. Removes invisible characters, with which names could imitate others. */
export function clip(text: string, longest: number): string {
  const line = asShown(text);
  if (line.length <= longest && /^[ -~]*$/.test(line)) return line; // skips segmenting, which takes 20 times as long
  // One character can carry any number of combining marks.
  const characters = [...SEGMENTS.segment(line.slice(0, longest * 8))].map(({ segment }) =>
    [...segment].slice(0, 4).join(''),
  );
  return characters.length <= longest ? characters.join('') : `${characters.slice(0, longest - 1).join('')}…`;
}

/** Returns the letter or digit to show in a name's tile; `?` if the name has none. */
export function initialOf(name: string): string {
  const [first] = clip(name, 50).match(/[\p{L}\p{N}]/u) ?? [];
  return (first ?? '?').toUpperCase().slice(0, 2);
}

/** Writes untrusted text as HTML: clipped, with an isolated writing direction. */
export function isolated(text: string, longest = 60): string {
  return `<bdi>${escapeHtml(clip(text, longest))}</bdi>`;
}

/** Fills in the placeholders of a plain text such as `Back to {app}`. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}

/** Capitalizes a text for the start of a sentence. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Like {@link fill}, but returns HTML. @param values as HTML */
export function fillHtml(text: string, values: Readonly<Record<string, string | number>>): string {
  return fill(escapeHtml(text), values);
}

const SECOND = 1;
const UNITS: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number, most: number][] = [
  ['second', SECOND, 60],
  ['minute', 60, 60],
  ['hour', 3_600, 24],
  ['day', 86_400, 30],
];

export class DateTimes {
  readonly #locale: string;
  readonly #days: Intl.DateTimeFormat;
  readonly #shortDays: Intl.DateTimeFormat;
  readonly #numbers: Intl.NumberFormat;
  readonly #relative: Intl.RelativeTimeFormat;
  readonly #units = new Map<string, Intl.NumberFormat>();

  constructor(locale: string) {
    this.#locale = locale;
    this.#days = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' });
    this.#shortDays = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' });
    this.#numbers = new Intl.NumberFormat(locale);
    this.#relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });
  }

  /** @param moment in the API's format @param now in ms since 1970 @returns texts such as `31 January 2026` and `2 hours ago` */
  timestamp(moment: string, now = Date.now()) {
    const machine = `${moment.replace(' ', 'T')}Z`;
    const day = this.#days.format(new Date(machine));
    const minute = `${day}, ${moment.slice(11, 16)} UTC`;
    const past = (now - Date.parse(machine)) / 1_000;
    const seconds = Math.max(0, past);
    const unit = UNITS.find(([, length, most]) => seconds / length < most);
    const isFuture = past < -60; // the clocks of server and database may differ a little
    const ago = isFuture
      ? minute
      : unit === undefined
        ? day
        : this.#relative.format(unit[1] === SECOND ? 0 : -Math.floor(seconds / unit[1]), unit[0]);
    return { machine, day, minute, ago };
  }

  /** Formats a wait in seconds or, rounded up, in minutes: `125` → `3 minutes`. */
  wait(seconds: number): string {
    return seconds < 60 ? this.#counted(seconds, 'second') : this.#counted(Math.ceil(seconds / 60), 'minute');
  }

  /** Formats a day (given in the API's format) as `31 January 2026`, and in short as `31 Jan`. */
  day(day: string) {
    const date = new Date(day);
    return { long: this.#days.format(date), short: this.#shortDays.format(date) };
  }

  count(number: number): string {
    return this.#numbers.format(number);
  }

  days(count: number): string {
    return this.#counted(count, 'day');
  }

  #counted(count: number, unit: string): string {
    const kept = this.#units.get(unit);
    const format = kept ?? new Intl.NumberFormat(this.#locale, { style: 'unit', unit, unitDisplay: 'long' });
    this.#units.set(unit, format);
    return format.format(count);
  }
}

/** Formats a duration, such as `Once`, `30 days` or `Until I revoke it`. */
export function formatDuration(duration: Duration, { durations }: Texts, moments: DateTimes): string {
  return duration === 'once' || duration === 'unlimited'
    ? durations[duration]
    : moments.days(Number(duration));
}

/** Returns a device's name, such as `Firefox on Linux`. Calls an unknown browser unknown, and omits an unknown system. */
export function deviceOf(
  { browser, system }: Readonly<Partial<Record<'browser' | 'system', string | null>>>,
  { sessions }: Texts,
): string {
  const known = browser ?? sessions.unknownBrowser;
  return system ? fill(sessions.browserOn, { browser: known, system }) : known;
}
