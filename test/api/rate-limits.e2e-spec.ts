import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import supertest from 'supertest';
import { Database } from '../../src/database/database.js';
import { isUnderApi } from '../../src/http/pipeline/api-headers.js';
import { RouteTable } from '../../src/http/route-table.js';
import { TestApi } from '../support/api.js';
import { dpopKey } from '../support/client-kinds.js';
import { thorough } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { until } from '../support/timing.js';
import { freshAddress, inOneWindow, itInOneWindow } from '../support/windows.js';

/** The older headers, which most client libraries read, must equal the standard headers. */
function expectSameInAllHeaders(headers: Readonly<Record<string, string>>): void {
  const [, quota] = /;q=(\d+);/.exec(headers['ratelimit-policy']!)!;
  const [, left, seconds] = /;r=(\d+);t=(\d+)$/.exec(headers.ratelimit!)!;
  const usual = ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]);
  expect(usual).toEqual([quota, left, seconds]);
}

const limits = { read: 5, write: 2, auth: 3 };

describe('rate limits', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start({ rateLimits: limits })));
  afterAll(() => api.close());

  itInOneWindow('state the limit and the remainder on a read, a 404, a 304 and a write', async () => {
    const { key } = await api.member();
    const { headers } = await api.get('/me', key);
    expect(headers['ratelimit-policy']).toBe('"read";q=5;w=60');
    expect(headers.ratelimit).toMatch(/^"read";r=4;t=([1-9]|[1-5]\d|60)$/);
    expectSameInAllHeaders(headers);
    const notFound = await api.get('/events/1', key);
    expect(notFound.headers.ratelimit).toMatch(/^"read";r=3;t=/);
    const unchanged = await api.get('/me', key, { 'If-None-Match': headers.etag! });
    expect([unchanged.status, unchanged.headers.ratelimit]).toEqual([304, expect.stringMatching(/r=2;/)]);
    for (const answer of [notFound, unchanged, await api.put('/profile', key, {})])
      expectSameInAllHeaders(answer.headers);
  });

  itInOneWindow('reject a request beyond the limit with 429 and the seconds to wait', async () => {
    const { key } = await api.member();
    for (let i = 0; i < 5; i++) expect((await api.get('/me', key)).status).toBe(200);
    const { status, headers, body } = await api.get('/me', key);
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(body.retry_after).toBe(Number(headers['retry-after']));
    expect(headers.ratelimit).toMatch(/^"read";r=0;t=/);
    expectSameInAllHeaders(headers);
  });

  itInOneWindow('count writes separately from reads', async () => {
    const { key } = await api.member();
    expect((await api.put('/profile', key, {})).headers['ratelimit-policy']).toBe('"write";q=2;w=60');
    await api.put('/profile', key, {});
    expect((await api.put('/profile', key, {})).status).toBe(429);
    expect((await api.get('/me', key)).status).toBe(200);
  });

  itInOneWindow('count each credential of a member separately', async () => {
    const { id: user, key } = await api.member();
    for (let i = 0; i < 6; i++) await api.get('/me', key);
    expect((await api.get('/me', key)).status).toBe(429);
    expect((await api.get('/me', await api.key(user))).status).toBe(200);
  });

  itInOneWindow('apply after the scope check, and before parameter validation and the query', async () => {
    const key = await api.key(await api.platform.user(), ['events:read']);
    for (let i = 0; i < 5; i++) await api.get('/events', key);
    expect((await api.get('/me', key)).body.code).toBe('insufficient_scope');
    expect((await api.get('/events?limit=x', key)).body.code).toBe('rate_limited');
    expect((await api.get('/events/1', key)).body.code).toBe('rate_limited');
  });

  it.each([
    ['that a browser sends', 'api_key_in_browser', [], { Origin: 'https://app.example' }],
    ['outside its networks', 'ip_not_allowed', ['192.0.2.0/24'], {}],
  ] as const)(
    'limit the rejected use of a key %s, separately from its permitted use',
    inOneWindow(async (_, code, cidrs, headers) => {
      const { id: user, key } = await api.member();
      await api.query('UPDATE api_keys SET allowed_cidrs = $2 WHERE user_id = $1', [user, cidrs]);
      const rows = jest.spyOn(api.app.get(Database), 'rows').mockClear(); // of a first attempt
      for (let i = 0; i < 5; i++) {
        const refused = await api.get('/me', key, headers);
        expect([refused.status, refused.body.code]).toEqual([403, code]);
        expect(refused.headers.ratelimit).toMatch(new RegExp(`^"read";r=${4 - i};`));
        expect(refused.headers['x-accepted-oauth-scopes']).toBe('profile:read');
        expect(refused.headers['x-oauth-scopes']).toContain('profile:read');
      }
      const { status, body } = await api.get('/me', key, headers);
      expect([status, body.code]).toEqual([429, 'rate_limited']);
      const recorded = rows.mock.calls.filter(([text]) => text.includes('exposed_at'));
      rows.mockRestore();
      expect(recorded).toHaveLength(code === 'api_key_in_browser' ? 1 : 0);
      await api.query(`UPDATE api_keys SET allowed_cidrs = '{}' WHERE user_id = $1`, [user]);
      await until(async () => (await api.get('/me', key)).status === 200);
    }),
  );

  itInOneWindow('do not apply to public routes', async () => {
    for (let i = 0; i < 8; i++) {
      const { status, headers } = await api.send('GET', '/api/public/problems');
      expect([status, headers.ratelimit]).toEqual([200, undefined]);
    }
  });
});

describe('the limit of failed authentication', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start({ trustProxy: 1, rateLimits: limits })));
  afterAll(() => api.close());

  itInOneWindow('responds 429 to wrong credentials, but neither to valid nor to missing ones', async () => {
    const key = await api.key(await api.platform.user());
    const from = { 'X-Forwarded-For': freshAddress() };
    const guess = () => api.get('/me', 'pua_live_wrong', from);
    for (let i = 0; i < 5; i++) expect((await api.send('GET', '/api/public/me', from)).status).toBe(401);
    for (let i = 0; i < 3; i++) expect((await guess()).status).toBe(401);
    const { status, headers, body } = await guess();
    expect([status, body.code, body.retry_after]).toEqual([
      429,
      'rate_limited',
      Number(headers['retry-after']),
    ]);
    expect((await api.get('/me', key, from)).status).toBe(200);
    expect((await api.send('GET', '/api/public/me', from)).status).toBe(401);
  });
});

describe('the limit of OAuth routes and pages', () => {
  const allowed = 100; // one for each rejected credential
  let api: TestApi;
  beforeAll(
    async () => void (api = await TestApi.start({ trustProxy: 1, rateLimits: { ...limits, auth: 1 } })),
  );
  afterAll(() => api.close());

  /** Each caller has its own address. */
  const from = (address: string) => ({ 'X-Forwarded-For': address });
  const useUp = async (address: string) => {
    for (let i = 0; i < allowed; i++)
      expect((await api.send('POST', '/oauth/revoke', from(address))).status).toBe(400);
  };

  thorough.it.each(['/oauth/token', '/oauth/par', '/oauth/revoke', '/oauth/introspect'])(
    'rejects a client’s request to %s with an error of RFC 6749 that any origin can read',
    inOneWindow(async (path: string) => {
      const address = freshAddress();
      await useUp(address);
      const { status, headers, body } = await api.send('POST', path, from(address));
      expect([status, headers['retry-after']]).toEqual([429, expect.stringMatching(/^([1-9]|[1-5]\d|60)$/)]);
      expect(body).toEqual({
        error: 'temporarily_unavailable',
        error_description: `Too many requests from this address: try again in ${headers['retry-after']} s.`,
        error_id: headers['x-request-id'],
      });
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(headers['cache-control']).toBe('no-store');
    }),
  );

  itInOneWindow.thorough('rejects browsers at seven routes with a page, and sets no cookie', async () => {
    const address = freshAddress();
    await useUp(address);
    for (const [method, path] of [
      ['GET', '/oauth/authorize?client_id=x'],
      ['GET', '/oauth/authorize/some-uid'],
      ['GET', '/oauth/logout'],
      ['GET', '/interaction/some-uid'],
      ['POST', '/interaction/some-uid/sign-in'],
      ['GET', '/account/apps'],
      ['POST', '/account/sign-out'],
    ] as const) {
      const { status, headers, text } = await api.send(method, path, from(address));
      expect([path, status]).toEqual([path, 429]);
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(text).toContain('Too many requests');
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(headers['set-cookie']).toBeUndefined();
    }
  });

  /** First path segments outside the API whose responses are equal for all visitors, or have another limit. */
  const UNLIMITED =
    ' .well-known apple-touch-icon.png calendar clients docs favicon.ico health icon.svg livez llms.txt oauth readyz robots.txt ' +
    'site.webmanifest social-card';

  itInOneWindow('covers every page outside the API that reads or stores data for its visitor', async () => {
    const address = freshAddress();
    await useUp(address);
    const pages = api.app
      .get(RouteTable)
      .routes.filter(({ path }) => !isUnderApi(path))
      .filter(({ path }) => !UNLIMITED.split(' ').includes(path.split('/')[1]!));
    expect(pages.map(({ path }) => path)).toEqual(expect.arrayContaining(['/account', '/logos/client']));
    for (const { method, path } of pages) {
      const { status } = await api.send(method, path.replace(/:\w+/g, 'x'), from(address));
      expect([method, path, status]).toEqual([method, path, 429]);
    }
  });

  itInOneWindow.thorough('applies to one address only, and neither to metadata nor to the API', async () => {
    const address = freshAddress();
    await useUp(address);
    const key = await api.key(await api.platform.user());
    expect((await api.send('POST', '/oauth/token', from(freshAddress()))).status).toBe(400);
    for (const path of ['/.well-known/oauth-authorization-server', '/oauth/jwks'])
      expect((await api.send('GET', path, from(address))).status).toBe(200);
    expect((await api.get('/me', key, from(address))).status).toBe(200);
  });

  itInOneWindow.thorough('counts all addresses of an IPv6 /64 network as one address', async () => {
    const network = `2001:db8:${freshAddress().split('.').at(-1)}`;
    await useUp(`${network}:2::a`);
    expect((await api.send('POST', '/oauth/token', from(`${network}:2:ffff::b`))).status).toBe(429);
    expect((await api.send('POST', '/oauth/token', from(`${network}:3::a`))).status).toBe(400);
  });

  it('cannot be bypassed by another spelling of /oauth/token: the response is 404', async () => {
    for (const path of ['/OAuth/token', '/oauth/token/', '//oauth/token', '/oauth/./token', '/oauth/%74oken'])
      expect([path, (await api.send('POST', path, from('198.51.100.4'))).status]).toEqual([path, 404]);
  });

  itInOneWindow('counts rejections by userinfo together with rejections by the API', async () => {
    const address = freshAddress();
    const guess = (path: string) => api.send('GET', path, { Authorization: 'Bearer x', ...from(address) });
    expect((await guess('/oauth/userinfo')).status).toBe(401);
    expect((await guess('/oauth/userinfo')).status).toBe(429);
    expect((await guess('/api/public/me')).status).toBe(429);
  });
});

describe('a rate limit of 0', () => {
  thorough.it('disables the limit and its headers', async () => {
    await using api = await TestApi.start({ rateLimits: { read: 0, write: 0, auth: 0 } });
    const key = await api.key(await api.platform.user());
    const answer = await supertest(api.url).get('/api/public/me').set('X-API-Key', key);
    expect([answer.status, answer.headers.ratelimit]).toEqual([200, undefined]);
    expect(answer.headers).not.toHaveProperty('x-ratelimit-limit');
  });
});

describe('GET and POST /oauth/userinfo', () => {
  let oauth: OauthTest;
  beforeAll(async () => void (oauth = await OauthTest.start({ rateLimits: { ...limits, auth: 20 } })));
  afterAll(() => oauth.close());

  itInOneWindow.thorough('share the read limit of the token with the API, and state the limit', async () => {
    const { username } = await oauth.member();
    const { access_token } = await oauth.tokens(await oauth.client(), username);
    const ask = (method: string) =>
      oauth.api.send(method, '/oauth/userinfo', { Authorization: `Bearer ${access_token}` });
    const first = await ask('GET');
    expect([first.status, first.headers['ratelimit-policy']]).toEqual([200, '"read";q=5;w=60']);
    expect(first.headers.ratelimit).toMatch(/^"read";r=4;t=\d+$/);
    expectSameInAllHeaders(first.headers);
    expect((await ask('POST')).headers.ratelimit).toMatch(/^"read";r=3;/);
    for (let i = 0; i < 3; i++) expect(await oauth.me(access_token)).toBe(200);
    const { status, headers, body } = await ask('GET');
    expect([status, body.code, body.retry_after]).toEqual([
      429,
      'rate_limited',
      Number(headers['retry-after']),
    ]);
    expect(headers.ratelimit).toMatch(/^"read";r=0;/);
    expect(headers['content-type']).toContain('application/problem+json');
    expect(headers['access-control-expose-headers']).toContain('RateLimit');
    expect(await oauth.me(access_token)).toBe(429);
    expect((await ask('DELETE')).status).toBe(405);
  });
});

describe('a token that is bound to a key', () => {
  itInOneWindow('stores no DPoP proofs of calls over the limit, also at userinfo', async () => {
    await using oauth = await OauthTest.start({ rateLimits: { ...limits, auth: 20 } });
    const prove = await dpopKey(oauth);
    const form = await oauth.code(await oauth.client(), (await oauth.member()).username);
    const { access_token } = (await oauth.token(form, await prove())).body;
    const call = async (path: string) => {
      const proof = await prove(path, 'GET', access_token);
      return (await oauth.api.send('GET', path, { Authorization: `DPoP ${access_token}`, ...proof })).status;
    };
    const proofs = async () =>
      (await oauth.query(`SELECT FROM oauth_state WHERE model = 'ReplayDetection'`)).length;
    const before = await proofs();
    for (let i = 0; i < limits.read; i++) expect(await call('/api/public/me')).toBe(200);
    const within = await proofs();
    expect(within).toBeGreaterThan(before);
    for (const path of ['/api/public/me', '/oauth/userinfo', '/api/public/profile'])
      expect(await call(path)).toBe(429);
    expect(await proofs()).toBe(within);
  });
});
