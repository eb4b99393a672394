import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OauthTest } from '../support/oauth.js';
import { rawRequest } from '../support/raw-request.js';
import { costsAtMost } from '../support/timing.js';

/** Maximum ratio of processor time between a long and a short request. */
const TIMES = 20;
/** Node accepts headers of 16 KB. */
const LONG = 14_000;

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const ask = (method: string, path: string, headers?: Record<string, string>, body?: string) =>
  rawRequest(oauth.issuer, method, path, headers, body);

const OF_LIBRARY = [
  '/oauth/jwks',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/oauth/authorize',
  '/oauth/authorize/abc',
  '/oauth/logout',
  '/oauth/logout/success',
];
const FOR_PROGRAMS = ['/oauth/token', '/oauth/par', '/oauth/revoke', '/oauth/introspect'];
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const MANY: readonly string[] = ['a&', '&', 'a=b&', 'scope=a&', '%41=&', '__proto__&'].map((pair) =>
  pair.repeat(LONG / pair.length),
);

describe('many parameters', () => {
  it.each(OF_LIBRARY)('are rejected within 20 times the cost of one parameter: GET %s', async (path) => {
    for (const query of MANY) {
      const { status, text } = await ask('GET', `${path}?${query}`);
      expect([path, query.slice(0, 10), status]).toEqual([path, query.slice(0, 10), 400]);
      expect(text).toContain('a request can have at most 100 parameters');
    }
    const [many, one] = [`${path}?${MANY[0]}`, `${path}?a`].map((target) => () => ask('GET', target));
    expect(await costsAtMost(TIMES, many!, one!)).toBe(true);
  });

  it.each(FOR_PROGRAMS)('are rejected in a query and in a form: POST %s', async (path) => {
    for (const many of MANY)
      for (const [query, body] of [
        [many, 'client_id=a'],
        ['', many],
      ] as const) {
        const { status, text } = await ask('POST', `${path}?${query}`, FORM, body);
        expect([path, status, JSON.parse(text)]).toMatchObject([path, 400, { error: 'invalid_request' }]);
      }
    const many = () => ask('POST', `${path}?${MANY[0]}`, FORM, MANY[0]);
    expect(await costsAtMost(TIMES, many, () => ask('POST', `${path}?a`, FORM, 'a'))).toBe(true);
  });

  it('are rejected with a JSON error at /oauth/jwks', async () => {
    const { headers, text } = await ask('GET', `/oauth/jwks?${MANY[0]}`, { Accept: '*/*' });
    expect([headers['content-type'], JSON.parse(text)]).toMatchObject([
      'application/json; charset=utf-8',
      { error: 'invalid_request', error_id: expect.any(String) },
    ]);
  });

  it('are accepted up to a hundred, even with unknown names', async () => {
    const others = (count: number) => Array.from({ length: count }, (_, at) => `utm_${at}=x`).join('&');
    expect((await ask('GET', `/oauth/jwks?${others(100)}`)).status).toBe(200);
    expect((await ask('GET', `/oauth/jwks?${others(101)}`)).status).toBe(400);
  });
});

describe('a request with a long header', () => {
  const LISTS = ['a,', ',', ';', ' ', '; ', 'a/b;q=0.5,', '"', '\\', 'a=b;', 'pua_session=a; '].map((part) =>
    part.repeat(LONG / part.length),
  );

  it.each(['Cookie', 'Accept', 'Accept-Language', 'Content-Type', 'Authorization', 'DPoP', 'Origin'])(
    'needs at most 20 times the processor time of a short request: %s',
    async (header) => {
      for (const path of ['/oauth/authorize', '/account/apps', '/oauth/userinfo'])
        for (const text of LISTS) {
          const long = () => ask('GET', path, { [header]: `a${text}b` });
          const isCheap = await costsAtMost(TIMES, long, () => ask('GET', path, { [header]: 'ab' }));
          expect([path, text.slice(0, 8), isCheap]).toEqual([path, text.slice(0, 8), true]);
        }
    },
  );
});
