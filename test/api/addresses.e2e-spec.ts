import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Usage } from '../../src/auth/usage/usage.js';
import { thorough } from '../support/database.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';
import { freshAddress, itInOneWindow } from '../support/windows.js';

const SOCKET = '127.0.0.1';

/** Values of X-Forwarded-For that proxies write, and the addresses that these values mean. */
const ENTRIES = [
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:4711', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['[2001:DB8::1]:443', '2001:db8::1'],
  ['2001:db8::1%eth0', '2001:db8::1'],
  ['198.51.100.1, 203.0.113.7:4711', '203.0.113.7'],
  ['unknown', SOCKET],
  ['_hidden', SOCKET],
  ['198.51.100.1, unknown', SOCKET],
  ['', SOCKET],
  [',', SOCKET],
  ['203.0.113.300', SOCKET],
  ["'; DROP TABLE users", SOCKET],
  ['a'.repeat(60), SOCKET],
] as const;

describe('a client address behind a proxy', () => {
  let oauth: OauthTest;
  beforeAll(
    async () =>
      void (oauth = await OauthTest.start({
        trustProxy: 1,
        rateLimits: { read: 1000, write: 1000, auth: 3 },
      })),
  );
  afterAll(() => oauth.close());

  thorough.it.each(ENTRIES)(
    'sent as %j is recorded as %s in the audit event and session of a sign-in',
    async (entry, address) => {
      const { id, username } = await oauth.member();
      const browser = oauth.browser();
      browser.headers['X-Forwarded-For'] = entry;
      const page = await browser.view('/account/sessions');
      const after = await browser.press(page, { username, password: PASSWORD }, /\/sign-in$/);
      expect([after.status, after.url.pathname]).toEqual([200, '/account/sessions']);
      const recorded = await oauth.query(
        `SELECT host(ip) AS ip FROM auth_events WHERE user_id = $1 AND type = 'sign_in.succeeded'
       UNION ALL SELECT host(ip) FROM oauth_sessions WHERE user_id = $1`,
        [id],
      );
      expect(recorded).toEqual([{ ip: address }, { ip: address }]);
    },
  );

  it.each(ENTRIES)('sent as %j is compared with a key’s allowed networks as %s', async (entry, address) => {
    const key = async (network: string) =>
      oauth.api.key((await oauth.member()).id, ['profile:read'], { cidrs: [network] });
    const inside = await key(address.includes(':') ? '2001:db8::/64' : `${address}/32`);
    const outside = await key('192.0.2.0/24');
    const get = (value: string) => oauth.api.get('/me', value, { 'X-Forwarded-For': entry });
    expect((await get(inside)).status).toBe(200);
    expect((await get(outside)).body.code).toBe('ip_not_allowed');
    await oauth.api.app.get(Usage).flush();
    expect(
      await oauth.query('SELECT host(last_used_ip) AS ip FROM api_key_usage WHERE key_id = $1', [
        inside.split('_')[2],
      ]),
    ).toEqual([{ ip: address }]);
  });

  itInOneWindow('counts as one caller for rate limits, regardless of its port', async () => {
    const host = freshAddress();
    const guess = (port: number) =>
      oauth.api.get('/me', 'pua_live_wrong', { 'X-Forwarded-For': `${host}:${port}` });
    for (let port = 1; port <= 3; port++) expect((await guess(port)).status).toBe(401);
    expect((await guess(4)).status).toBe(429);
  });
});
