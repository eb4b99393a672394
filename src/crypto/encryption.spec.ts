import { describe, expect, it } from '@jest/globals';
import { Encryption, openWith, encryptFor } from './encryption.js';
import { Secrets } from './secrets.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');
const ROW = Buffer.from('row');
const before = new Encryption(new Secrets(OLD), 'oauth-state');
const encryption = new Encryption(new Secrets(NEW, OLD), 'oauth-state');

describe('encrypted text', () => {
  it.each([null, 0, 'text', [1, 'ä'], { a: { b: [] } }])('decrypts to its original: %j', (value) =>
    expect(encryption.open(encryption.seal(value, 'Session', ROW), 'Session', ROW)).toEqual(value),
  );

  it('differs each time', () =>
    expect(encryption.seal('x', 'Session')).not.toEqual(encryption.seal('x', 'Session')));

  it.each([
    ['as another kind', 'Grant', [ROW]],
    ['in another row', 'Session', [Buffer.from('other')]],
    ['without the keys of its row', 'Session', []],
    ['with more keys than its row had', 'Session', [ROW, ROW]],
  ])('does not decrypt %s', (_, kind, rowKeys) =>
    expect(encryption.open(encryption.seal('x', 'Session', ROW), kind, ...rowKeys)).toBeUndefined(),
  );

  it('does not decrypt under another label', () =>
    expect(
      new Encryption(new Secrets(NEW), 'other').open(encryption.seal('x', 'Session'), 'Session'),
    ).toBeUndefined());

  it('does not decrypt if any byte differs, or if it is truncated', () => {
    const sealed = encryption.seal('x', 'Session');
    for (const place of sealed.keys()) {
      const other = Buffer.from(sealed);
      other[place]! ^= 1;
      expect(encryption.open(other, 'Session')).toBeUndefined();
      expect(encryption.open(sealed.subarray(0, place), 'Session')).toBeUndefined();
    }
  });

  it('decrypts after a key change, and names its key; new text does not decrypt with the old key', () => {
    expect(encryption.openNamed(before.seal('x', 'Session'), 'Session')).toEqual({
      value: 'x',
      keyName: before.keyName,
    });
    expect(encryption.openNamed(encryption.seal('x', 'Session'), 'Session')?.keyName).toBe(
      encryption.keyName,
    );
    expect(encryption.keyName).not.toBe(before.keyName);
    expect(before.open(encryption.seal('x', 'Session'), 'Session')).toBeUndefined();
  });

  it('does not decrypt with a row key if it was encrypted without one', () =>
    expect(encryption.open(encryption.seal('x', 'Session'), 'Session', ROW)).toBeUndefined());
});

describe('text encrypted with a secret', () => {
  it('decrypts only with that secret and purpose', () => {
    const sealed = encryptFor('secret', { a: 1 }, 'refresh');
    expect(openWith('secret', sealed, 'refresh')).toEqual({ a: 1 });
    expect(openWith('secret ', sealed, 'refresh')).toBeUndefined();
    expect(openWith('secret', sealed, 'other')).toBeUndefined();
  });
});
