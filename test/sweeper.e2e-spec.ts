import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Sweeper } from '../src/operations/sweeper/sweeper.service.js';
import { onPostgres } from './support/database.js';
import { OauthTest } from './support/oauth.js';

describe('the sweeper', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const count = async (table: string) => {
    const [row] = await oauth.dataSource.query<{ count: number }[]>(`SELECT count(*) AS count FROM ${table}`);
    return Number(row!.count);
  };

  it('deletes what has expired, and nothing else', async () => {
    const clientId = await oauth.client();
    const { username } = await oauth.member();
    await oauth.tokens(clientId, username);
    await oauth.age('oauth_tokens', 200 * 86_400);
    await oauth.age('oauth_sessions', 200 * 86_400);
    await oauth.age('oauth_state', 200 * 86_400);
    await oauth.dataSource.query(`UPDATE oauth_grants SET created_at = now() - interval '2 hours'`);
    const alive = await oauth.tokens(clientId, username);
    const sweeper = oauth.api.app.get(Sweeper);
    expect(await sweeper.sweep()).toMatchObject({ oauth_tokens: 3, oauth_sessions: 1, oauth_grants: 1 });
    expect(await oauth.me(alive.access_token)).toBe(200);
    expect((await oauth.refresh(clientId, alive.refresh_token)).status).toBe(200);
    expect(Object.values(await sweeper.sweep()).every((rows) => rows === 0)).toBe(true);
  });

  it('forgets blocks of sign-ins an hour after their end, no sooner', async () => {
    await oauth.dataSource.query(
      `INSERT INTO login_throttle (key, attempts, window_ends_at, blocks) VALUES
(sha256('old'), 11, now() - interval '61 minutes', 3), (sha256('recent'), 11, now() - interval '59 minutes', 3)`,
    );
    expect((await oauth.api.app.get(Sweeper).sweep()).login_throttle).toBe(1);
  });

  it('deletes more than one batch', async () => {
    await oauth.dataSource.query(
      `INSERT INTO oauth_state (key, model, expires_at)
SELECT sha256(i::text::bytea), 'ReplayDetection', now() - interval '1 s' FROM generate_series(1, 2500) i`,
    );
    expect((await oauth.api.app.get(Sweeper).sweep()).oauth_state).toBe(2500);
  });

  (onPostgres ? it : it.skip)('waits for no row that somebody else holds', async () => {
    await oauth.dataSource.query(
      `INSERT INTO oauth_state (key, model, expires_at) VALUES (sha256('held'), 'ReplayDetection', now() - interval '1 s'),
(sha256('free'), 'ReplayDetection', now() - interval '1 s')`,
    );
    await oauth.dataSource.transaction(async (manager) => {
      await manager.query(`SELECT FROM oauth_state WHERE key = sha256('held') FOR UPDATE`);
      expect((await oauth.api.app.get(Sweeper).sweep()).oauth_state).toBe(1);
    });
    expect(await count('oauth_state')).toBe(1);
  });
});
