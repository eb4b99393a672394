import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Usage } from '../../src/auth/usage/usage.js';
import { postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

interface Row {
  user_id: number;
  app_kind: 'client' | 'key';
  app_id: string;
  scope: string;
  uses: number;
}

describe('what is counted as use', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const flush = () => oauth.api.app.get(Usage).flush();
  /** Over all days: a test may run at midnight. */
  const counted = (members: readonly number[]) =>
    oauth.dataSource.query<Row[]>(
      `SELECT user_id, app_kind, app_id, scope, sum(uses)::integer AS uses FROM member_usage WHERE user_id = ANY ($1)
GROUP BY user_id, app_kind, app_id, scope ORDER BY user_id, app_kind, app_id, scope`,
      [members],
    );
  const keyId = (key: string) => key.split('_')[2]!;

  it('is each answered request by member, app or key, and scope', async () => {
    const member = await oauth.member();
    const client = await oauth.client();
    const { access_token } = await oauth.tokens(client, member.username);
    const key = await oauth.api.key(member.id);
    expect(await oauth.me(access_token)).toBe(200);
    for (const path of ['/me', '/profile', '/events?limit=1', '/connections', '/credential'])
      expect((await oauth.api.get(path, key)).status).toBe(200);
    expect((await oauth.api.put('/profile', key, { bio: 'x' })).status).toBe(200);
    await flush();
    const [app] = (await counted([member.id])).filter(({ app_kind }) => app_kind === 'client');
    expect(app).toEqual({
      user_id: member.id,
      app_kind: 'client',
      app_id: client,
      scope: 'profile:read',
      uses: 1,
    });
    const ofKey = (await counted([member.id])).filter(({ app_id }) => app_id === keyId(key));
    expect(ofKey.map(({ scope, uses }) => [scope, uses])).toEqual([
      ['connections:read', 1],
      ['events:read', 1],
      ['profile:read', 2],
      ['profile:write', 1],
    ]);
  });

  it('is no request that was refused: for its credential, scope, limit, query or body, or for what is not there', async () => {
    const member = await oauth.member();
    const key = await oauth.api.key(member.id, ['events:read', 'profile:write']);
    for (const [request, status] of [
      [oauth.api.get('/me', key), 403],
      [oauth.api.get('/events?x=1', key), 400],
      [oauth.api.get('/events/1', key), 404],
      [oauth.api.put('/profile', key, { bio: 1 }), 422],
      [oauth.api.get('/events', `${key}x`), 401],
      [oauth.api.get('/events', key, { Origin: 'https://app.example' }), 403],
      [oauth.api.get('/events', key, { Accept: 'text/html' }), 406],
    ] as const)
      expect((await request).status).toBe(status);
    await flush();
    expect(await counted([member.id])).toEqual([]);
    const used = await oauth.dataSource.query<object[]>(
      'SELECT FROM api_key_usage WHERE key_id = $1 AND uses_count > 0',
      [keyId(key)],
    );
    expect(used).toEqual([]);
    const { headers } = await oauth.api.get('/events', key);
    expect((await oauth.api.get('/events', key, { 'If-None-Match': headers.etag! })).status).toBe(304);
    await flush();
    expect(await counted([member.id])).toMatchObject([{ scope: 'events:read', uses: 2 }]);
  });

  it('is exact after a flush, of thousands of mixed requests, with flushes in between', async () => {
    const members = await Promise.all(Array.from({ length: 5 }, () => oauth.api.platform.user()));
    const keys = await Promise.all(
      members.flatMap((member) => [oauth.api.key(member), oauth.api.key(member, ['events:read'])]),
    );
    const expected = new Map<string, number>();
    const calls = [
      ['/me', 'profile:read'],
      ['/events?limit=1', 'events:read'],
      ['/events/1', 'events:read'],
      ['/credential', null],
    ] as const;
    const lanes = Array.from({ length: 10 }, async (_, lane) => {
      for (let i = 0; i < 200; i++) {
        const key = keys[(i * 7 + lane) % keys.length]!;
        const [path, scope] = calls[(i + lane) % calls.length]!;
        const { status } = await oauth.api.get(path, key);
        if (status >= 400 || scope === null) continue;
        const name = `${keyId(key)} ${scope}`;
        expected.set(name, (expected.get(name) ?? 0) + 1);
      }
    });
    let calling = true;
    const flushing = (async () => {
      while (calling) {
        await flush();
        await setImmediate(); // others have a turn where there was nothing to write
      }
    })();
    await Promise.all(lanes);
    calling = false;
    await flushing;
    await flush();
    const rows = await counted(members);
    expect(new Map(rows.map(({ app_id, scope, uses }) => [`${app_id} ${scope}`, uses]))).toEqual(expected);
    expect([...expected.values()].reduce((sum, uses) => sum + uses, 0)).toBeGreaterThan(500);
  }, 60_000);

  it('is kept where it cannot be written, and not counted twice', async () => {
    const member = await oauth.api.platform.user();
    const key = await oauth.api.key(member);
    await oauth.api.get('/me', key);
    await oauth.dataSource.query('ALTER TABLE member_usage RENAME TO member_usage_away');
    await flush();
    await oauth.api.get('/me', key);
    await oauth.dataSource.query('ALTER TABLE member_usage_away RENAME TO member_usage');
    await flush();
    await flush();
    expect(await counted([member])).toMatchObject([{ scope: 'profile:read', uses: 2 }]);
  });

  it('is written when a server ends, and at most one flush is lost where it is killed', async () => {
    const member = await oauth.api.platform.user();
    const key = await oauth.api.key(member);
    const ask = async (server: ServerProcess, times: number) => {
      for (let i = 0; i < times; i++) {
        const { status } = await fetch(`${server.url}/api/public/me`, { headers: { 'X-API-Key': key } });
        expect(status).toBe(200);
      }
    };
    if (!oauth.api.environment.DATABASE_URL) {
      // The embedded database is this process's own: ending a second server has no meaning here.
      await oauth.api.get('/me', key);
      await flush();
      expect(await counted([member])).toMatchObject([{ uses: 1 }]);
      return;
    }
    const ended = await ServerProcess.start(oauth.api.environment);
    await ask(ended, 5);
    await ended.kill('SIGTERM');
    expect(await counted([member])).toMatchObject([{ uses: 5 }]);
    const killed = await ServerProcess.start(oauth.api.environment);
    await ask(killed, 3);
    await killed.kill('SIGKILL');
    expect((await counted([member]))[0]!.uses).toBeGreaterThanOrEqual(5);
  }, 60_000);
});

postgres.describe('uses of a member who is erased', () => {
  it('go with them, and none comes after', async () => {
    const oauth = await OauthTest.start();
    try {
      const member = await oauth.api.platform.user();
      const key = await oauth.api.key(member);
      await oauth.api.get('/me', key);
      await oauth.api.app.get(Usage).flush();
      await oauth.api.get('/me', key);
      const platformKey = await oauth.api.platformKey();
      const erased = await oauth.api.feed(platformKey, [
        { type: 'users', op: 'delete', record: { id: member } },
      ]);
      expect(erased.body.deleted).toBe(1);
      await oauth.api.app.get(Usage).flush();
      expect(await oauth.dataSource.query('SELECT FROM member_usage WHERE user_id = $1', [member])).toEqual(
        [],
      );
    } finally {
      await oauth.close();
    }
  });
});
