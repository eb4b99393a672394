import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { closeApp, createApp } from '../../src/app.js';
import { SignInMethods } from '../../src/accounts/sign-in/sign-in-methods.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../src/auth/credential-cache.js';
import { Database } from '../../src/database/database.js';
import type { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { MAX_CONCURRENT } from '../../src/http/pipeline/entry-point.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { Upkeep } from '../../src/operations/upkeep.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import type { PlatformChangeItem, PlatformChangesAnswer } from '../../src/platform/changes.dto.js';
import { PlatformChangesService } from '../../src/platform/changes.service.js';
import { hold, postgres, thorough, waitingForLock } from '../support/database.js';
import { freePort, OauthTest } from '../support/oauth.js';
import { eventually, until } from '../support/timing.js';

describe('GET /api/platform/changes', () => {
  let oauth: OauthTest;
  let key: string;
  /** The cursor after all changes before the test. */
  let start: string;

  beforeAll(async () => {
    oauth = await OauthTest.start();
    key = await oauth.api.platformKey(['platform:read']);
  });
  afterAll(() => oauth.close());
  beforeEach(async () => {
    await oauth.api.platform.settleChanges();
    start = (await list('?limit=1000')).next;
  });

  const get = (query = '', credential = key) =>
    oauth.api.send('GET', `/api/platform/changes${query}`, { 'X-API-Key': credential });
  const list = async (query = ''): Promise<PlatformChangesAnswer> => {
    const { status, body } = await get(query);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body as PlatformChangesAnswer;
  };
  /** All new changes, after all transactions in progress have ended. */
  const news = async (more = '') => {
    await oauth.api.platform.settleChanges();
    return (await list(`?after=${start}&limit=1000${more}`)).data;
  };
  const said = (items: PlatformChangeItem[]) =>
    items.map((item) => {
      const { sequence: _sequence, at: _at, notice, name, ...rest } = item;
      return notice === null ? rest : { ...rest, notice, name };
    });
  /** The member's notices since the test began. */
  const notices = async (userId: number) =>
    (await news('&types=notice'))
      .filter(({ member_id }) => member_id === userId)
      .map(({ notice, by, name }) => ({ notice, by, name }));
  const member = () => oauth.api.member({ first_name: 'Ada', bio: 'old' });
  const put = async (credential: string, body: object, headers = {}) =>
    (await oauth.api.put('/profile', credential, body, headers)).status;

  describe('reports for a profile', () => {
    it('each changed field with its new value, and the time and the key or app of the change', async () => {
      const one = await member();
      expect(await put(one.key, { bio: 'new', first_name: null, last_name: 'Lovelace' })).toBe(200);
      const clientId = await oauth.client();
      const other = await oauth.member();
      const { access_token } = await oauth.tokens(clientId, other.username);
      await fetch(`${oauth.issuer}/api/public/profile`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' },
        body: '{"bio":"by an app"}',
      });
      const found = await news('&types=profile.updated');
      expect(said(found)).toEqual([
        {
          type: 'profile.updated',
          member_id: one.id,
          by: one.key.split('_')[2],
          fields: { bio: 'new', first_name: null, last_name: 'Lovelace' },
          scopes: [],
        },
        {
          type: 'profile.updated',
          member_id: other.id,
          by: clientId,
          fields: { bio: 'by an app' },
          scopes: [],
        },
      ]);
      expect(found[0]!.at).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
      expect(new Set(found.map(({ sequence }) => sequence)).size).toBe(2);
    });

    it('no unchanged field, no rejected change, and no field that the platform wrote to the database', async () => {
      const { id: userId, key: ada } = await member();
      expect(await put(ada, { bio: 'old', first_name: 'Ada' })).toBe(200);
      expect(await put(ada, { bio: 'lost' }, { 'If-Match': '"0-0"' })).toBe(412);
      expect(await put(ada, { bio: 7 })).toBe(422);
      await oauth.query(`UPDATE users SET bio = 'from the platform' WHERE id = $1`, [userId]);
      expect(await put(ada, { bio: 'from the platform', first_name: 'Grace' })).toBe(200);
      expect(said(await news())).toEqual([
        expect.objectContaining({ member_id: userId, fields: { first_name: 'Grace' } }),
      ]);
    });

    postgres.it('a field that a concurrent change made different from the requested value', async () => {
      const { id: userId, key: ada } = await member();
      const writer = await hold(oauth.dataSource, `UPDATE users SET bio = 'between' WHERE id = $1`, [userId]);
      const waiting = put(ada, { bio: 'old' }); // equals the profile at the start of the request, but not when the server writes
      await waitingForLock(oauth.dataSource, 'UPDATE users');
      await writer.commit();
      expect(await waiting).toBe(200);
      expect(said(await news())).toEqual([
        expect.objectContaining({ member_id: userId, fields: { bio: 'old' } }),
      ]);
    });
  });

  describe('reports consents and sign-ins', () => {
    it('with the app and the scopes of each granted or revoked consent', async () => {
      const clientId = await oauth.client();
      const { id, username } = await oauth.member();
      await oauth.tokens(clientId, username, { scope: 'openid events:read profile:read' });
      await new ConnectedApps(oauth.dataSource).revoke(id, clientId, { actor: 'user' });
      const item = { member_id: id, by: clientId, fields: null, scopes: [] };
      const scopes = ['events:read', 'openid', 'profile:read'];
      expect(said(await news())).toEqual([
        { ...item, type: 'member.signed_in', by: null },
        { ...item, type: 'consent.granted', scopes },
        { ...item, type: 'notice', notice: 'consent.granted', name: 'Test app' },
        { ...item, type: 'consent.revoked', scopes },
      ]);
    });

    it('except rejected sign-ins and denied consents', async () => {
      const clientId = await oauth.client();
      const { username } = await oauth.member();
      const { url } = oauth.request(clientId, { scope: 'events:read' });
      await oauth.browser().authorize(url, { username, deny: true });
      await expect(oauth.browser().authorize(url, { username, password: 'wrong' })).rejects.toThrow();
      expect(said(await news())).toEqual([expect.objectContaining({ type: 'member.signed_in' })]);
    });
  });

  describe('has one notice to the member', () => {
    const keys = () => new ApiKeysService(oauth.dataSource, oauth.api.config);
    const newKey = { name: 'Calendar', scopes: [], environment: 'live', cidrs: [] } as const;

    it('when an app first gets access, and another when the app gets access again after its removal', async () => {
      const clientId = await oauth.client();
      const { id, username } = await oauth.member();
      const notice = { notice: 'consent.granted', by: clientId, name: 'Test app' };
      await oauth.tokens(clientId, username, { scope: 'openid profile:read' });
      await oauth.tokens(clientId, username, { scope: 'openid profile:read events:read' });
      expect(await notices(id)).toEqual([notice]);
      await new ConnectedApps(oauth.dataSource).revoke(id, clientId, { actor: 'user' });
      await oauth.tokens(clientId, username, { scope: 'openid profile:read' });
      expect(await notices(id)).toEqual([notice, notice]);
    });

    it('for each new or rotated key of a member, but not for a platform key or a key that the system creates', async () => {
      const userId = await oauth.api.platform.user();
      const { id } = await keys().create({ ...newKey, userId, expiresInSeconds: 3600, actor: 'admin' });
      const { id: next } = await keys().rotate(id, 0, 'admin');
      await keys().create({ ...newKey, userId, expiresInSeconds: 3600, actor: 'system' });
      await keys().create({
        ...newKey,
        userId: null,
        scopes: ['platform:read'],
        noExpiryReason: 'a test',
        actor: 'admin',
      });
      expect((await news('&types=notice')).map(({ notice, by, name }) => [notice, by, name])).toEqual([
        ['key.created', id, 'Calendar'],
        ['key.rotated', next, 'Calendar'],
      ]);
    });

    it('about each new calendar link, removed passkey and new password', async () => {
      const userId = await oauth.api.platform.user();
      await oauth.api.app.get(CalendarLinks).create(userId, 'Phone', { actor: 'user', ip: null });
      const passkey = await oauth.api.platform.passkey(userId, 'Laptop');
      await oauth.api.app.get(SignInMethods).removeLostPasskey(userId, passkey);
      await new UsersService(oauth.dataSource).setPassword(userId, 'a password of the test', 'admin');
      expect(await notices(userId)).toEqual([
        { notice: 'calendar_link.created', by: null, name: 'Phone' },
        { notice: 'passkey.removed', by: null, name: null },
        { notice: 'user.password_set', by: null, name: null },
      ]);
    });

    it('about a recently used key that expires within 7 days, even after several checks', async () => {
      const userId = await oauth.api.platform.user();
      const make = async (days: number, usedDaysAgo?: number) => {
        const { id } = await keys().create({
          ...newKey,
          userId,
          expiresInSeconds: days * 86_400,
          actor: 'system',
        });
        if (usedDaysAgo !== undefined)
          await oauth.query(
            `INSERT INTO api_key_usage (key_id, last_used_at) VALUES ($1, now() - make_interval(days => $2))`,
            [id, usedDaysAgo],
          );
        return id;
      };
      const [ending, rotated] = [await make(6, 1), await make(6, 1)];
      for (const [days, usedDaysAgo] of [[8, 1], [6, 8], [6]]) await make(days!, usedDaysAgo);
      await keys().revoke(await make(6, 1), 'a test', 'admin');
      await keys().rotate(rotated, 86_400, 'system');
      const check = () => oauth.api.app.get(Upkeep).reportEndingKeys(new AbortController().signal);
      await Promise.all([check(), check(), check()]);
      await check();
      expect(await notices(userId)).toEqual([{ notice: 'key.ending', by: ending, name: 'Calendar' }]);
    });

    it('about recently used access that ends within 7 days, even after several checks and another sign-in', async () => {
      const { id, username } = await oauth.member();
      const grants = async (days: number, usedDaysAgo: number) => {
        const clientId = await oauth.client({ name: 'Diary' });
        await oauth.tokens(clientId, username);
        const end = async () => {
          await oauth.query(
            'UPDATE oauth_grants SET access_ends_at = date_trunc($3, now()) + make_interval(days => $2) WHERE client_id = $1',
            [clientId, days, 'hour'],
          );
          await oauth.query(
            `INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() - make_interval(days => $2) FROM oauth_grants
WHERE client_id = $1 ON CONFLICT DO NOTHING`,
            [clientId, usedDaysAgo],
          );
        };
        await end();
        return { clientId, end };
      };
      const { clientId, end } = await grants(6, 1);
      await grants(20, 1);
      await grants(6, 8);
      const ended = await grants(6, 1);
      await new ConnectedApps(oauth.dataSource).revoke(id, ended.clientId, { actor: 'user' });
      const check = () => oauth.api.app.get(Upkeep).reportEndingAccess(new AbortController().signal);
      await Promise.all([check(), check(), check()]);
      await oauth.tokens(clientId, username);
      await end();
      await check();
      expect((await notices(id)).filter(({ notice }) => notice !== 'consent.granted')).toEqual([
        { notice: 'access.ending', by: clientId, name: 'Diary' },
      ]);
    });

    it('about access that ends soon, found in batches of limited size, each after the previous batch', async () => {
      const clientId = await oauth.client();
      for (let i = 0; i < 3; i++) await oauth.tokens(clientId, (await oauth.member()).username);
      const { dataSource } = oauth;
      // This access ends before the access of other tests. The server's periodic work treats it as unused.
      const end = `UPDATE oauth_grants SET access_ends_at = now() + interval '1 minute' WHERE client_id = $1`;
      await dataSource.query(end, [clientId]);
      const find = 'SELECT id FROM oauth_grants WHERE client_id = $1 ORDER BY id';
      const [, second, third] = await dataSource.query<{ id: string }[]>(find, [clientId]);
      const look = (most: number, after: object | null) =>
        eventually(async () => {
          const statement = 'SELECT report_ending_access($1, $2::jsonb) AS last';
          const values = [most, JSON.stringify(after)];
          const [row] = await dataSource.query<{ last: object | null }[]>(statement, values);
          return row!.last ?? undefined; // null while the server's periodic work runs
        });
      const last = await look(2, null);
      expect(last).toMatchObject(second!);
      expect(await look(1, last)).toMatchObject(third!);
    });

    it('when an app gets one-time access, and when it gets access after the previous access has ended', async () => {
      const [clientId, { id, username }] = [await oauth.client({ name: 'Diary' }), await oauth.member()];
      const signIn = (duration: string) =>
        oauth.browser().authorize(oauth.request(clientId).url, { username, duration });
      const given = async () => (await notices(id)).map(({ notice }) => notice);
      await signIn('once');
      expect(await given()).toEqual(['consent.granted']);
      await signIn('once'); // the first access has not ended
      expect(await given()).toHaveLength(1);
      await oauth.passTime(86_400);
      await signIn('30');
      expect(await given()).toHaveLength(2);
      await oauth.passTime(86_400);
      await oauth.browser().authorize(oauth.request(clientId, { prompt: 'consent' }).url, { username });
      expect(await given()).toHaveLength(2);
    });

    it('but none about a change that is rolled back', async () => {
      const userId = await oauth.api.platform.user();
      const failed = oauth.dataSource.transaction(async (manager) => {
        await keys().create({ ...newKey, userId, expiresInSeconds: 3600, actor: 'admin' }, manager);
        throw new Error('undone');
      });
      await expect(failed).rejects.toThrow('undone');
      expect(await notices(userId)).toEqual([]);
    });
  });

  describe('returns changes', () => {
    it('page by page, the oldest first, each change once, filtered by type if requested', async () => {
      const { key: ada } = await member();
      for (let i = 0; i < 5; i++) await put(ada, { bio: `bio ${i}` });
      await oauth.api.platform.settleChanges();
      const bios: unknown[] = [];
      let after = start;
      for (let more = true; more;) {
        const page = await list(`?after=${after}&limit=2`);
        expect(page.data.length).toBeLessThanOrEqual(2);
        bios.push(...page.data.map(({ fields }) => fields!.bio));
        ({ next: after, more } = page);
      }
      expect(bios).toEqual(['bio 0', 'bio 1', 'bio 2', 'bio 3', 'bio 4']);
      expect((await list(`?after=${after}`)).data).toEqual([]);
      expect(await news('&types=consent.granted,member.signed_in')).toEqual([]);
      expect(await news('&types=profile.updated')).toHaveLength(5);
      // Without a cursor, the oldest comes first.
      expect((await list('?limit=1')).data).toHaveLength(1);
    });

    it('with more=true if more changes follow, and with more=false on a full last page', async () => {
      const { key: ada } = await member();
      for (let i = 0; i < 3; i++) await put(ada, { bio: `bio ${i}` });
      await oauth.api.platform.settleChanges();
      const isMore = async (limit: number) => (await list(`?after=${start}&limit=${limit}`)).more;
      expect([await isMore(2), await isMore(3), await isMore(4)]).toEqual([true, false, false]);
    });

    postgres.it('only after earlier transactions have ended, so that no change is missed', async () => {
      const first = await member();
      const second = await member();
      const writer = await hold(
        oauth.dataSource,
        `INSERT INTO platform_changes (type, user_id, fields) VALUES ('profile.updated', $1, '{"bio":"earlier"}')`,
        [first.id],
      );
      expect(await put(second.key, { bio: 'later' })).toBe(200);
      const before = await list(`?after=${start}`);
      expect(before.data).toEqual([]);
      await writer.commit();
      await oauth.api.platform.settleChanges();
      const { data } = await list(`?after=${before.next}`);
      expect(data.map(({ fields }) => fields!.bio)).toEqual(['earlier', 'later']);
    });

    it.each([
      ['no dump', 0],
      ['a dump with positions above the server’s', 9_000_000_000_000],
    ])('or 410 if the sweeper has deleted changes after the cursor (restored: %s)', async (_, swept) => {
      await oauth.query(`UPDATE change_places SET changed_in = ${swept} WHERE name = 'platform_swept'`);
      const { key: ada } = await member();
      await put(ada, { bio: 'swept' });
      await oauth.api.platform.settleChanges();
      const { next: kept } = await list(`?after=${start}`);
      await oauth.query(`UPDATE platform_changes SET changed_at = changed_at - interval '31 days'`);
      await oauth.api.app.get(Sweeper).sweep();
      const gone = await get(`?after=${start}`);
      expect([gone.status, gone.body.code]).toEqual([410, 'cursor_expired']);
      expect((await list(`?after=${kept}`)).data).toEqual([]);
      expect((await list()).data).toEqual([]);
    });

    it('or 410 to a cursor from before a restore, also into the same cluster', async () => {
      const { next } = await list(`?after=${start}`);
      await oauth.api.platform.restore();
      expect((await get(`?after=${next}`)).body.code).toBe('cursor_expired');
      expect((await list()).next).not.toBe(next);
    });

    it.each(['wait=31', 'wait=-1', 'limit=0', 'limit=1001', 'types=profile.burned', 'after=x', 'since=1'])(
      'only for valid parameters, not for %s',
      async (query) => {
        expect((await get(`?${query}`)).status).toBe(400);
      },
    );

    it('only to a platform key with platform:read', async () => {
      const statusWith = async (credential: string) => (await get('', credential)).status;
      expect(await statusWith(await oauth.api.platformKey(['platform:write']))).toBe(403);
      expect(await statusWith((await member()).key)).toBe(403);
      expect(await statusWith('nothing')).toBe(401);
    });

    it('except changes of an erased member', async () => {
      const { id: userId, key: ada } = await member();
      await put(ada, { bio: 'secret' });
      await oauth.dataSource.transaction((manager) => eraseMembers(manager, [userId], { actor: 'admin' }));
      expect(await news()).toEqual([]);
    });
  });

  describe('with wait', () => {
    const admission = () => (oauth.api.app.getHttpAdapter() as ApiAdapter).entryPoint.admissions.platform;
    const waiting = (app = oauth.api.app) =>
      eventually(() => app.get(PlatformChangesService).waiting > 0 || undefined);

    /** Asks again after each wait: a change is readable when all earlier transactions have ended, even in other databases. */
    const first = async (after: string): Promise<PlatformChangeItem[]> => {
      const { data, next } = await list(`?after=${after}&wait=30`);
      return data.length > 0 ? data : first(next);
    };

    it('responds at the first change, and occupies no slot and no database connection while it waits', async () => {
      const { id: userId, key: ada } = await member();
      const answer = first(start);
      await waiting();
      const idle = () =>
        admission().state().atWork === 0 && oauth.api.app.get(Database).poolState().busy === 0;
      await eventually(() => idle() || undefined);
      await put(ada, { bio: 'at last' });
      expect(said(await answer)).toEqual([
        expect.objectContaining({ member_id: userId, fields: { bio: 'at last' } }),
      ]);
      expect(admission().state().atWork).toBe(0);
    });

    postgres.it('responds to each of 100 callers that waited for the same change', async () => {
      const { key: ada } = await member();
      const answers: ReturnType<typeof get>[] = [];
      // In small groups: if more callers than slots arrive at once, a slow host rejects some before they wait.
      while (answers.length < 100) {
        for (let n = 0; n < 20; n++) answers.push(get(`?after=${start}&wait=30`));
        await until(() => oauth.api.app.get(PlatformChangesService).waiting === answers.length);
      }
      await put(ada, { bio: 'for all' });
      expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]));
    });

    thorough.it('responds after the wait time with an empty page, and a cursor to continue', async () => {
      const { data, next, more } = await list(`?after=${start}&wait=1`);
      expect([data, more]).toEqual([[], false]);
      const { key: ada } = await member();
      await put(ada, { bio: 'later' });
      await oauth.api.platform.settleChanges();
      expect((await list(`?after=${next}`)).data).toHaveLength(1);
    });

    thorough.it('ignores changes of types that the caller did not request', async () => {
      const { key: ada } = await member();
      const answer = list(`?after=${start}&wait=2&types=member.signed_in`);
      await waiting();
      await put(ada, { bio: 'not asked for' });
      expect((await answer).data).toEqual([]);
    });

    it('stops waiting for a disconnected caller', async () => {
      const gone = new AbortController();
      const asked = fetch(`${oauth.issuer}/api/platform/changes?after=${start}&wait=30`, {
        headers: { 'X-API-Key': key },
        signal: gone.signal,
      }).catch((error: Error) => error.name);
      await waiting();
      gone.abort();
      expect(await asked).toBe('AbortError');
      await eventually(() => oauth.api.app.get(PlatformChangesService).waiting === 0 || undefined);
    });

    async function revoke(revoked: string): Promise<void> {
      const keys = new ApiKeysService(oauth.dataSource, oauth.api.config);
      await keys.revoke(revoked.split('_')[2]!, 'leaked', 'admin');
      await until(() => oauth.api.app.get(CredentialCache).find('api_key', revoked) === undefined);
    }

    it('rejects a long poll whose key is revoked while it waits', async () => {
      const { key: ada } = await member();
      const revoked = await oauth.api.platformKey(['platform:read']);
      const answer = get(`?after=${start}&wait=30`, revoked);
      await waiting();
      await revoke(revoked);
      await put(ada, { bio: 'after the revocation' });
      const { status, body } = await answer;
      expect([status, body.code, body.data]).toEqual([401, 'invalid_credentials', undefined]);
    });

    it('rejects a long poll whose key is revoked after a change, while it waits for a slot', async () => {
      const { key: ada } = await member();
      const revoked = await oauth.api.platformKey(['platform:read']);
      const answer = get(`?after=${start}&wait=30`, revoked);
      await waiting();
      await until(() => admission().state().atWork === 0);
      for (let n = 0; n < MAX_CONCURRENT; n++)
        admission().enter({ address: '192.0.2.1', credential: '' }, () => undefined);
      await put(ada, { bio: 'before the revocation' });
      await until(() => admission().state().waiting === 1);
      await revoke(revoked);
      for (let n = 0; n < MAX_CONCURRENT; n++) admission().leave();
      const { status, body } = await answer;
      expect([status, body.code, body.data]).toEqual([401, 'invalid_credentials', undefined]);
    });

    it('responds with an empty page when the server shuts down', async () => {
      const port = await freePort();
      const app = await createApp({ ...oauth.api.config, port });
      await app.listen(port, '127.0.0.1');
      const answer = fetch(`http://127.0.0.1:${port}/api/platform/changes?after=${start}&wait=30`, {
        headers: { 'X-API-Key': key },
      });
      await waiting(app);
      await closeApp(app);
      const response = await answer;
      expect([response.status, ((await response.json()) as PlatformChangesAnswer).data]).toEqual([200, []]);
    });
  });
});
