import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { Upkeep } from '../../src/operations/upkeep.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { OauthTest, type Browser, type TokenBody } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

const DAY = 86_400;
const SCOPE = 'openid profile:read events:read';
const BOTH = ['events:read', 'profile:read'];
const NATIVE = 'com.example.app:/cb';
const TYPES = ['access.changed', 'access.ending', 'access.ended'];

let oauth: OauthTest;
let webhooks: WebhooksService;
let receiver: Receiver;
let clientId: string;
let endpoint: string;
beforeAll(async () => {
  oauth = await OauthTest.start();
  webhooks = new WebhooksService(oauth.dataSource, oauth.api.config);
  receiver = await Receiver.start();
});
afterAll(async () => {
  await oauth.close();
  await receiver.close();
});
beforeEach(async () => {
  receiver.received.length = 0;
  clientId = await oauth.client({ type: 'native', redirect_uris: [NATIVE] });
  endpoint = await endpointFor({ clientId }, TYPES);
});

const query = <Row>(sql: string, values: unknown[] = []) => oauth.query<Row>(sql, values);
const apps = () => new ConnectedApps(oauth.dataSource);
const keys = () => new ApiKeysService(oauth.dataSource, oauth.api.config);
const users = () => new UsersService(oauth.dataSource);
const sweep = () => oauth.api.app.get(Sweeper).sweep();
const noticeEnds = () => oauth.api.app.get(Upkeep).tellOfEndingAccess(new AbortController().signal);
const daysTo = (time: string) =>
  Math.round((Date.parse(`${time.replace(' ', 'T')}Z`) - Date.now()) / DAY / 1000);

const endpointFor = async (of: { clientId: string } | { keyId: string }, types: readonly string[]) =>
  (await webhooks.create({ url: receiver.url, types, ...of, actor: 'admin' })).id;

interface Told {
  readonly type: string;
  readonly member: number;
  readonly scopes: string[];
  readonly access_ends_at: string | null;
  readonly reason: string | null;
}

/** All messages to the endpoint, after the due messages are created. */
async function told(of = endpoint): Promise<Told[]> {
  await eventually(async () => (await query('SELECT FROM access_changes')).length === 0 || undefined);
  return query(
    `SELECT type, user_id AS member, details->'scopes' AS scopes, details->>'access_ends_at' AS access_ends_at, details->>'reason' AS reason
FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY sequence`,
    [of],
  );
}
const ofType = async (type: string) => (await told()).filter((message) => message.type === type);
const reasons = async () => (await told()).map(({ type, reason }) => [type, reason]);

/** Signs a member in, grants the app access of this duration, and redeems the code. */
async function access(
  username: string,
  duration: string,
  {
    browser = oauth.browser(),
    scope = SCOPE,
    prompt,
  }: { browser?: Browser; scope?: string; prompt?: string } = {},
): Promise<TokenBody> {
  const { url, verifier } = oauth.request(clientId, { scope, redirect_uri: NATIVE, prompt });
  const back = await browser.authorize(url, { username, duration });
  const { status, body } = await oauth.token({
    grant_type: 'authorization_code',
    client_id: clientId,
    code: back.searchParams.get('code')!,
    code_verifier: verifier,
    redirect_uri: NATIVE,
  });
  expect(status).toBe(200);
  return body;
}

interface Access {
  readonly id: number;
  readonly browser: Browser;
  readonly tokens: TokenBody;
}

describe('access.ended', () => {
  it.each<[string, string, (of: Access) => Promise<unknown>]>([
    [
      'the member ends the access on /account/apps',
      'member',
      async ({ browser }) => {
        await browser.submit(await browser.view('/account/apps'), {}, /\/apps\/revoke$/);
      },
    ],
    ['the member ends all access', 'member', ({ id }) => apps().revokeAll(id, { actor: 'user' })],
    ['an admin ends the access', 'platform', ({ id }) => apps().revoke(id, clientId, { actor: 'admin' })],
    ['an admin disables the member', 'platform', ({ id }) => users().disable(id, 'admin')],
    [
      'an admin erases the member',
      'platform',
      ({ id }) => eraseMembers(oauth.dataSource, [id], { actor: 'admin' }),
    ],
    [
      'an admin sets a password',
      'platform',
      ({ id }) => users().setPassword(id, 'seven herons wade', 'admin'),
    ],
    [
      'the app revokes a token',
      'app',
      ({ tokens }) => oauth.post('/oauth/revoke', { client_id: clientId, token: tokens.refresh_token }),
    ],
    [
      'the app uses a refresh token twice',
      'platform',
      async ({ tokens }) => {
        await oauth.refresh(clientId, tokens.refresh_token);
        await oauth.passTime(60);
        await oauth.refresh(clientId, tokens.refresh_token);
      },
    ],
    ['the access expires', 'expired', () => oauth.passTime(31 * DAY)],
  ])('is one message if %s', async (_, reason, end) => {
    const [{ id, username }, browser] = [await oauth.member(), oauth.browser()];
    const tokens = await access(username, '30', { browser });
    expect(await told()).toEqual([]);
    await end({ id, browser, tokens });
    for (let i = 0; i < 2; i++) await sweep();
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    expect(await told()).toEqual([
      { type: 'access.ended', member: id, scopes: BOTH, access_ends_at: at, reason },
    ]);
    expect((await oauth.refresh(clientId, tokens.refresh_token)).status).toBe(400);
    await sweep();
    expect(await told()).toHaveLength(1);
  });

  it.each([
    ['has not been used for 181 days', 'unlimited', 181 * DAY, 'unused'],
    ['for one time expires', 'once', 1_000, 'expired'],
  ])('is one message when access %s', async (_, duration, seconds, reason) => {
    await access((await oauth.member()).username, duration);
    await oauth.passTime(seconds);
    for (let i = 0; i < 3; i++) await sweep();
    expect(await reasons()).toEqual([['access.ended', reason]]);
  });

  it('is not sent for a code that the app did not redeem', async () => {
    const { id, username } = await oauth.member();
    const code = () => oauth.code(clientId, username, { redirect_uri: NATIVE });
    await code();
    await apps().revoke(id, clientId, { actor: 'user' });
    await code();
    await oauth.passTime(700);
    for (let i = 0; i < 3; i++) await sweep();
    expect(await query('SELECT FROM oauth_grants WHERE client_id = $1', [clientId])).toEqual([]);
    expect(await told()).toEqual([]);
  });

  it('is one message if a member ends several sign-ins, and is not sent while another sign-in remains', async () => {
    const { id, username } = await oauth.member();
    const tokens: TokenBody[] = [];
    for (let i = 0; i < 3; i++) tokens.push(await access(username, 'unlimited'));
    await oauth.post('/oauth/revoke', { client_id: clientId, token: tokens[0]!.refresh_token });
    expect(await told()).toEqual([]);
    await apps().revoke(id, clientId, { actor: 'user' });
    expect(await reasons()).toEqual([['access.ended', 'member']]);
  });

  it('is one message if two sign-ins end at the same time', async () => {
    const { username } = await oauth.member();
    const tokens = [await access(username, 'unlimited'), await access(username, 'unlimited')];
    await Promise.all(
      tokens.map(({ refresh_token: token }) => oauth.post('/oauth/revoke', { client_id: clientId, token })),
    );
    expect(await reasons()).toEqual([['access.ended', 'app']]);
  });

  it('is delivered after all other messages about the member, and no message follows', async () => {
    const { id, username } = await oauth.member();
    const settled = () =>
      eventually(async () => {
        const pending = await query(`SELECT FROM webhook_deliveries WHERE status = 'pending'`);
        return pending.length === 0 || undefined;
      });
    await settled(); // messages of other tests
    receiver.received.length = 0;
    await endpointFor({ clientId }, ['profile.updated', 'access.ended']);
    await access(username, '30');
    const rename = (bio: string) => query('UPDATE users SET bio = $2 WHERE id = $1', [id, bio]);
    let first = true;
    receiver.respond = (_, response) => {
      response.writeHead(first ? 503 : 204).end();
      first = false;
    };
    await rename('one');
    await receiver.untilReceived(1);
    await rename('two');
    await apps().revoke(id, clientId, { actor: 'user' });
    await rename('three');
    await query(`UPDATE webhook_deliveries SET due_at = now() WHERE status = 'pending'`);
    await receiver.until(
      () => receiver.received.filter(({ message }) => message.type === 'access.ended').length === 2,
    );
    await oauth.api.platform.settleChanges();
    await settled();
    const types = receiver.received.map(({ message }) => message.type);
    expect(types.lastIndexOf('profile.updated')).toBeLessThan(types.indexOf('access.ended'));
    const last = receiver.received.at(-1)!.message;
    expect(last).toEqual({
      type: 'access.ended',
      timestamp: expect.any(String),
      data: { member_id: id, scopes: BOTH, access_ends_at: expect.any(String), reason: 'member' },
    });
  });

  it('is not sent to another app', async () => {
    const { id, username } = await oauth.member();
    await access(username, '30');
    const elsewhere = await endpointFor({ clientId: await oauth.client() }, TYPES);
    await apps().revoke(id, null, { actor: 'user' });
    expect([await told(elsewhere), await reasons()]).toEqual([[], [['access.ended', 'member']]]);
  });
});

describe('access.changed', () => {
  it('is one message when the end of access changes', async () => {
    const { id, username } = await oauth.member();
    for (let i = 0; i < 2; i++) await access(username, 'unlimited');
    await apps().changeEnd(id, clientId, '180', { actor: 'user', ip: null });
    const [message, ...others] = await told();
    expect([message, others]).toEqual([
      { type: 'access.changed', member: id, scopes: BOTH, access_ends_at: expect.any(String), reason: null },
      [],
    ]);
    expect(daysTo(message!.access_ends_at!)).toBe(180);
  });

  it('is sent for scopes that a sign-in adds or the member removes, and not if the access stays the same', async () => {
    const { username } = await oauth.member();
    await access(username, 'unlimited', { scope: 'openid profile:read' });
    await access(username, 'unlimited', { scope: 'openid profile:read' });
    expect(await told()).toEqual([]);
    await access(username, 'unlimited');
    expect((await told()).map(({ type, scopes }) => [type, scopes])).toEqual([['access.changed', BOTH]]);
    const browser = oauth.browser();
    const { url } = oauth.request(clientId, { scope: SCOPE, redirect_uri: NATIVE });
    await browser.authorize(url, { username, untick: ['events:read'], duration: 'unlimited' });
    expect((await told()).map(({ scopes }) => scopes)).toEqual([BOTH, ['profile:read']]);
  });
});

describe('access.ending', () => {
  const use = (daysAgo: number) =>
    query(
      `INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() - make_interval(days => $2) FROM oauth_grants WHERE client_id = $1
ON CONFLICT (grant_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at`,
      [clientId, daysAgo],
    );

  it('is one message if access that was used within 30 days ends within 7 days', async () => {
    const { id, username } = await oauth.member();
    await access(username, '180');
    await access(username, '180');
    await use(0);
    await oauth.passTime(172 * DAY);
    await noticeEnds();
    expect(await ofType('access.ending')).toEqual([]);
    await oauth.passTime(2 * DAY);
    await use(31);
    await noticeEnds();
    expect(await ofType('access.ending')).toEqual([]);
    await use(29);
    await Promise.all([noticeEnds(), noticeEnds(), noticeEnds()]);
    await noticeEnds();
    const [message, ...others] = await ofType('access.ending');
    expect([message, others]).toEqual([
      { type: 'access.ending', member: id, scopes: BOTH, access_ends_at: expect.any(String), reason: null },
      [],
    ]);
    expect(daysTo(message!.access_ends_at!)).toBe(6);
  });

  it('is sent again, also to the member, before the new end of extended access', async () => {
    const { id, username } = await oauth.member();
    const { refresh_token } = await access(username, '30');
    const warnAfter = async (days: number) => {
      await oauth.passTime(days * DAY);
      await use(0);
      await noticeEnds();
      await oauth.api.app.get(Upkeep).reportEndingAccess(new AbortController().signal);
    };
    await warnAfter(25);
    await apps().changeEnd(id, clientId, '180', { actor: 'user', ip: null });
    expect((await oauth.refresh(clientId, refresh_token)).status).toBe(200);
    await warnAfter(175);
    const messages = await ofType('access.ending');
    expect(messages.map(({ access_ends_at }) => daysTo(access_ends_at!))).toEqual([5, 5]);
    expect(await oauth.events({ user: id, type: 'access.ending' })).toHaveLength(2);
  });

  it('is sent even if unused grants with an earlier end fill the first batch', async () => {
    for (let i = 0; i < 3; i++) await access((await oauth.member()).username, '30');
    const { id, username } = await oauth.member();
    await access(username, '30');
    await oauth.passTime(25 * DAY);
    await use(31);
    await query(
      `UPDATE oauth_grant_usage SET last_used_at = now() WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)`,
      [id],
    );
    const grants = await query<{ id: string }>(
      'SELECT id FROM oauth_grants WHERE client_id = $1 ORDER BY access_ends_at',
      [clientId],
    );
    const look = async (after: object) => {
      const statement = 'SELECT tell_of_ending_access(2, $1::jsonb) AS last';
      const [row] = await query<{ last: object | null }>(statement, [JSON.stringify(after)]);
      return row!.last ?? undefined; // null while the server's periodic work runs
    };
    const last = await eventually(() => look({ client: clientId }));
    expect(last).toMatchObject({ client: clientId, id: grants[1]!.id });
    const messages = await eventually(async () => {
      await look(last);
      const found = await ofType('access.ending');
      return found.length > 0 ? found : undefined;
    });
    expect(messages.map(({ member }) => member)).toEqual([id]);
  });

  it('is not sent while another sign-in lasts longer', async () => {
    const { username } = await oauth.member();
    await access(username, '30');
    await oauth.passTime(25 * DAY);
    await access(username, '180');
    await use(0);
    await noticeEnds();
    expect(await ofType('access.ending')).toEqual([]);
  });
});

describe('A key', () => {
  const withKey = async (days: number) => {
    const userId = await oauth.api.platform.user();
    const lifetime = { expiresInSeconds: days * DAY, actor: 'admin' } as const;
    const keyId = (await oauth.api.key(userId, ['events:read'], lifetime)).split('_')[2]!;
    const of = await endpointFor({ keyId }, ['credential.ending', 'credential.ended']);
    return { userId, keyId, of };
  };
  const reasonsOf = async (of: string) => (await told(of)).map(({ type, reason }) => [type, reason]);

  it('that expires causes one message within 7 days before its expiry, and one message at its expiry', async () => {
    const { userId, keyId, of } = await withKey(8);
    await noticeEnds();
    expect(await told(of)).toEqual([]);
    const pass = (days: number) =>
      query('UPDATE api_keys SET expires_at = expires_at - make_interval(days => $2) WHERE id = $1', [
        keyId,
        days,
      ]);
    await pass(2);
    for (let i = 0; i < 2; i++) await noticeEnds();
    const message = { member: userId, scopes: ['events:read'], access_ends_at: expect.any(String) };
    expect(await told(of)).toEqual([{ type: 'credential.ending', ...message, reason: null }]);
    await pass(7);
    for (let i = 0; i < 2; i++) await noticeEnds();
    expect((await told(of)).slice(1)).toEqual([{ type: 'credential.ended', ...message, reason: 'expired' }]);
    await receiver.until(() =>
      receiver.received.some(
        ({ message: { type, data } }) => type === 'credential.ended' && data.member_id === userId,
      ),
    );
  });

  it.each([
    ['user', 'member'],
    ['admin', 'platform'],
  ] as const)('that the actor %s revokes causes one message with the reason %s', async (actor, reason) => {
    const { keyId, of } = await withKey(90);
    await keys().revoke(keyId, 'lost', actor);
    for (let i = 0; i < 2; i++) await noticeEnds();
    expect(await reasonsOf(of)).toEqual([['credential.ended', reason]]);
  });

  it('that is rotated is not reported as ended to its endpoints', async () => {
    const { keyId, of } = await withKey(90);
    await keys().rotate(keyId, 0, 'admin');
    await noticeEnds();
    expect(await told(of)).toEqual([]);
  });
});

describe('An endpoint', () => {
  it.each([
    ['of an app', 'credential.ended', 'an API key'],
    ['of a key', 'access.ended', 'an app'],
    ['of the platform', 'access.changed', 'an app'],
  ])('%s cannot have the type %s', async (kind, type, whose) => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    const of = kind === 'of an app' ? { clientId } : kind === 'of a key' ? { keyId: key.split('_')[2]! } : {};
    await expect(
      webhooks.create({ url: receiver.url, types: [type], ...of, actor: 'admin' }),
    ).rejects.toThrow(`The type ${type} is for webhooks of ${whose}`);
  });
});
