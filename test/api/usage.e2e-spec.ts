import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DeveloperRequests } from '../../src/auth/usage/developer-requests.js';
import { USED } from '../../src/auth/usage/usage-tally.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { atOnce } from '../support/concurrent.js';
import { postgres, thorough } from '../support/database.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

interface Row {
  user_id: number;
  app_kind: 'client' | 'key';
  app_id: string;
  scope: string;
  uses: number;
}

describe('usage records', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start()));
  afterAll(() => oauth.close());

  const flush = () => oauth.api.app.get(Usage).flush();
  /** Over all days: a test may run at midnight. */
  const counted = (members: readonly number[]) =>
    oauth.query<Row>(
      `SELECT user_id, app_kind, app_id, scope, sum(uses)::integer AS uses FROM member_usage WHERE user_id = ANY ($1)
GROUP BY user_id, app_kind, app_id, scope ORDER BY user_id, app_kind, app_id, scope`,
      [members],
    );
  const keyId = (key: string) => key.split('_')[2]!;

  it('count successful requests that require a scope by member, app or key, and scope', async () => {
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

  it('exclude requests rejected for credential, scope, query, body, Origin or Accept, or a missing resource', async () => {
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
    const used = await oauth.query<object>('SELECT FROM api_key_usage WHERE key_id = $1 AND uses_count > 0', [
      keyId(key),
    ]);
    expect(used).toEqual([]);
    const { headers } = await oauth.api.get('/events', key);
    expect((await oauth.api.get('/events', key, { 'If-None-Match': headers.etag! })).status).toBe(304);
    await flush();
    expect(await counted([member.id])).toMatchObject([{ scope: 'events:read', uses: 2 }]);
  });

  thorough.it('are exact after 2,000 mixed requests, although flushes run meanwhile', async () => {
    const members = await atOnce(5, () => oauth.api.platform.user());
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
        await setImmediate(); // lets other work run if nothing had to be written
      }
    })();
    await Promise.all(lanes);
    calling = false;
    await flushing;
    await flush();
    const rows = await counted(members);
    expect(new Map(rows.map(({ app_id, scope, uses }) => [`${app_id} ${scope}`, uses]))).toEqual(expected);
    expect([...expected.values()].reduce((sum, uses) => sum + uses, 0)).toBeGreaterThan(500);
  });

  it('are kept while the database rejects writes, and then counted once', async () => {
    const { id: member, key } = await oauth.api.member();
    await oauth.api.get('/me', key);
    await oauth.query('ALTER TABLE member_usage RENAME TO member_usage_away');
    await flush();
    await oauth.api.get('/me', key);
    await oauth.query('ALTER TABLE member_usage_away RENAME TO member_usage');
    await flush();
    await flush();
    expect(await counted([member])).toMatchObject([{ scope: 'profile:read', uses: 2 }]);
  });

  it('are written at most 100 rows at a time', async () => {
    await oauth.query('CREATE TABLE written_at_once (rows integer)');
    const usage = oauth.api.app.get(Usage);
    const tally = usage.tally('a test', `INSERT INTO written_at_once SELECT count(*) FROM ${USED}`);
    for (let n = 0; n < 1_000; n++) tally.count(String(n));
    await tally.flush();
    const [written] = await oauth.query<{ all: number; most: number }>(
      'SELECT sum(rows)::integer AS all, max(rows) AS most FROM written_at_once',
    );
    expect(written!.all).toBe(1_000);
    expect(written!.most).toBeLessThanOrEqual(100);
    await oauth.query('DROP TABLE written_at_once');
  });

  it('are not the only record: DeveloperRequests gets each request, with the problem code if rejected', async () => {
    const told: object[] = [];
    const hear = jest.spyOn(oauth.api.app.get(DeveloperRequests), 'finished');
    hear.mockImplementation(({ context: { credentialId: key, problem }, principal }, status) => {
      told.push({ key, status, problem, accepted: principal !== undefined });
    });
    const member = await oauth.member();
    const key = await oauth.api.key(member.id, ['events:read']);
    const revoked = await oauth.api.key(member.id);
    await oauth.query(`UPDATE api_keys SET revoked_at = now(), revocation_reason = 'x' WHERE id = $1`, [
      keyId(revoked),
    ]);
    await oauth.api.get('/events', key);
    await oauth.api.get('/me', key);
    await oauth.api.get('/events', revoked);
    await oauth.api.send('GET', '/api/public/events');
    expect(told).toEqual([
      { key: keyId(key), status: 200, problem: undefined, accepted: true },
      { key: keyId(key), status: 403, problem: 'insufficient_scope', accepted: true },
      { key: keyId(revoked), status: 401, problem: 'invalid_credentials', accepted: false },
      { key: undefined, status: 401, problem: 'missing_credentials', accepted: false },
    ]);
    hear.mockRestore();
  });
});

postgres.it(
  'usage records of two servers are exact after 9,900 mixed requests; a killed server loses only its unwritten counts',
  async () => {
    const oauth = await OauthTest.start();
    // Tokens are issued for the API at that URL.
    const settings = { ...oauth.api.environment, PUBLIC_URL: oauth.issuer, RATE_LIMIT_READ: '0' };
    const servers = await Promise.all([ServerProcess.start(settings), ServerProcess.start(settings)]);
    try {
      const members = await atOnce(4, () => oauth.member());
      const client = await oauth.client();
      const credentials = await Promise.all(
        members.flatMap(({ id, username }) => [
          ...[undefined, ['events:read']].map(async (scopes) => {
            const key = await oauth.api.key(id, scopes);
            return { id, app: key.split('_')[2]!, header: { 'X-API-Key': key } };
          }),
          oauth.tokens(client, username).then(({ access_token }) => ({
            id,
            app: client,
            header: { Authorization: `Bearer ${access_token}` },
          })),
        ]),
      );
      const calls = [
        ['/me', 'profile:read', {}],
        ['/events?limit=1', 'events:read', {}],
        ['/events?limit=1', 'events:read', { 'If-None-Match': '*' }],
        ['/connections', 'connections:read', {}],
        ['/events/1', 'events:read', {}],
        ['/events?unknown=1', 'events:read', {}],
        ['/credential', null, {}],
      ] as const;
      const expected = new Map<string, number>();
      const ofKeys = new Map<string, number>();
      const statuses = new Set<number>();
      const ask = async (i: number, server: ServerProcess) => {
        const { id, app, header } = credentials[(i * 7) % credentials.length]!;
        const [path, scope, more] = calls[i % calls.length]!;
        const url = `${server.url}/api/public${path}`;
        const { status, body } = await fetch(url, { headers: { ...header, ...more } });
        await body?.cancel();
        statuses.add(status);
        if (status >= 400) return;
        if ('X-API-Key' in header) ofKeys.set(app, (ofKeys.get(app) ?? 0) + 1);
        const name = `${id} ${app} ${scope}`;
        if (scope !== null) expected.set(name, (expected.get(name) ?? 0) + 1);
      };
      const many = async (from: number, to: number, asked: readonly ServerProcess[]) => {
        let next = from;
        const lane = async () => {
          for (let i = next++; i < to; i = next++) await ask(i, asked[i % asked.length]!);
        };
        await Promise.all(Array.from({ length: 16 }, lane));
      };
      const stored = async () => {
        const used = await oauth.query<Row>(
          'SELECT user_id, app_id, scope, sum(uses)::integer AS uses FROM member_usage GROUP BY user_id, app_id, scope',
        );
        const keys = await oauth.query<{ key_id: string; uses: number }>(
          'SELECT key_id, uses_count::integer AS uses FROM api_key_usage',
        );
        return {
          uses: new Map(used.map((row) => [`${row.user_id} ${row.app_id} ${row.scope}`, row.uses])),
          keys: new Map(keys.map(({ key_id, uses }) => [key_id, uses])),
        };
      };
      await many(0, 9_900, servers);
      expect(statuses).toEqual(new Set([200, 304, 400, 403, 404]));
      await servers[0]!.kill('SIGTERM');
      // The account pages show only counts that their server has written.
      const browser = oauth.browser(servers[1]!.url);
      const page = await browser.view('/account/activity');
      await browser.submit(page, { username: members[0]!.username, password: PASSWORD });
      expect(await stored()).toEqual({ uses: expected, keys: ofKeys });
      const before = await stored();
      await many(9_900, 10_000, [servers[1]!]);
      await servers[1]!.kill('SIGKILL');
      const after = await stored();
      for (const [name, uses] of before.uses) {
        expect(after.uses.get(name)).toBeGreaterThanOrEqual(uses);
        expect(after.uses.get(name)).toBeLessThanOrEqual(expected.get(name)!);
      }
    } finally {
      for (const server of servers) await server.kill('SIGKILL');
      await oauth.close();
    }
  },
);

postgres.it('usage records are deleted with their member, and no record is added later', async () => {
  await using oauth = await OauthTest.start();
  const { id: member, key } = await oauth.api.member();
  await oauth.api.get('/me', key);
  await oauth.api.app.get(Usage).flush();
  await oauth.api.get('/me', key);
  const platformKey = await oauth.api.platformKey();
  const erased = await oauth.api.feed(platformKey, [{ type: 'users', op: 'delete', record: { id: member } }]);
  expect(erased.body.deleted).toBe(1);
  await oauth.api.app.get(Usage).flush();
  expect(await oauth.query('SELECT FROM member_usage WHERE user_id = $1', [member])).toEqual([]);
});
