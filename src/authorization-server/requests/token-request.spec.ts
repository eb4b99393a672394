import { describe, expect, it } from '@jest/globals';
import type { OauthDatabase } from './oauth-database.js';
import { TokenRequest, type NewToken, type PresentedToken } from './token-request.js';

const presented: PresentedToken = {
  key: Buffer.alloc(32, 1),
  grant_id: 'grant',
  grant: null,
  user_id: 7,
  user_active: true,
  seconds_left: null,
};
const issued: NewToken = {
  key: Buffer.alloc(32, 2),
  model: 'AccessToken',
  grantId: 'grant',
  payload: '{}',
  seconds: 600,
};
const kept = { sealed: Buffer.from('answer'), secondsAgo: 3 };
const event = { type: 'token.refreshed', actor: 'client' } as const;

/** Rejects every write: {@link TokenRequest.finish} must not get that far. */
const nowhere = { rows: () => Promise.reject(new Error('written')) } as unknown as OauthDatabase;

describe('a token request', () => {
  it('consumes only the presented token', () => {
    const request = new TokenRequest();
    expect(() => request.use()).toThrow('there is no token that could be used now');
    request.present(presented);
    request.use();
    expect(request.presented).toBe(presented);
    expect(() => request.use()).toThrow('there is no token that could be used now');
  });

  it('issues nothing before it has consumed the presented token', () => {
    const request = new TokenRequest();
    expect(() => request.issue(issued)).toThrow('nothing can come of a token before it is used');
    request.present(presented);
    expect(() => request.issue(issued)).toThrow('nothing can come of a token before it is used');
    request.use();
    expect(() => request.issue(issued)).not.toThrow();
  });

  it('repeats a stored response without storing new tokens', async () => {
    const request = new TokenRequest();
    request.present(presented, kept);
    expect([request.kept, request.issued]).toEqual([kept, undefined]);
    request.use();
    request.issue(issued);
    expect(request.kept).toBe(kept);
    await expect(request.finish(nowhere, null, event, null)).rejects.toThrow('only a token that is used now');
  });

  it('does not finish if no token was consumed', async () => {
    const request = new TokenRequest();
    await expect(request.finish(nowhere, null, event, null)).rejects.toThrow('only a token that is used now');
    request.present(presented);
    await expect(request.finish(nowhere, null, event, null)).rejects.toThrow('only a token that is used now');
  });

  it('starts again when the token is queried again', () => {
    const request = new TokenRequest();
    request.present(presented);
    request.use();
    request.present(presented, kept);
    expect([request.kept, request.issued]).toEqual([kept, undefined]);
  });
});
