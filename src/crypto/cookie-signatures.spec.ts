import { describe, expect, it } from '@jest/globals';
import { CookieSignatures } from './cookie-signatures.js';
import { Secrets } from './secrets.js';

const COOKIE = 'pua_session=some-id; value';
/** Signed by Keygrip. */
const [BY_CURRENT, BY_PREVIOUS] = ['0DfgO7UYV_h1b2FC4-Z8DzrdaCM', '7qSedlDtIrjyLPwdN3ZZlBezUt8'];

const [CURRENT, PREVIOUS] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const signatures = new CookieSignatures(new Secrets(CURRENT, PREVIOUS), 'oauth-cookies');

describe('the signature of a cookie', () => {
  it('equals Keygrip’s signature, so that existing cookies stay valid', () => {
    expect(signatures.sign(COOKIE)).toBe(BY_CURRENT);
    expect(new CookieSignatures(new Secrets(PREVIOUS), 'oauth-cookies').sign(COOKIE)).toBe(BY_PREVIOUS);
  });

  it('matches the current key (index 0) and the previous key (index 1), and no removed key', () => {
    expect([BY_CURRENT, BY_PREVIOUS].map((signature) => signatures.index(COOKIE, signature))).toEqual([0, 1]);
    expect([BY_CURRENT, BY_PREVIOUS].map((signature) => signatures.verify(COOKIE, signature))).toEqual([
      true,
      true,
    ]);
    const after = new CookieSignatures(new Secrets(CURRENT), 'oauth-cookies');
    expect(after.index(COOKIE, BY_PREVIOUS)).toBe(-1);
  });

  it.each([
    ['another value', 'pua_session=some-id; value2', BY_CURRENT],
    ['another name', 'pua_interaction=some-id; value', BY_CURRENT],
    ['a changed signature', COOKIE, BY_CURRENT.replace('0', '1')],
    ['another base64 encoding of the same bytes', COOKIE, `${BY_CURRENT}=`],
    ['a part of the signature', COOKIE, BY_CURRENT.slice(0, -1)],
    ['an empty signature', COOKIE, ''],
    ['text that is not base64', COOKIE, '„“'],
  ])('does not match %s', (_, cookie, signature) => {
    expect(signatures.index(cookie, signature)).toBe(-1);
    expect(signatures.verify(cookie, signature)).toBe(false);
  });

  it('does not match a key for another purpose', () => {
    expect(new CookieSignatures(new Secrets(CURRENT), 'csrf').verify(COOKIE, BY_CURRENT)).toBe(false);
  });
});
