import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { OauthTest } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

describe('a refresh token', () => {
  it('used again within 10 seconds gets the same tokens, with their remaining lifetimes and the current end of access', async () => {
    const { clientId, refresh_token } = await oauth.signedIn();
    const first = await oauth.refresh(clientId, refresh_token);
    const earlier = `UPDATE oauth_tokens SET consumed_at = consumed_at - interval '3 s' WHERE model = 'RefreshToken'`;
    await oauth.query(earlier);
    await oauth.query(`UPDATE oauth_grants SET access_ends_at = now() + interval '1 day'`);
    const second = await oauth.refresh(clientId, refresh_token);
    expect([first.status, second.status]).toEqual([200, 200]);
    const { expires_in, refresh_token_expires_in: _, ...same } = first.body;
    expect(second.body).toMatchObject(same);
    // On a busy host, the kept response states lifetimes of a moment before the first response.
    expect(second.body.expires_in).toBeLessThanOrEqual(expires_in - 1);
    expect(Number(second.body.refresh_token_expires_in) / 86_400).toBeCloseTo(1, 2);
    expect(await oauth.me(second.body.access_token)).toBe(200);
    expect((await oauth.refresh(clientId, second.body.refresh_token)).status).toBe(200);
  });

  it('used again with another scope within 10 seconds is rejected, and its family stays valid', async () => {
    const { clientId, refresh_token } = await oauth.signedIn();
    const { body } = await oauth.refresh(clientId, refresh_token);
    const other = await oauth.refresh(clientId, refresh_token, { scope: 'profile:read' });
    expect([other.status, other.body.error]).toEqual([400, 'invalid_grant']);
    expect(await oauth.me(body.access_token)).toBe(200);
    expect((await oauth.refresh(clientId, body.refresh_token)).status).toBe(200);
  });

  it('used again later revokes its family, but no tokens of the member’s other devices', async () => {
    const { clientId, username, ...device } = await oauth.signedIn();
    const other = await oauth.tokens(clientId, username);
    const { body } = await oauth.refresh(clientId, device.refresh_token);
    await oauth.age('oauth_tokens', 11);
    const reused = await oauth.refresh(clientId, device.refresh_token);
    expect([reused.status, reused.body.error]).toEqual([400, 'invalid_grant']);
    expect(await oauth.me(body.access_token)).toBe(401);
    expect((await oauth.refresh(clientId, body.refresh_token)).status).toBe(400);
    expect(await oauth.me(other.access_token)).toBe(200);
    expect((await oauth.refresh(clientId, other.refresh_token)).status).toBe(200);
  });

  it('that was used or revoked is rejected with the reason; another client gets the error for an unknown token', async () => {
    const { clientId, refresh_token: used } = await oauth.signedIn();
    const told = async (token: string, client = clientId) =>
      (await oauth.refresh(client, token)).body.error_description;
    const foreign = await told(used, await oauth.client());
    const { refresh_token: next } = (await oauth.refresh(clientId, used)).body;
    const usedMeanwhile = await oauth.refresh(clientId, used, { scope: 'profile:read' });
    await oauth.age('oauth_tokens', 11);
    expect(usedMeanwhile.body.error_description).toMatch(/was used before/);
    expect(await told(used)).toMatch(/was used before/);
    expect(await told(next)).toMatch(/: ended by the platform$/);
    const unknown = await told('x'.repeat(43));
    expect(unknown).toMatch(/is no longer valid/);
    expect(foreign).toBe(unknown); // the same response for a valid and an unknown token
  });

  it('used again days later still revokes its family: used tokens are not swept before they expire', async () => {
    const { clientId, refresh_token } = await oauth.signedIn();
    const { body } = await oauth.refresh(clientId, refresh_token);
    await oauth.age('oauth_tokens', 13 * 86_400);
    await oauth.api.app.get(Sweeper).sweep();
    expect((await oauth.refresh(clientId, refresh_token)).body.error).toBe('invalid_grant');
    expect((await oauth.refresh(clientId, body.refresh_token)).body.error).toBe('invalid_grant');
    const [refused] = await oauth.details({ client: clientId, type: 'token.refused' });
    expect(refused!.reason).toBe('refresh_token_used');
  });

  it('is not consumed by a rejected request', async () => {
    const { clientId, refresh_token } = await oauth.signedIn();
    const wrong = await oauth.refresh(clientId, refresh_token, { resource: 'https://other.example/api' });
    expect([wrong.status, wrong.body.error]).toEqual([400, 'invalid_target']);
    const stored = await oauth.query<{ consumed_at: Date | null }>(
      `SELECT consumed_at FROM oauth_tokens WHERE model = 'RefreshToken' ORDER BY created_at DESC LIMIT 1`,
    );
    expect(stored[0]!.consumed_at).toBeNull();
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(200);
  });

  it('grants fewer scopes if fewer are requested, and never more', async () => {
    const { clientId, refresh_token } = await oauth.signedIn({ scope: 'profile:read events:read' });
    const scope = 'profile:read connections:read';
    const wider = await oauth.refresh(clientId, refresh_token, { scope });
    expect([wider.status, wider.body.error]).toEqual([400, 'invalid_scope']);
    const narrower = await oauth.refresh(clientId, refresh_token, { scope: 'events:read' });
    expect(narrower.body.scope).toBe('events:read');
    expect(await oauth.me(narrower.body.access_token)).toBe(403);
  });

  it('ignores unknown scopes that are requested in addition to known scopes', async () => {
    const { clientId, refresh_token } = await oauth.signedIn({ scope: 'profile:read events:read' });
    const none = await oauth.refresh(clientId, refresh_token, { scope: 'invented' });
    expect([none.status, none.body.error]).toEqual([400, 'invalid_scope']);
    const known = await oauth.refresh(clientId, refresh_token, { scope: 'invented events:read other' });
    expect([known.status, known.body.scope]).toEqual([200, 'events:read']);
  });

  it('is rejected for another client without being consumed', async () => {
    const { clientId, refresh_token } = await oauth.signedIn();
    expect((await oauth.refresh(await oauth.client(), refresh_token)).body.error).toBe('invalid_grant');
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(200);
  });
});
