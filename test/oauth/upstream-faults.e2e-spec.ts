import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { pua } from '../support/command-line.js';
import { thorough } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import {
  SECRET,
  startWithUpstream,
  upstreamLink,
  type Faults,
  type UpstreamServer,
  logOf,
} from '../support/upstream.js';

let oauth: OauthTest;
let upstream: UpstreamServer;
beforeAll(async () => {
  ({ oauth, upstream } = await startWithUpstream({ createMembers: true, scopes: 'openid profile' }));
});
afterAll(() => oauth.close());
beforeEach(() => {
  upstream.faults = {};
  upstream.decision = {};
  upstream.account = { sub: randomUUID() };
});
afterEach(() => void jest.restoreAllMocks());

/** Follows a page's link to the external identity provider, and returns. */
const signIn = async (path: string, browser = oauth.browser()) =>
  browser.view(await upstream.answerTo(browser, path));

describe('metadata of the external identity provider', () => {
  const SCRIPT = 'javascript:alert(1)';
  const CASES: readonly (readonly [what: string, name: string, value?: unknown])[] = [
    ['whose authorization endpoint is a script', 'authorization_endpoint', SCRIPT],
    ['without an authorization endpoint', 'authorization_endpoint'],
    ['without a token endpoint', 'token_endpoint'],
    ['without keys', 'jwks_uri'],
    ['whose sign-out endpoint is a script', 'end_session_endpoint', SCRIPT],
    ['with unsupported signature algorithms', 'id_token_signing_alg_values_supported', ['HS256', 'none']],
  ];

  CASES.forEach(([what, name, value], i) =>
    (i === 0 ? it : thorough.it)(
      `${what} causes an error in the log and doctor, and is used after its correction`,
      async () => {
        upstream.faults = { metadata: (metadata) => ({ ...metadata, [name]: value }) }; // JSON omits undefined
        await using server = await OauthTest.start({ upstream: upstream.config }, oauth); // reads the metadata now
        const log = logOf(server);
        const browser = server.browser();
        const link = upstreamLink(await browser.view('/account/apps'));
        const page = await browser.view(link);
        expect([page.status, /did not work/.test(page.html)]).toEqual([502, true]);
        expect(log()).toContain(`has no ${name} that can be used`);
        expect(await check()).toEqual([
          1,
          expect.objectContaining({ status: 'fail', message: expect.stringContaining(` ${name} `) }),
        ]);
        upstream.faults = {};
        expect(await check()).toEqual([expect.any(Number), expect.objectContaining({ status: 'ok' })]);
        await browser.leave(link);
      },
    ),
  );

  /** The doctor's findings about the external identity provider, after its exit code. */
  async function check() {
    const settings = {
      ...oauth.api.environment,
      UPSTREAM_ISSUER: upstream.issuer,
      UPSTREAM_CLIENT_ID: 'public-user-api',
      UPSTREAM_CLIENT_SECRET: SECRET,
    };
    const { code, stdout } = await pua(settings, ['doctor', '--json']);
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; status: string; message: string }[];
    };
    return [code, ...checks.filter((one) => one.name === 'platform login')];
  }
});

describe('a member who cancels at the external identity provider', () => {
  const error = { error: 'access_denied', error_description: 'the member cancelled' };

  it('returns to the previous account page', async () => {
    upstream.decision = error;
    const page = await signIn('/account/apps');
    expect([page.status, page.url.pathname]).toEqual([200, '/account/apps']);
    expect(page.html).toMatch(/Continue with/);
  });

  it('gets an error page if the account page would redirect to the provider again', async () => {
    const alone = await startWithUpstream({}, { localSignIn: false });
    await using server = alone.oauth;
    alone.upstream.decision = error;
    const browser = server.browser();
    const page = await browser.view(await alone.upstream.visit(await browser.leave('/account/apps')));
    expect([page.status, page.html]).toEqual([403, expect.stringContaining('You are not signed in')]);
    expect(page.html).toContain('href="/account/apps">Try again');
  });

  it('gets an error page, and no redirect to the app, if the response names another issuer', async () => {
    upstream.decision = error;
    const browser = oauth.browser();
    const { url } = oauth.request(await oauth.client());
    const back = await upstream.answerTo(browser, url);
    back.searchParams.set('iss', 'https://attacker.example');
    const end = await browser.view(back);
    expect([end.status, /did not work/.test(end.html)]).toEqual([502, true]);
  });
});

describe('a response of the external identity provider', () => {
  thorough.it.each<[string, Faults]>([
    ['the token endpoint', { stalling: /^\/token$/ }],
    ['userinfo', { stalling: /^\/me$/ }],
  ])('causes a 503 if %s stops in the middle of it', async (_, faults) => {
    const browser = oauth.browser();
    const back = await upstream.answerTo(browser, '/account/apps');
    upstream.faults = faults;
    const end = await browser.view(back);
    expect([end.status, end.headers.get('retry-after')]).toEqual([503, '1']);
  });

  it('with a picture URL over 2,048 characters is used without the picture, and the log names the claim', async () => {
    const log = logOf(oauth);
    const picture = (length: number) => `https://example.com/`.padEnd(length, 'x');
    for (const [length, stored] of [
      [2049, null],
      [2048, picture(2048)],
    ] as const) {
      upstream.account = { sub: randomUUID(), claims: { picture: picture(length) } };
      expect((await signIn('/account/sessions')).status).toBe(200);
      const query = 'SELECT profile_picture FROM users WHERE external_id = $1';
      expect(await oauth.query(query, [upstream.account.sub])).toEqual([{ profile_picture: stored }]);
    }
    expect(log().match(/"claim":"picture"/g)).toHaveLength(1);
  });
});

describe('the claim that matches members', () => {
  thorough.it('is named in the log, without its value, if it is missing or unverified', async () => {
    const other = await startWithUpstream({ claim: 'email', scopes: 'openid email' });
    await using server = other.oauth;
    const log = logOf(server);
    const browser = server.browser();
    for (const [claims, status] of [
      [{}, 502],
      [{ email: 'ada@example.com', email_verified: false }, 403],
    ] as const) {
      other.upstream.account = { sub: randomUUID(), claims };
      const back = await other.upstream.answerTo(browser, '/account/apps');
      expect((await browser.view(back)).status).toBe(status);
    }
    expect(log().match(/"detail":"[^"]*\bclaim email\b/g)).toHaveLength(2);
    expect(log()).not.toContain('ada@example.com');
  });
});
