import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createPrivateKey, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, decodeJwt, exportJWK, exportPKCS8, generateKeyPair } from 'jose';
import { withoutAudit } from '../support/audit.js';
import { atOnce, tally } from '../support/concurrent.js';
import { thorough } from '../support/database.js';
import { Browser, freePort, OauthTest } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';
import { startWithUpstream, upstreamLink, type UpstreamServer } from '../support/upstream.js';

const AFTERWARDS = 'https://app.example/signed-out';
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const DISABLED = 'https://schemas.openid.net/secevent/risc/event-type/account-disabled';

let oauth: OauthTest;
let upstream: UpstreamServer;
let clientId: string;
beforeAll(async () => {
  ({ oauth, upstream } = await startWithUpstream({ logout: true }));
  clientId = await oauth.client({ post_logout_redirect_uris: [AFTERWARDS] });
});
afterAll(() => oauth.close());
beforeEach(() => void (upstream.faults = {}));

/** A member signed in to an app and the account pages, the id of the provider's session, and the browser there. */
async function member(of?: { id: number; sub: string }) {
  const sub = of?.sub ?? randomUUID();
  const id = of?.id ?? (await oauth.member({ external_id: sub })).id;
  upstream.account = { sub };
  const [browser, there] = [oauth.browser(), new Browser(upstream.issuer, upstream.issuer)];
  let sid = '';
  upstream.faults = { claims: (claims) => ((sid = claims.sid as string), claims) };
  const { url, redeem } = oauth.request(clientId);
  const link = upstreamLink(await browser.view(url));
  let at = await browser.open(await upstream.visit(await browser.leave(link), there));
  if (!(at instanceof URL))
    at = await browser.submit(at, { decision: 'allow', scope: 'profile:read' }, /\/consent$/);
  const { body: tokens } = await redeem(at);
  upstream.faults = {};
  return { id, sub, sid, browser, there, tokens };
}

/** Sends a logout token. */
async function logOut(token: string | undefined, origin = oauth.issuer) {
  const body = new URLSearchParams(token === undefined ? {} : { logout_token: token });
  const response = await fetch(`${origin}/sign-in/backchannel-logout`, { method: 'POST', body });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends a logout token with these claims. */
const logOutOf = async (claims: Parameters<UpstreamServer['logoutToken']>[0]) =>
  logOut(await upstream.logoutToken(claims));

/** A request for a sign-out at this server, by the app of an ID token. */
const logoutUrl = (id_token_hint: string, more: Record<string, string> = {}) => {
  const parameters = { id_token_hint, post_logout_redirect_uri: AFTERWARDS, ...more };
  return `/oauth/logout?${new URLSearchParams(parameters)}`;
};

thorough.describe('sign-out with UPSTREAM_LOGOUT', () => {
  it('on the account pages ends the session at this server, redirects to the provider, and shows a confirmation afterwards', async () => {
    const { browser, there } = await member();
    const account = await browser.view('/account/apps');
    expect(account.headers.get('content-security-policy')).toContain("form-action 'self';");
    const onwards = await browser.submitAndLeave(account, {}, /\/sign-out$/);
    expect(onwards.origin).toBe(upstream.issuer);
    expect(Object.fromEntries(onwards.searchParams)).toEqual({
      client_id: 'public-user-api',
      post_logout_redirect_uri: `${oauth.issuer}/sign-in/signed-out`,
    });
    expect(await browser.isSignedIn()).toBe(false);
    const back = await there.submitAndLeave(await there.view(onwards), {});
    expect(back.origin + back.pathname).toBe(`${oauth.issuer}/sign-in/signed-out`);
    expect((await browser.view(back)).html).toMatch(/You are signed out/);
  });

  it('requested by an app redirects to the provider, then to the app with its state', async () => {
    const { browser, there, tokens } = await member();
    const page = await browser.view(logoutUrl(tokens.id_token!, { state: 'mine' }));
    const onwards = await browser.submitAndLeave(page, { logout: 'yes' });
    expect(onwards.origin).toBe(upstream.issuer);
    expect(await browser.isSignedIn()).toBe(false);
    const back = await there.submitAndLeave(await there.view(onwards), {});
    expect((await browser.leave(back)).href).toBe(`${AFTERWARDS}?state=mine`);
  });

  it('does not redirect to the provider if the member signed in with a password or declines', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser();
    const account = await browser.signIn('/account/apps', username);
    expect((await browser.press(account, {}, /\/sign-out$/)).html).toMatch(/You are signed out/);

    const { browser: other, tokens } = await member();
    const stay = await other.view(logoutUrl(tokens.id_token!));
    expect((await other.submitAndLeave(stay, {})).href).toBe(AFTERWARDS);
    expect(await other.isSignedIn()).toBe(true);
  });

  it('shows a confirmation instead of redirecting if the state in the URL is forged', async () => {
    const browser = oauth.browser();
    const made = JSON.stringify({ target: 'https://evil.example', until: 9e9 });
    const sealed = Buffer.from(made).toString('base64url');
    for (const state of ['https://evil.example', sealed, '', 'A'.repeat(9000), '%00'])
      expect((await browser.view(`/sign-in/signed-out?state=${state}`)).html).toMatch(/You are signed out/);
  });
});

describe('a logout token of the external identity provider', () => {
  it('for a session ends only that session, and no app’s access', async () => {
    const one = await member();
    const other = await member(one);
    expect(one.sid).not.toBe(other.sid);
    const { status, headers, text } = await logOutOf({ sub: one.sub, sid: one.sid });
    expect([status, text, headers.get('cache-control')]).toEqual([200, '', 'no-store']);
    expect([await one.browser.isSignedIn(), await other.browser.isSignedIn()]).toEqual([false, true]);
    expect(await oauth.me(one.tokens.access_token)).toBe(200);
    expect(await oauth.events({ user: one.id, type: 'session.ended' })).toMatchObject([
      { actor: 'system', details: { sessions: 1 } },
    ]);
  });

  it('for a member ends both sessions of that member, and no other member’s', async () => {
    const one = await member();
    const other = await member(one);
    const stranger = await member();
    expect((await logOutOf({ sub: one.sub })).status).toBe(200);
    expect([await one.browser.isSignedIn(), await other.browser.isSignedIn()]).toEqual([false, false]);
    expect(await stranger.browser.isSignedIn()).toBe(true);
  });

  thorough.it.each(['sid', 'sub'] as const)(
    'that arrives between the provider’s response and the end of the sign-in ends the sign-in: %s',
    async (by) => {
      const sub = randomUUID();
      const { id } = await oauth.member({ external_id: sub });
      upstream.account = { sub };
      let sid = '';
      upstream.faults = { claims: (claims) => ((sid = claims.sid as string), claims) };
      const browser = oauth.browser();
      const answered = await browser.send(await upstream.answerTo(browser, oauth.request(clientId).url));
      const resume = answered.headers.get('location')!;
      expect(resume).toMatch(/\/oauth\/authorize\//);
      expect((await logOutOf(by === 'sid' ? { sub, sid } : { sub })).status).toBe(200);
      const refused = await browser.view(resume);
      expect(refused.status).toBe(400);
      expect(refused.html).toContain('This sign-in has expired');
      expect(await oauth.query('SELECT FROM oauth_sessions WHERE user_id = $1', [id])).toEqual([]);
      expect(await browser.isSignedIn()).toBe(false);
      // A later sign-in succeeds: here five seconds later.
      await oauth.query(
        `UPDATE oauth_state SET expires_at = expires_at - interval '5 seconds' WHERE model = 'ReplayDetection'`,
      );
      expect(await (await member({ id, sub })).browser.isSignedIn()).toBe(true);
    },
  );

  it('is accepted when the provider sends it after a sign-out at the provider', async () => {
    const { browser, there } = await member();
    await there.submit(await there.view('/session/end'), {});
    expect(await browser.isSignedIn()).toBe(false);
  });

  it('makes this server send its own logout token to an app of the session', async () => {
    const receiver = await Receiver.start();
    const told = await oauth.client({ backchannel_logout_uri: receiver.url });
    const { browser, sub, sid, id } = await member();
    await browser.authorize(oauth.request(told, { scope: 'openid' }).url, { username: '' });
    expect((await logOutOf({ sub, sid })).status).toBe(200);
    await receiver.untilReceived(1);
    const token = new URLSearchParams(receiver.received[0]!.body).get('logout_token')!;
    expect(decodeJwt(token)).toMatchObject({ iss: oauth.issuer, aud: told, sub: String(id) });
    expect(decodeJwt(token).sid).not.toBe(sid); // the session id is this server's
    await receiver.close();
  });

  it('for a disabled account also ends the apps’ access', async () => {
    const { sub, tokens, browser, id } = await member();
    expect((await logOutOf({ sub, events: { [EVENT]: {}, [DISABLED]: {} } })).status).toBe(200);
    expect(await browser.isSignedIn()).toBe(false);
    expect((await oauth.refresh(clientId, tokens.refresh_token)).status).toBe(400);
    expect(await oauth.query(`SELECT FROM oauth_grants WHERE user_id = $1`, [id])).toEqual([]);
  });

  it('ends no session without its audit event, and can be sent again', async () => {
    const { sub, id } = await member();
    const left = () =>
      oauth.query(
        `SELECT (SELECT count(*) FROM oauth_sessions WHERE user_id = $1) AS sessions,
  (SELECT count(*) FROM oauth_grants WHERE user_id = $1) AS grants`,
        [id],
      );
    const before = await left();
    const token = await upstream.logoutToken({ sub, events: { [EVENT]: {}, [DISABLED]: {} } });
    for (const type of ['session.ended', 'access.revoked'] as const) {
      expect((await withoutAudit(oauth.dataSource, type, () => logOut(token))).status).toBe(500);
      expect(await left()).toEqual(before);
    }
    expect((await logOut(token)).status).toBe(200);
    expect(await left()).toEqual([{ sessions: 0, grants: 0 }]);
    expect((await logOut(token)).status).toBe(400);
  });

  it('for a session ends that session, even if the token declares the account disabled', async () => {
    const { browser, sid } = await member();
    expect((await logOutOf({ sid, events: { [EVENT]: {}, [DISABLED]: {} } })).status).toBe(200);
    expect(await browser.isSignedIn()).toBe(false);
  });

  thorough.it('still ends the session after the member returned with the same provider session', async () => {
    const { browser, sub } = await member();
    await browser.open(oauth.request(clientId).url); // the session is stored again
    await browser.open('/account/apps');
    await logOutOf({ sub });
    expect(await browser.isSignedIn()).toBe(false);
  });

  thorough.it('keeps a session with a later password sign-in', async () => {
    const { sub, browser } = await member();
    const { username } = await oauth.member();
    await browser.authorize(oauth.request(clientId, { prompt: 'login' }).url, { username });
    await logOutOf({ sub });
    expect(await browser.isSignedIn()).toBe(true);
  });

  thorough.it.each<[string, Record<string, unknown>]>([
    ['of another issuer', { iss: 'https://attacker.example' }],
    ['for another client', { aud: 'somebody-else' }],
    ['with a nonce, like an ID token', { nonce: 'n' }],
    ['with empty events', { events: {} }],
    ['with another event', { events: { [DISABLED]: {} } }],
    ['whose events are not an object', { events: 'logout' }],
    ['without events', { events: undefined }],
    ['without an id', { jti: undefined }],
    ['that has expired', { iat: 1_700_000_000, exp: 1_700_000_100 }],
    ['that was issued an hour ago', { iat: Math.floor(Date.now() / 1000) - 3600 }],
    ['with a session that is not a string', { sid: 5 }],
    ['of another type', { header: { typ: 'at+jwt' } }],
    ['whose id is not a string', { jti: 5 }],
    ['whose id is a list', { jti: ['x'] }],
    ['whose id is empty', { jti: '' }],
    ['about a subject that is not a string', { sub: 5 }],
    ['about a subject that is an object', { sub: {} }],
    ['about a subject that is null', { sub: null }],
    ['about a list of sessions', { sid: ['x'] }],
    ['about a list of subjects', { sub: ['x'] }],
  ])('%s is rejected, and ends no session', async (_, { header, ...claims }) => {
    const { sub, browser } = await member();
    const token = await upstream.logoutToken({ sub, ...claims }, header as Record<string, unknown>);
    const { status, text } = await logOut(token);
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { error: 'invalid_request', error_description: expect.any(String), error_id: expect.any(String) },
    ]);
    expect(await browser.isSignedIn()).toBe(true);
  });

  it('signed with a key that the server may not fetch yet gets a 503 with Retry-After, and a 200 after the next fetch', async () => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now()); // the pause between two fetches never ends
    try {
      await upstream.rotate();
      const { sub, browser } = await member(); // the ID token makes the server fetch the keys
      await upstream.rotate();
      const token = await upstream.logoutToken({ sub });
      const early = await logOut(token);
      expect([early.status, early.headers.get('retry-after')]).toEqual([503, '30']);
      expect(await browser.isSignedIn()).toBe(true);
      await member();
      expect((await logOut(token)).status).toBe(200);
      expect(await browser.isSignedIn()).toBe(false);
    } finally {
      now.mockRestore();
    }
  });

  it('signed with a key that is not among the newly fetched keys gets a 400', async () => {
    await using other = await OauthTest.start({ upstream: upstream.config }, oauth);
    const token = await upstream.logoutToken({ sub: 'x' }, { kid: 'unknown' });
    expect((await logOut(token, other.issuer)).status).toBe(400);
  });

  thorough.it('ends no later sign-in, even within the same second', async () => {
    const { sub, id, browser } = await member();
    await eventually(() => (Date.now() % 1000 < 100 ? true : undefined));
    expect((await logOutOf({ sub })).status).toBe(200);
    const later = await member({ id, sub });
    expect([await browser.isSignedIn(), await later.browser.isSignedIn()]).toEqual([false, true]);
  });

  thorough.it(
    'that is malformed, names nobody, or names one member and another member’s session ends no session',
    async () => {
      const one = await member();
      const other = await member();
      for (const token of [undefined, '', 'x.y.z', '\0', 'a'.repeat(10_000), await upstream.logoutToken({})])
        expect((await logOut(token)).status).toBe(400);
      expect((await logOutOf({ sub: one.sub, sid: other.sid })).status).toBe(200);
      expect([await one.browser.isSignedIn(), await other.browser.isSignedIn()]).toEqual([true, true]);
    },
  );

  thorough.it('is accepted in only one of ten concurrent requests', async () => {
    const { sub, browser } = await member();
    const token = await upstream.logoutToken({ sub });
    expect(tally(await atOnce(10, async () => (await logOut(token)).status))).toEqual({ 200: 1, 400: 9 });
    expect(await browser.isSignedIn()).toBe(false);
  });
});

describe('a server whose identity provider is unavailable at startup', () => {
  it('starts, is ready, and shows members an error with a link to retry', async () => {
    const issuer = `http://127.0.0.1:${await freePort()}`;
    await using server = await OauthTest.start({ upstream: { ...upstream.config, issuer } }, oauth);
    expect((await fetch(`${server.issuer}/readyz`)).status).toBe(200);
    const browser = server.browser();
    const away = await browser.view(upstreamLink(await browser.view('/account/apps')));
    expect([away.status, /does not respond/.test(away.html)]).toEqual([503, true]);
    expect(away.html).toMatch(/href="\/account\/apps">Try again/);
    expect((await logOut(await upstream.logoutToken({ sub: 'x' }), server.issuer)).status).toBe(503);
  });

  thorough.it('responds with a 5xx if the identity provider’s URL has no metadata', async () => {
    const issuer = `${upstream.issuer}/other`;
    await using server = await OauthTest.start({ upstream: { ...upstream.config, issuer } }, oauth);
    const browser = server.browser();
    const answer = await browser.view(upstreamLink(await browser.view('/account/apps')));
    expect(answer.status).toBeGreaterThanOrEqual(502);
  });
});

thorough.describe('a chain of two of these servers', () => {
  it('signs a member of the first server in to an app of the second, and the ID token states the method pwd', async () => {
    await using first = await OauthTest.start();
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = await exportJWK(publicKey);
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const asClient = await first.client({
      name: 'Second server',
      redirect_uris: [`${publicUrl}/sign-in/callback`],
      jwks: { keys: [{ ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'ES256', use: 'sig' } as never] },
    });
    const { id: there, username } = await first.member();
    await using second = await OauthTest.start({
      port,
      publicUrl,
      upstream: {
        ...upstream.config,
        issuer: first.issuer,
        clientId: asClient,
        clientSecret: undefined,
        clientKey: createPrivateKey(await exportPKCS8(privateKey)),
      },
    });
    const { id } = await second.member({ external_id: String(there) });
    const { url, redeem } = second.request(await second.client(), { max_age: '100' });
    const browser = second.browser();
    const away = await browser.leave(upstreamLink(await browser.view(url)));
    const back = await first.browser().authorize(away, { username });
    const { body } = await redeem(await browser.allow(await browser.view(back)));
    expect(decodeJwt(body.id_token!)).toMatchObject({
      iss: second.issuer,
      sub: String(id),
      amr: ['pwd'],
      auth_time: expect.any(Number),
    });
  });
});
