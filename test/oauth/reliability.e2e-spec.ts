import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { closeApp, createApp } from '../../src/app.js';
import { DEADLINES, hold, postgres } from '../support/database.js';
import { OauthTest, PASSWORD, type FormPage, type TokenBody } from '../support/oauth.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/timing.js';

/** A request, and its expected status when the database is available again: the rejected request consumed nothing. */
type Step = readonly [name: string, send: () => Promise<Response>, later: number];

postgres.describe('the authorization server with a failing database', () => {
  let oauth: OauthTest;
  let app: NestExpressApplication;
  let proxy: TcpProxy;
  let url: string;

  beforeAll(async () => {
    oauth = await OauthTest.start();
    proxy = await TcpProxy.start(oauth.api.config.databaseUrl!);
    app = await createApp({
      ...oauth.api.config,
      databaseUrl: proxy.url,
      databaseDirectUrl: proxy.url,
      databasePoolSize: 4,
      databaseDeadlines: DEADLINES,
    });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  });
  afterEach(() => {
    proxy.resume();
    proxy.mend();
  });
  afterAll(async () => {
    await closeApp(app);
    await proxy.close();
    await oauth.close();
  });

  const post = (path: string, form: Record<string, string>) =>
    fetch(new URL(path, url), { method: 'POST', redirect: 'manual', body: new URLSearchParams(form) });
  /** Every endpoint and page, each in a state in which it would succeed. */
  async function steps(): Promise<Step[]> {
    const { username, clientId } = await oauth.memberAndClient();
    const client_id = clientId;
    const signingIn = { username, password: PASSWORD };
    const tokens: TokenBody[] = [];
    while (tokens.length < 4) tokens.push(await oauth.tokens(clientId, username));
    const [forUserinfo, forRefresh, forRevoke, forIntrospect] = tokens as [
      TokenBody,
      TokenBody,
      TokenBody,
      TokenBody,
    ];
    const code = await oauth.code(clientId, username);

    const signedIn = async () => {
      const browser = oauth.browser(url);
      await oauth.code(clientId, username, {}, browser);
      return { browser, page: await browser.view('/account/apps') };
    };
    const atSignIn = async () => {
      const browser = oauth.browser(url);
      return { browser, page: await browser.view(oauth.request(clientId).url) };
    };
    const atConsent = async () => {
      const other = await oauth.client();
      const { browser } = await signedIn();
      return { browser, page: await browser.view(oauth.request(other).url) };
    };
    const [shown, typed, cancelled, consenting, deciding] = [
      await atSignIn(),
      await atSignIn(),
      await atSignIn(),
      await atConsent(),
      await atConsent(),
    ];
    const [account, leaving, loggingOut, known, stranger] = [
      await signedIn(),
      await signedIn(),
      await signedIn(),
      await signedIn(),
      oauth.browser(url),
    ];
    const login = await stranger.view('/account/apps');
    const { searchParams } = oauth.request(clientId).url;
    const at = (page: FormPage, step = '') => page.url.pathname + step;

    const refreshing = { grant_type: 'refresh_token', client_id, refresh_token: forRefresh.refresh_token };
    const allow = { decision: 'allow', scope: 'profile:read' };
    const headers = { Authorization: `Bearer ${forUserinfo.access_token}` };
    const start = () => oauth.request(clientId).url;
    return [
      ['token, of a code', () => post('/oauth/token', code), 200],
      ['token, of a refresh token', () => post('/oauth/token', refreshing), 200],
      ['revoke', () => post('/oauth/revoke', { token: forRevoke.access_token, client_id }), 200],
      ['introspect', () => post('/oauth/introspect', { token: forIntrospect.access_token, client_id }), 200],
      ['par', () => post('/oauth/par', Object.fromEntries(searchParams)), 201],
      ['userinfo', () => fetch(new URL('/oauth/userinfo', url), { headers }), 200],
      ['authorize, of a stranger', () => oauth.browser(url).send(start()), 303],
      ['authorize, of a member', () => known.browser.send(start()), 303],
      ['sign-in page', () => shown.browser.send(at(shown.page)), 200],
      ['sign-in', () => typed.browser.post(typed.page, at(typed.page, '/sign-in'), signingIn), 303],
      ['cancel', () => cancelled.browser.post(cancelled.page, at(cancelled.page, '/cancel')), 303],
      ['consent page', () => consenting.browser.send(at(consenting.page)), 200],
      ['consent', () => deciding.browser.post(deciding.page, at(deciding.page, '/consent'), allow), 303],
      ['connected apps', () => account.browser.send('/account/apps'), 200],
      ['sessions', () => account.browser.send('/account/sessions'), 200],
      [
        'revocation of an app',
        () => account.browser.post(account.page, '/account/apps/revoke', { client_id: 'nobody' }),
        303,
      ],
      ['sign-in to the account', () => stranger.post(login, '/account/apps/sign-in', signingIn), 303],
      ['sign-out from the account', () => leaving.browser.post(leaving.page, '/account/sign-out'), 303],
      ['logout', () => loggingOut.browser.send('/oauth/logout'), 200],
    ];
  }

  async function expectUnavailable(name: string, send: Step[1]): Promise<void> {
    const response = await send();
    const text = await response.text();
    expect([name, response.status]).toEqual([name, 503]);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(response.headers.get('location')).toBeNull();
    expect(text).toMatch(/temporarily_unavailable|<h1>/);
    expect(text).not.toMatch(/ECONN|terminated|timeout|QueryFailed/);
  }

  const expectGoodAgain = () =>
    until(async () => (await post('/oauth/token', { client_id: 'nobody' })).status === 401);

  it.each(['cut', 'stall'] as const)(
    'responds 503 on every endpoint and page that needs the database, and consumes nothing (%s)',
    async (harm) => {
      const all = await steps();
      proxy[harm]();
      await expectUnavailable(all[0]![0], all[0]![1]); // the only request, on a connection that seems to be open
      for (let round = 0; round < 2; round++)
        await Promise.all(all.map(([name, send]) => expectUnavailable(name, send)));
      // Clients can still read the metadata.
      for (const path of ['/oauth/jwks', '/.well-known/oauth-authorization-server'])
        expect((await fetch(url + path)).status).toBe(200);
      proxy.resume();
      proxy.mend();
      await expectGoodAgain();
      for (const [name, send, later] of all) expect([name, (await send()).status]).toEqual([name, later]);
    },
  );

  it.each(['oauth_tokens', 'oauth_grants', 'oauth_sessions', 'oauth_state', 'users', 'oauth_clients'])(
    'responds normally or with 503 while %s is locked, and never with 401, 400 or 500',
    async (table) => {
      const all = await steps();
      const locked = await hold(oauth.dataSource, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      const answers = await Promise.all(all.map(([, send]) => send())).finally(locked.rollback);
      const statuses = answers.map(({ status }) => status);
      for (const [i, [name, , later]] of all.entries())
        expect([name, statuses[i]]).toEqual([name, statuses[i] === 503 ? 503 : later]);
      expect(statuses).toContain(503);
    },
  );

  it('responds 503 if slow statements together exceed the time limit', async () => {
    const clientId = await oauth.client();
    const browser = oauth.browser(url);
    await oauth.code(clientId, (await oauth.member()).username, {}, browser);
    const send = () => browser.send(oauth.request(clientId).url);
    expect((await send()).status).toBe(303);
    proxy.slow(1_300); // in each direction: a read and a write together exceed the limit, but neither does separately
    await expectUnavailable('authorize', send).finally(() => proxy.slow(0));
    await expectGoodAgain();
    expect((await send()).status).toBe(303);
  });

  it('responds 503 if another transaction locks the grant beyond the lock timeout, and consumes no code or refresh token', async () => {
    const { id, username, clientId } = await oauth.memberAndClient();
    const code = await oauth.code(clientId, username);
    const { refresh_token } = await oauth.tokens(clientId, username);
    const lock = 'SELECT FROM oauth_grants WHERE user_id = $1 FOR UPDATE';
    const locked = await hold(oauth.dataSource, lock, [id]);
    const refused = await Promise.all([
      oauth.token(code, {}, url),
      oauth.refresh(clientId, refresh_token, {}, url),
      oauth.post('/oauth/revoke', { token: refresh_token, client_id: clientId }, {}, url),
    ]).finally(locked.rollback);
    for (const { status, body, headers } of refused)
      expect([status, body.error, headers.get('retry-after')]).toEqual([503, 'temporarily_unavailable', '1']);
    expect((await oauth.token(code, {}, url)).status).toBe(200);
    expect((await oauth.refresh(clientId, refresh_token, {}, url)).status).toBe(200);
  });

  it('responds 503 to a sign-in while the throttle’s table is locked', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser(url);
    const page = await browser.view(oauth.request(await oauth.client()).url);
    const locked = await hold(oauth.dataSource, 'LOCK TABLE login_throttle IN ACCESS EXCLUSIVE MODE');
    const signIn = browser.post(page, `${page.url.pathname}/sign-in`, { username, password: PASSWORD });
    expect((await signIn.finally(locked.rollback)).status).toBe(503);
  });
});
