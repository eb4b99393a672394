import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { eitherOf, Hmac, isSame, TokenKeys } from './hmac.js';
import { Secrets } from './secrets.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');
const before = new Hmac(new Secrets(OLD), 'csrf');
const hmac = new Hmac(new Secrets(NEW, OLD), 'csrf');

describe('the HMAC of a text', () => {
  it('is HMAC-SHA-256 under the key of its purpose, so that existing cookies stay valid', () => {
    expect(before.of('one').toString('hex')).toBe(
      '82483aa65ce80927a7ff40da86c890c87fd2cb398519dc992d2f3a00af3d0e7d', // computed by another program
    );
  });

  it('is created with the current key, and verified with the current and the previous key', () => {
    expect(hmac.everyOf('one')).toEqual([hmac.of('one'), before.of('one')]);
    expect(hmac.verify(hmac.of('one'), 'one')).toBe(true);
    expect(hmac.verify(before.of('one'), 'one')).toBe(true);
    expect(before.verify(hmac.of('one'), 'one')).toBe(false);
  });

  it('is rejected for another text or purpose, with any changed byte, and with another length', () => {
    const code = hmac.of('one');
    expect(hmac.verify(code, 'two')).toBe(false);
    expect(new Hmac(new Secrets(NEW), 'cursor').verify(code, 'one')).toBe(false);
    fc.assert(
      fc.property(fc.nat(31), fc.integer({ min: 1, max: 255 }), (place, change) => {
        const other = Buffer.from(code);
        other[place]! ^= change;
        expect(hmac.verify(other, 'one')).toBe(false);
      }),
    );
    for (const length of [0, 16, 31]) expect(hmac.verify(code.subarray(0, length), 'one')).toBe(false);
    expect(hmac.verify(Buffer.concat([code, Buffer.alloc(1)]), 'one')).toBe(false);
  });

  it('is the same if the text is passed in parts', () => {
    expect(hmac.of('one', Buffer.from('two'))).toEqual(hmac.of('onetwo'));
    expect(hmac.verify(hmac.of('onetwo'), 'one', 'two')).toBe(true);
  });

  it('can be truncated, and then verifies only at its truncated length', () => {
    const short = new Hmac(new Secrets(OLD), 'csrf', 16);
    expect(short.of('one')).toEqual(before.of('one').subarray(0, 16));
    expect(short.verify(short.of('one'), 'one')).toBe(true);
    expect(short.verify(before.of('one'), 'one')).toBe(false);
  });
});

describe('isSame', () => {
  it.each([
    ['', '', true],
    ['one', 'one', true],
    ['one', 'onf', false],
    ['one', 'on', false],
    ['', 'o', false],
  ])('compares %p and %p, and returns %p', (one, other, same) =>
    expect(isSame(Buffer.from(one), Buffer.from(other))).toBe(same),
  );
});

describe('the key of a stored token', () => {
  const ID = 'abcdefghijklmnopqrstu';
  const before = new TokenKeys(new Secrets(OLD));
  const keys = new TokenKeys(new Secrets(NEW, OLD));

  it('is an HMAC of kind and token, unchanged since the first release', () => {
    expect(before.keyOf('AccessToken', ID).toString('hex')).toBe(
      '2d467b539254bd136db682606d32b9ef32ff2e329d00103ed5eec3b297913d51', // computed by another program
    );
  });

  it('differs by kind and by secret', () => {
    const found = [keys, before].flatMap((of) =>
      ['AccessToken', 'RefreshToken'].map((model) => of.keyOf(model, ID)),
    );
    expect(new Set(found.map((key) => key.toString('hex'))).size).toBe(4);
  });

  it('exists under both secrets, the current secret first', () => {
    expect(keys.keysOf('AccessToken', ID)).toEqual([
      keys.keyOf('AccessToken', ID),
      before.keyOf('AccessToken', ID),
    ]);
    expect(keys.everyKeyOf('AccessToken', ID)).toEqual(keys.keysOf('AccessToken', ID));
  });

  it.each([
    '',
    'short',
    'x'.repeat(101),
    `${ID} `,
    `${ID}\n`,
    'with/slash/and+plus+signs',
    '\u0000'.repeat(30),
  ])('does not exist for a text that cannot be a token: %j', (id) =>
    expect(keys.keysOf('AccessToken', id)).toEqual([]),
  );
});

describe('eitherOf', () => {
  const [one, other] = [Buffer.from('one'), Buffer.from('other')];
  it.each([
    [
      [one, other],
      [one, other],
    ],
    [[one], [one, one]],
    [[], [null, null]],
  ])('converts the keys %p to the query parameters %p', (given, parameters) =>
    expect(eitherOf(given)).toEqual(parameters),
  );
});
