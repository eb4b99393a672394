import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Module, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { AppModule } from '../../src/app.module.js';
import { configureApp } from '../../src/app.js';
import { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { isOutsideApi, OutsideApi } from '../../src/http/pipeline/outside-api.js';
import { RateLimits } from '../../src/auth/rate-limits/rate-limits.js';
import {
  pathOf as pathOfPage,
  ACCOUNT_PAGES,
  DEVELOPER_PAGES,
} from '../../src/federation/upstream-sign-ins.js';
import { RouteTable } from '../../src/http/route-table.js';
import { endApp } from '../support/api.js';
import { createTestDatabase, testConfig } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { QUESTIONS } from '../../src/member-pages/rendering/questions.js';

/** Every page, and the methods that it has. */
const PAGES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [...ACCOUNT_PAGES, ...DEVELOPER_PAGES].flatMap((page) => [
      [`${pathOfPage(page)}/confirm`, 'GET, HEAD'],
      [`${pathOfPage(page)}/upstream`, 'GET, HEAD'],
      [`${pathOfPage(page)}/sign-in`, 'POST'],
      [`${pathOfPage(page)}/passkey`, 'POST'],
      [`${pathOfPage(page)}/passkey/options`, 'POST'],
    ]),
  ),
  '/interaction/:uid': 'GET, HEAD',
  '/interaction/:uid/upstream': 'GET, HEAD',
  '/interaction/:uid/sign-in': 'POST',
  '/interaction/:uid/passkey': 'POST',
  '/interaction/:uid/passkey/options': 'POST',
  '/interaction/:uid/consent': 'POST',
  '/interaction/:uid/cancel': 'POST',
  '/interaction/:uid/switch-user': 'POST',
  '/account': 'GET, HEAD',
  '/account/apps': 'GET, HEAD',
  '/account/sessions': 'GET, HEAD',
  '/account/security': 'GET, HEAD',
  '/account/security/passkeys': 'POST',
  '/account/security/passkeys/options': 'POST',
  '/account/security/passkeys/:passkey/remove': 'POST',
  '/account/security/password': 'POST',
  '/account/security/password/off': 'POST',
  '/account/security/password/on': 'POST',
  '/account/security/notices': 'POST',
  '/account/unsubscribe/:token': 'GET, HEAD, POST',
  '/account/password-reset': 'GET, HEAD',
  '/account/password-reset/send': 'POST',
  '/account/password-reset/sent': 'GET, HEAD',
  '/account/new-password/:token': 'GET, HEAD',
  '/account/new-password/:token/set': 'POST',
  '/account/activity': 'GET, HEAD',
  '/account/keys': 'GET, HEAD',
  '/account/keys/:key/revoke': 'POST',
  '/account/data': 'GET, HEAD',
  '/account/data/download': 'POST',
  '/account/calendar': 'GET, HEAD',
  '/account/calendar/create': 'POST',
  '/account/calendar/:link/revoke': 'POST',
  '/account/apps/accept': 'POST',
  '/account/apps/change': 'POST',
  '/account/apps/leave': 'POST',
  '/account/apps/revoke': 'POST',
  '/account/sessions/:session/end': 'POST',
  '/account/sessions/end-others': 'POST',
  '/account/sign-out': 'POST',
  '/account/language': 'POST',
  '/developer': 'GET, HEAD',
  '/developer/requests': 'GET, HEAD',
  '/developer/review/:client': 'GET, HEAD, POST',
  '/developer/review/:client/testers': 'POST',
  '/developer/review/:client/testers/remove': 'POST',
  '/developer/webhooks/:app': 'GET, HEAD, POST',
  '/developer/webhooks/:app/secret': 'GET, HEAD',
  '/developer/webhooks/:app/:webhook/delete': 'POST',
  '/developer/webhooks/:app/:webhook/disable': 'POST',
  '/developer/webhooks/:app/:webhook/rotate': 'POST',
  '/developer/webhooks/:app/:webhook/test': 'POST',
  '/developer/new-client': 'GET, HEAD',
  '/developer/redirect-uris': 'POST',
  '/developer/clients': 'POST',
  '/developer/clients/:client': 'GET, HEAD, POST',
  '/developer/clients/:client/logo': 'POST',
  '/developer/clients/:client/remove-logo': 'POST',
  '/developer/clients/:client/messages/:message/redeliver': 'POST',
  '/developer/clients/:client/disable': 'POST',
  '/developer/clients/:client/enable': 'POST',
  '/developer/clients/:client/delete': 'POST',
  '/developer/clients/:client/rotate-secret': 'POST',
  '/developer/new-key': 'GET, HEAD',
  '/developer/made-key': 'GET, HEAD',
  '/developer/made-secret': 'GET, HEAD',
  '/developer/keys': 'POST',
  '/developer/keys/:key/rotate': 'POST',
  '/developer/keys/:key/revoke': 'POST',
  '/sign-in/callback': 'GET, HEAD',
  '/sign-in/signed-out': 'GET, HEAD',
};

/** Routes of the authorization server and the demo other than pages and oidc-provider routes. */
const BESIDE_THEM = [
  'ALL /oauth/userinfo',
  'GET /.well-known/oauth-protected-resource/api/public',
  'GET /.well-known/oauth-protected-resource/api/public/mcp',
  'GET /demo',
  'GET /demo/callback',
  'GET /demo/app.js',
  'GET /demo/client/:file',
];

/** Endpoint for the external identity provider, which responds with JSON. */
const CALLED_BACK = ['POST /sign-in/backchannel-logout'];

/** Controllers outside the API without a limit per address, and the reason. */
const UNLIMITED: Readonly<Record<string, string>> = {
  CalendarController: 'each link has a limit of its own, and wrong links count for their address',
  DemoController: 'files from memory',
  DocsController: 'files from memory',
  FrontController: 'files from memory',
  IconsController: 'files from memory',
  McpController: 'the limits of the API',
  PackagesController: 'files from memory',
  ProtectedResourceController: 'metadata from memory',
  UserinfoController: 'the limits of the API',
};

/** Images on pages: they respond 404 unless an operator or developer has set an image. */
const LOGOS = ['GET /logos/platform', 'GET /logos/client'];

/** Every other form of members and developers, and the way to undo its effect. */
const UNDOABLE: Readonly<Record<string, string>> = {
  '/interaction/:uid/sign-in': 'sign out',
  '/interaction/:uid/passkey': 'sign out',
  '/interaction/:uid/passkey/options': 'changes nothing',
  '/interaction/:uid/consent': 'revoke the access at /account/apps; ask again',
  '/interaction/:uid/cancel': 'sign in again',
  '/interaction/:uid/switch-user': 'sign in again',
  '/account/sign-out': 'sign in again',
  '/account/apps/change': 'change it again',
  '/account/apps/accept': 'leave the test',
  '/developer/review/:client': 'change the app, which ends the application',
  '/developer/review/:client/testers': 'remove the tester',
  '/developer/webhooks/:app': 'delete the webhook',
  '/developer/webhooks/:app/:webhook/test': 'sends a message without data',
  '/account/language': 'choose another',
  '/account/calendar/create': 'revoke the link',
  '/account/data/download': 'changes nothing',
  '/account/security/passkeys': 'remove the passkey',
  '/account/security/passkeys/options': 'changes nothing',
  '/account/security/password': 'change it again; the form has the old password typed',
  '/account/security/password/on': 'switch it off',
  '/account/security/notices': 'choose again',
  '/account/unsubscribe/:token': 'choose again on /account/security',
  '/account/password-reset/send': 'changes nothing',
  '/account/new-password/:token/set': 'change it again; comes of a link in a mail, and says first what ends',
  '/developer/clients': 'delete the app',
  '/developer/clients/:client': 'change it again',
  '/developer/clients/:client/enable': 'disable it',
  '/developer/clients/:client/logo': 'remove or replace it',
  '/developer/keys': 'revoke the key',
  '/developer/redirect-uris': 'changes nothing',
};

/** The sign-in forms on pages. */
const SIGN_IN = /^\/(account\/\w+|developer|developer\/new-key)\/(sign-in|passkey|passkey\/options)$/;

let oauth: OauthTest;
beforeAll(async () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'a@b.example' };
  oauth = await OauthTest.start({ seedDemo: true, developerConsole: true, assistants: true, mail });
});
afterAll(() => oauth.close());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends the path unchanged, which fetch would normalize. */
function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
  origin = oauth.issuer,
): Promise<Answer> {
  const length = body === '' ? {} : { 'Content-Length': String(body.length) };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(origin, { method, path, headers: { ...headers, ...length } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => (text += part));
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }));
    });
    sent.on('error', reject).end(body);
  });
}

const pathOf = (route: string) => route.replaceAll(/:\w+/g, 'abc');
const routeOf = (path: string) => Object.keys(PAGES).find((route) => pathOf(route) === path)!;

describe('the pages', () => {
  it('are in the table of all routes, each once', () => {
    const routes = oauth.api.app.get(RouteTable).routes.map(({ method, path }) => `${method} ${path}`);
    const pages = Object.entries(PAGES).flatMap(([path, methods]) =>
      methods
        .split(', ')
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${path}`),
    );
    const ofOauth = routes.filter((route) =>
      /^\w+ \/(interaction|account|developer|sign-in|oauth|\.well-known\/oauth|logos|demo)\b/.test(route),
    );
    expect(ofOauth.toSorted()).toEqual([...pages, ...BESIDE_THEM, ...CALLED_BACK, ...LOGOS].toSorted());
  });

  it('have a rate limit per address, unless the controller is exempt', async () => {
    const limits = jest.spyOn(oauth.api.app.get(RateLimits), 'countOauthRequest').mockReturnValue(60);
    const unlimited = new Set<string>();
    for (const { method, path, controller } of oauth.api.app.get(RouteTable).routes) {
      if (!isOutsideApi(controller)) continue;
      const { status } = await ask(method === 'ALL' ? 'GET' : method, pathOf(path));
      if (status !== 429) unlimited.add(controller.name);
    }
    limits.mockRestore();
    expect([...unlimited].toSorted()).toEqual(Object.keys(UNLIMITED).toSorted());
  });

  it.each(Object.entries(PAGES))('at %s accept %s, and no other method', async (route, methods) => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY']) {
      const answer = await ask(method, pathOf(route));
      const has = methods.split(', ').includes(method);
      const isRead = method === 'GET' || method === 'HEAD';
      if (isRead && (!has || route === '/account')) {
        // GET of a form's URL redirects to its page.
        expect([method, answer.status]).toEqual([method, 303]);
        expect(answer.headers['x-frame-options']).toBe('DENY');
        expect(PAGES[routeOf(answer.headers.location!)]).toMatch(/^GET/);
        continue;
      }
      expect([method, answer.status === 405]).toEqual([method, !has]);
      if (!has) expect(answer.headers.allow).toBe(methods);
      if (has) {
        expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
        expect(answer.headers['x-frame-options']).toBe('DENY');
        expect(answer.headers['cache-control']).toBe('no-store');
      }
      if (method === 'HEAD') expect(answer.text).toBe('');
    }
    const options = await ask('OPTIONS', pathOf(route), { Origin: 'https://a.example' });
    expect(options).toMatchObject({ status: 200, text: methods, headers: { allow: methods } });
    expect(options.headers['access-control-allow-origin']).toBeUndefined();
  });

  it.each([
    ['/account/apps/sign-in', '/account/apps'],
    ['/account/security/password', '/account/security'],
    ['/account/security/passkeys/7/remove', '/account/security'],
    ['/account/calendar/create', '/account/calendar'],
    ['/account/sign-out', '/account'],
    ['/account', '/account/apps'],
    ['/developer/keys/abc/rotate', '/developer'],
    ['/developer/clients/abc/delete', '/developer/clients/abc'],
    ['/interaction/abc/consent', '/interaction/abc'],
    ['/account/new-password/abc/set', '/account/new-password/abc'],
  ])('redirect from %s, which has no page, to %s', async (path, page) => {
    const { status, headers } = await ask('GET', `${path}?x=1`, { Accept: 'text/html' });
    expect([status, headers.location]).toEqual([303, page]);
  });

  it('ignore Accept, credentials and the query unless the page uses these inputs', async () => {
    const headers = { Accept: 'image/png', 'X-API-Key': 'pua_live_wrong', Authorization: 'Bearer wrong' };
    const { status, headers: answered } = await ask('GET', '/account/apps?unknown=1&limit=x', headers);
    expect(status).toBe(200);
    expect(answered['content-type']).toBe('text/html; charset=utf-8');
    expect(answered['ratelimit']).toBeUndefined();
    expect(answered['x-oauth-scopes']).toBeUndefined();
    expect(answered['access-control-allow-origin']).toBeUndefined();
  });

  it.each([
    '/account/',
    '/account/apps/',
    '/Account/apps',
    '/account//apps',
    '/account/%61pps',
    '/account/apps%2f',
    '/account/apps/r%65voke',
    '/account/sessions/a%62c/end',
    '/account/sessions/a%20b/end',
    '/account/sessions/a.b/end',
    '/account/sessions/%00/end',
    '/account/sessions/%ff/end',
    '/account/sessions/a%2Fb/end',
    '/account/apps/../apps',
    `/interaction/${'a'.repeat(101)}`,
    '/interaction/a~b',
    '/interaction/%61bc',
    '/interaction/abc/',
    '/interaction/abc/Sign-in',
    '/interaction/abc/other',
    '/oauth/userinfo/',
    '/oauth/Userinfo',
    '/oauth/%75serinfo',
    '/demo/app.js/',
    '/demo/..%2fapp.js',
    '/.well-known/oauth-protected-resource',
  ])('respond 404 to another spelling: %s', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const { status, headers } = await ask(method, path);
      expect([method, status]).toEqual([method, 404]);
      expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
    }
  });

  it.each([
    ['too large', { 'Content-Type': 'application/x-www-form-urlencoded' }, `a=${'x'.repeat(20_000)}`],
    ['in an unknown charset', { 'Content-Type': 'application/x-www-form-urlencoded; charset=x' }, 'a=1'],
    [
      'not encoded as declared',
      { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Encoding': 'gzip' },
      'a=1',
    ],
  ])('report an error for a form that is %s', async (_, headers, body) => {
    const { status, text } = await ask('POST', '/account/sign-out', headers, body);
    expect(status).toBe(400);
    expect(text).toContain('The form could not be read.');
  });
});

describe('a route that is neither a page nor an oidc-provider route', () => {
  it.each(BESIDE_THEM.slice(1).map((route) => route.slice(4).replace(':file', 'index.js')))(
    'at %s accepts only GET, HEAD and OPTIONS',
    async (path) => {
      expect((await ask('GET', path, { Accept: 'image/png' })).status).toBe(200);
      expect((await ask('HEAD', `${path}?x=1`)).status).toBe(200);
      for (const method of ['POST', 'PUT', 'DELETE'])
        expect([method, await ask(method, path)]).toMatchObject([
          method,
          { status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } },
        ]);
      expect(await ask('OPTIONS', path)).toMatchObject({
        status: 204,
        headers: { allow: 'GET, HEAD, OPTIONS' },
      });
    },
  );

  it('at /oauth/userinfo accepts GET, HEAD, POST and preflights', async () => {
    for (const method of ['GET', 'HEAD', 'POST']) {
      const { status, headers } = await ask(method, '/oauth/userinfo?x=1', { Accept: 'image/png' });
      expect([method, status]).toEqual([method, 401]);
      expect(headers['www-authenticate']).toMatch(/^Bearer realm=/);
    }
    for (const method of ['PUT', 'DELETE', 'OPTIONS'])
      expect(await ask(method, '/oauth/userinfo')).toMatchObject({
        status: 405,
        headers: { allow: 'GET, HEAD, POST, OPTIONS' },
      });
    const preflight = { Origin: 'https://a.example', 'Access-Control-Request-Method': 'POST' };
    expect((await ask('OPTIONS', '/oauth/userinfo', preflight)).status).toBe(204);
  });
});

describe('an oidc-provider route', () => {
  it.each([
    ['/oauth/authorize', 'GET, HEAD, POST'],
    ['/oauth/authorize/abc', 'GET, HEAD'],
    ['/oauth/token', 'POST, OPTIONS'],
    ['/oauth/revoke', 'POST, OPTIONS'],
    ['/oauth/introspect', 'POST, OPTIONS'],
    ['/oauth/par', 'POST, OPTIONS'],
    ['/oauth/jwks', 'GET, HEAD, OPTIONS'],
    ['/oauth/logout', 'GET, HEAD, POST'],
    ['/oauth/logout/confirm', 'POST'],
    ['/oauth/logout/success', 'GET, HEAD'],
    ['/.well-known/oauth-authorization-server', 'GET, HEAD, OPTIONS'],
    ['/.well-known/openid-configuration', 'GET, HEAD, OPTIONS'],
  ])('at %s accepts %s, and rejects any other method', async (path, methods) => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY']) {
      const { status, headers, text } = await ask(method, path, { Accept: '*/*' });
      const has = methods.split(', ').includes(method);
      expect([method, status === 405, headers.allow]).toEqual([method, !has, has ? undefined : methods]);
      if (!has && method !== 'HEAD') expect(JSON.parse(text).code).toBe('method_not_allowed');
    }
    expect(await ask('OPTIONS', path)).toMatchObject({ status: 200, headers: { allow: methods } });
    const preflight = { Origin: 'https://a.example', 'Access-Control-Request-Method': 'POST' };
    const { headers } = await ask('OPTIONS', path, preflight);
    expect([path, headers['access-control-allow-origin']]).toEqual([
      path,
      methods.includes('OPTIONS') ? 'https://a.example' : undefined,
    ]);
  });
});

describe('the external identity provider’s back-channel', () => {
  it('accepts only POST, and responds to invalid requests with a JSON error', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH'])
      expect([method, await ask(method, '/sign-in/backchannel-logout')]).toMatchObject([
        method,
        { status: 405, headers: { allow: 'POST' } },
      ]);
    const { status, headers, text } = await ask('POST', '/sign-in/backchannel-logout');
    expect([status, headers['content-type']]).toEqual([400, 'application/json; charset=utf-8']);
    expect(JSON.parse(text)).toMatchObject({ error: 'invalid_request', error_id: expect.any(String) });
  });
});

describe('a page without a route marker', () => {
  let reached = 0;

  @Controller('account')
  class Forgotten {
    @Get('forgotten')
    show(@Req() _request: Request, @Res() response: Response): void {
      reached++;
      response.end();
    }
  }

  /** A controller that is marked as outside the API, but does not list its permitted callers. */
  @Controller('account')
  @OutsideApi()
  class HalfForgotten {
    @Get('half-forgotten')
    show(@Res() response: Response): void {
      reached++;
      response.end();
    }
  }

  @Module({ controllers: [Forgotten, HalfForgotten] })
  class WithForgotten {}

  it('is not served', async () => {
    const database = await createTestDatabase();
    const config = testConfig(database.environment);
    const app = await NestFactory.create<NestExpressApplication>(
      { module: WithForgotten, imports: [AppModule.with(config)] },
      new ApiAdapter(config),
      { bodyParser: false, logger: false },
    );
    configureApp(app);
    await app.listen(0, '127.0.0.1');
    try {
      for (const path of ['/account/forgotten', '/account/half-forgotten']) {
        const { status } = await ask('GET', path, {}, '', await app.getUrl());
        expect([path, status >= 400]).toEqual([path, true]);
      }
      expect(reached).toBe(0);
    } finally {
      await endApp(app);
      await database.drop();
    }
  });
});

describe('the action of each form', () => {
  it('requires a confirmation, or is listed with the way to undo its effect', () => {
    const forms = oauth.api.app
      .get(RouteTable)
      .routes.filter(
        ({ method, path }) => method === 'POST' && /^\/(interaction|account|developer)\b/.test(path),
      )
      .map(({ path }) => path)
      .filter((path) => !SIGN_IN.test(path));
    expect(forms.toSorted()).toEqual([...Object.keys(QUESTIONS), ...Object.keys(UNDOABLE)].toSorted());
  });
});
