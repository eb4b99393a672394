import { describe, expect, it } from '@jest/globals';
import { ENGLISH, LANGUAGES, chooseLanguage, textsIn } from './wording.js';

/** Every text by its path, such as `signIn.title`. */
function flat(texts: object, path = ''): [string, string][] {
  return Object.entries(texts).flatMap(([name, value]: [string, string | object]) =>
    typeof value === 'string' ? [[path + name, value] as [string, string]] : flat(value, `${path}${name}.`),
  );
}

const placeholders = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

/** Texts that are equal in English and another language. */
const SAME = new Set([
  'consent.website',
  'sessionsTitle',
  ...['apps', 'name', 'allowed_origins', 'logo', 'webhooks.title'].map((name) => `developer.${name}`),
]);

describe('the texts of members’ pages', () => {
  const english = new Map(flat(ENGLISH));

  it.each(LANGUAGES.filter((language) => language !== 'en'))(
    'exist in every language, translated, with the same placeholders: %s',
    (language) => {
      const others = new Map(flat(textsIn(language)));
      expect([...others.keys()].sort()).toEqual([...english.keys()].sort());
      for (const [path, text] of others) {
        expect(text.trim()).not.toBe('');
        expect([path, placeholders(text)]).toEqual([path, placeholders(english.get(path)!)]);
        if (!SAME.has(path)) expect([path, text]).not.toEqual([path, english.get(path)]);
      }
    },
  );

  it.each([
    [undefined, undefined, 'en'],
    [undefined, 'de', 'de'],
    [undefined, 'de-CH,de;q=0.9,en;q=0.8', 'de'],
    [undefined, 'it, en;q=0.5, de;q=0.7', 'de'],
    [undefined, 'fr-FR,fr;q=0.9', 'fr'],
    [undefined, 'it-IT,it;q=0.9', 'en'],
    [undefined, 'de;q=0', 'en'],
    [undefined, ',;q=,;;=\u0000', 'en'],
    ['it de-AT', 'en', 'de'],
    ['en', 'de', 'en'],
    ['xx', 'de', 'de'],
    [['de'], 'en', 'en'],
  ])('follow the language of the app or the browser: %j, %j', (uiLocales, accept, language) => {
    expect(chooseLanguage(uiLocales, { 'accept-language': accept })).toBe(language);
  });

  it.each([
    ['pua_language=fr', 'fr'],
    ['pua_csrf=x; __Secure-pua_language=fr; pua_device=y', 'fr'],
    ['pua_language=xx', 'de'],
    ['pua_language=', 'de'],
    ['not_pua_language=fr', 'de'],
  ])('with the cookie %s and an app in German are in the language %s', (cookie, language) => {
    expect(chooseLanguage('de', { cookie, 'accept-language': 'en' })).toBe(language);
  });

  it('use French spaces and apostrophes in French', () => {
    for (const [path, text] of flat(textsIn('fr')))
      expect([path, text]).toEqual([
        path,
        expect.not.stringMatching(/'| [:;!?»]|[^\u202f][;!?](?=\s|$)|«(?!\u202f)/),
      ]);
  });
});
