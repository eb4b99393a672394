import { describe, expect, it } from '@jest/globals';
import { Secrets } from './secrets.js';
import { eitherOf, TokenKeys } from './token-keys.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');
const ID = 'abcdefghijklmnopqrstu';
const before = new TokenKeys(new Secrets(OLD));
const keys = new TokenKeys(new Secrets(NEW, OLD));

describe('the key under which a token is stored', () => {
  it('is an HMAC of its kind and itself, as the database holds it since the first release', () => {
    expect(before.keyOf('AccessToken', ID).toString('hex')).toBe(
      '2d467b539254bd136db682606d32b9ef32ff2e329d00103ed5eec3b297913d51', // computed by another program
    );
  });

  it('is another for another kind, and under another secret', () => {
    const found = [keys, before].flatMap((of) =>
      ['AccessToken', 'RefreshToken'].map((model) => of.keyOf(model, ID)),
    );
    expect(new Set(found.map((key) => key.toString('hex'))).size).toBe(4);
  });

  it('is looked for under both secrets, the current one first', () => {
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
  ])('is none for what was never issued: %j', (id) => expect(keys.keysOf('AccessToken', id)).toEqual([]));
});

describe('two parameters of a look-up', () => {
  const [one, other] = [Buffer.from('one'), Buffer.from('other')];
  it.each([
    [
      [one, other],
      [one, other],
    ],
    [[one], [one, one]],
    [[], [null, null]],
  ])('of %p are %p', (given, parameters) => expect(eitherOf(given)).toEqual(parameters));
});
