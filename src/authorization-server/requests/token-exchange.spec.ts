import { describe, expect, it, jest } from '@jest/globals';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { NewToken, OauthDatabase } from './oauth-database.js';
import { TokenExchange } from './token-exchange.js';

const row = {
  payload: { exp: 9 },
  consumed: false,
  successor: null,
  key: Buffer.alloc(32, 1),
  grant_id: 'grant',
  user_id: 7,
};
const used = { ...row, consumed: true, used_seconds_ago: 3 };
const issued: NewToken = {
  key: Buffer.alloc(32, 2),
  model: 'AccessToken',
  grantId: 'grant',
  payload: '{}',
  seconds: 600,
};

/** @param found the database's results; the database rejects every write */
function exchanging(found: object | null = row) {
  const ctx = { oidc: { params: { refresh_token: 'x' }, client: { clientId: 'app' } }, get: () => '' };
  const write = jest.fn<() => Promise<never>>().mockRejectedValue(new Error('written'));
  const database = {
    keys: { keysOf: () => [row.key] },
    read: async () => (found ? [found] : []),
    rows: write,
  };
  const exchange = new TokenExchange(
    database as unknown as OauthDatabase,
    ctx as unknown as KoaContextWithOIDC,
  );
  return { exchange, ctx: ctx as unknown as KoaContextWithOIDC, write };
}

describe('a token exchange', () => {
  it('is found only by the context of its request', () => {
    const { exchange, ctx } = exchanging();
    expect([ctx, exchanging().ctx, undefined].map((of) => TokenExchange.of(of) === exchange)).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('accepts a token only after reading it, and only once', async () => {
    const { exchange } = exchanging();
    expect(() => exchange.accept()).toThrow('a token exchange in the step started cannot accept a token');
    await exchange.read('RefreshToken', 'x');
    exchange.accept();
    expect(exchange.token).toMatchObject({ model: 'RefreshToken', id: 'x', user_id: 7 });
    expect(() => exchange.accept()).toThrow('a token exchange in the step accepted cannot accept a token');
  });

  it('rejects a token that was not found', async () => {
    const { exchange } = exchanging(null);
    expect(await exchange.read('RefreshToken', 'x')).toBeUndefined();
    expect(() => exchange.accept()).toThrow('a token exchange in the step started cannot accept a token');
  });

  it('issues and stores nothing before a token is accepted', async () => {
    const { exchange, write } = exchanging();
    await exchange.read('AuthorizationCode', 'x');
    expect(() => exchange.issue(issued)).toThrow('a token exchange in the step read cannot issue a token');
    await expect(exchange.commit()).rejects.toThrow('a token exchange in the step read cannot be stored');
    expect(write).not.toHaveBeenCalled();
  });

  it.each([
    ['a new token as unused', row, false],
    ['a used token as used', used, true],
    ['a token with a stored response as unused', { ...used, successor: Buffer.alloc(40) }, false],
    [
      'a token whose stored response is too old as used',
      { ...used, successor: Buffer.alloc(40), used_seconds_ago: 10 },
      true,
    ],
  ])('reads %s', async (_, found, isUsed) => {
    const { exchange } = exchanging(found);
    expect((await exchange.read('RefreshToken', 'x'))?.consumed !== undefined).toBe(isUsed);
  });

  it('stores nothing if the token already has a stored response', async () => {
    const { exchange, write } = exchanging({ ...used, successor: Buffer.alloc(40) });
    await exchange.read('RefreshToken', 'x');
    exchange.accept();
    exchange.issue(issued);
    await expect(exchange.commit()).rejects.toMatchObject({
      error_detail: 'the token was used a moment ago',
    });
    expect(write).not.toHaveBeenCalled();
  });
});
