import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { API_KEY_PATTERN, makeKey, parseKey } from './api-key-format.js';

describe('an API key', () => {
  it.each(['live', 'test'] as const)('is parsed into its parts: %s', (environment) => {
    const { key, id } = makeKey(environment);
    expect(key).toMatch(new RegExp(`^pua_${environment}_${id}_[0-9A-Za-z]{49}$`));
    expect(parseKey(key)).toEqual({ id, environment });
  });

  it('is found in a text by a regular expression', () => {
    const { key } = makeKey('live');
    expect(API_KEY_PATTERN.exec(`curl -H 'X-API-Key: ${key}' https://…`)![0]).toBe(key);
  });

  it('is rejected if any character differs', () => {
    const { key } = makeKey('live');
    fc.assert(
      fc.property(fc.nat(key.length - 1), fc.constantFrom(...'0aZ_'), (place, other) => {
        fc.pre(key[place] !== other);
        expect(parseKey(key.slice(0, place) + other + key.slice(place + 1))).toBeUndefined();
      }),
    );
  });

  it.each(['', 'pua_live_', 'x'.repeat(1_000_000), ` ${makeKey('live').key}`, `${makeKey('live').key}\n`])(
    'is not parsed from a text that is not exactly a key: case %#',
    (text) => expect(parseKey(text)).toBeUndefined(),
  );
});
