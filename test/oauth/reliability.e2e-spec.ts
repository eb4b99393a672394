import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { closeApp, createApp } from '../../src/app.js';
import { DEADLINES, postgres } from '../support/database.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/timing.js';

interface Step {
  readonly name: string;
  readonly send: () => Promise<Response>;
  /** Expected response when the database is available again: the rejected request consumed nothing. */
  readonly later: number;
}

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
    url = `http://127.0.0.1:${(app.getHttpServer().address() as { port: number }).port}`;
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
    const clientId = await oauth.client();
    const { username } = await oauth.member();
    const tokens = () => oauth.tokens(clientId, username);
    const client_id = clientId;
    const password = PASSWORD;
    const [forUserinfo, forRefresh, forRevoke, forIntrospect] = [
      await tokens(),
      await tokens(),
      await tokens(),
      await tokens(),
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

    return [
      { name: 'token, of a code', send: () => post('/oauth/token', code), later: 200 },
      {
        name: 'token, of a refresh token',
        send: () =>
          post('/oauth/token', {
            grant_type: 'refresh_token',
            client_id,
            refresh_token: forRefresh.refresh_token,
          }),
        later: 200,
      },
      {
        name: 'revoke',
        send: () => post('/oauth/revoke', { token: forRevoke.access_token, client_id }),
        later: 200,
      },
      {
        name: 'introspect',
        send: () => post('/oauth/introspect', { token: forIntrospect.access_token, client_id }),
        later: 200,
      },
      { name: 'par', send: () => post('/oauth/par', Object.fromEntries(searchParams)), later: 201 },
      {
        name: 'userinfo',
        send: () =>
          fetch(new URL('/oauth/userinfo', url), {
            headers: { Authorization: `Bearer ${forUserinfo.access_token}` },
          }),
        later: 200,
      },
      {
        name: 'authorize, of a stranger',
        send: () => oauth.browser(url).send(oauth.request(clientId).url),
        later: 303,
      },
      {
        name: 'authorize, of a member',
        send: () => known.browser.send(oauth.request(clientId).url),
        later: 303,
      },
      { name: 'sign-in page', send: () => shown.browser.send(at(shown.page)), later: 200 },
      {
        name: 'sign-in',
        send: () => typed.browser.post(typed.page, at(typed.page, '/sign-in'), { username, password }),
        later: 303,
      },
      {
        name: 'cancel',
        send: () => cancelled.browser.post(cancelled.page, at(cancelled.page, '/cancel')),
        later: 303,
      },
      { name: 'consent page', send: () => consenting.browser.send(at(consenting.page)), later: 200 },
      {
        name: 'consent',
        send: () =>
          deciding.browser.post(deciding.page, at(deciding.page, '/consent'), {
            decision: 'allow',
            scope: 'profile:read',
          }),
        later: 303,
      },
      { name: 'connected apps', send: () => account.browser.send('/account/apps'), later: 200 },
      { name: 'sessions', send: () => account.browser.send('/account/sessions'), later: 200 },
      {
        name: 'revoke',
        send: () => account.browser.post(account.page, '/account/apps/revoke', { client_id: 'nobody' }),
        later: 303,
      },
      {
        name: 'sign-in to the account',
        send: () => stranger.post(login, '/account/apps/sign-in', { username, password }),
        later: 303,
      },
      {
        name: 'sign-out from the account',
        send: () => leaving.browser.post(leaving.page, '/account/sign-out'),
        later: 303,
      },
      { name: 'logout', send: () => loggingOut.browser.send('/oauth/logout'), later: 200 },
    ];
  }

  async function expectUnavailable({ name, send }: Step): Promise<void> {
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
      await expectUnavailable(all[0]!); // the only request, on a connection that seems to be open
      for (let round = 0; round < 2; round++) await Promise.all(all.map((step) => expectUnavailable(step)));
      // Clients can still read the metadata.
      for (const path of ['/oauth/jwks', '/.well-known/oauth-authorization-server'])
        expect((await fetch(url + path)).status).toBe(200);
      proxy.resume();
      proxy.mend();
      await expectGoodAgain();
      for (const { name, send, later } of all) expect([name, (await send()).status]).toEqual([name, later]);
    },
  );

  it.each(['oauth_tokens', 'oauth_grants', 'oauth_sessions', 'oauth_state', 'users', 'oauth_clients'])(
    'responds normally or with 503 while %s is locked, and never with 401, 400 or 500',
    async (table) => {
      const all = await steps();
      const runner = oauth.dataSource.createQueryRunner();
      await runner.startTransaction();
      await runner.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      try {
        const answers = await Promise.all(
          all.map(async (step) => {
            const { status } = await step.send();
            return { step, status };
          }),
        );
        for (const { step, status } of answers) {
          expect([step.name, [503, step.later].includes(status) ? 'fine' : status]).toEqual([
            step.name,
            'fine',
          ]);
        }
        expect(answers.some(({ status }) => status === 503)).toBe(true);
      } finally {
        await runner.rollbackTransaction();
        await runner.release();
      }
    },
  );

  it('responds 503 if slow statements together exceed the time limit', async () => {
    const clientId = await oauth.client();
    const browser = oauth.browser(url);
    await oauth.code(clientId, (await oauth.member()).username, {}, browser);
    const send = () => browser.send(oauth.request(clientId).url);
    expect((await send()).status).toBe(303);
    proxy.slow(1_300); // in each direction: a read and a write together exceed the limit, but neither does separately
    try {
      await expectUnavailable({ name: 'authorize', send, later: 303 });
    } finally {
      proxy.slow(0);
    }
    await expectGoodAgain();
    expect((await send()).status).toBe(303);
  });

  it('responds 503 if another transaction locks the grant beyond the lock timeout, and consumes nothing', async () => {
    const clientId = await oauth.client();
    const { id, username } = await oauth.member();
    const code = await oauth.code(clientId, username);
    const { refresh_token } = await oauth.tokens(clientId, username);
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT FROM oauth_grants WHERE user_id = $1 FOR UPDATE', [id]);
    try {
      const refused = [
        await oauth.token(code, {}, url),
        await oauth.refresh(clientId, refresh_token, {}, url),
        await oauth.post('/oauth/revoke', { token: refresh_token, client_id: clientId }, {}, url),
      ];
      for (const { status, body, headers } of refused) {
        expect([status, body.error]).toEqual([503, 'temporarily_unavailable']);
        expect(headers.get('retry-after')).toBe('1');
      }
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
    expect((await oauth.token(code, {}, url)).status).toBe(200);
    expect((await oauth.refresh(clientId, refresh_token, {}, url)).status).toBe(200);
  });

  it('responds 503 to a sign-in that the server cannot count, and never skips the throttle', async () => {
    const { username } = await oauth.member();
    const browser = oauth.browser(url);
    const page = await browser.view(oauth.request(await oauth.client()).url);
    const runner = oauth.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE login_throttle IN ACCESS EXCLUSIVE MODE');
    try {
      const fields = { username, password: PASSWORD, redirect_uri: REDIRECT_URI };
      const { status } = await browser.post(page, `${page.url.pathname}/sign-in`, fields);
      expect(status).toBe(503);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  });
});
