import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Module, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import { AppModule } from '../../src/app.module.js';
import { configureApp } from '../../src/app.js';
import { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { isOutsideApi, OutsideApi } from '../../src/http/pipeline/outside-api.js';
import { RateLimits } from '../../src/auth/rate-limits/rate-limits.js';
import { RouteTable } from '../../src/http/route-table.js';
import { endApp } from '../support/api.js';
import { createTestDatabase, testConfig } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';
import { rawRequest } from '../support/raw-request.js';
import { QUESTIONS } from '../../src/member-pages/rendering/questions.js';

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

const ask = (method: string, path: string, headers?: Record<string, string>, body?: string) =>
  rawRequest(oauth.issuer, method, path, headers, body);
const routesAt = (prefix: RegExp) =>
  oauth.api.app.get(RouteTable).routes.filter(({ path }) => prefix.test(path));
/** The paths of all pages, and the methods that their routes declare. */
const pages = () =>
  Map.groupBy(routesAt(/^\/(interaction|account|developer|sign-in(?!\/backchannel))\b/), ({ path }) => path);
const pathOf = (route: string) => route.replaceAll(/:\w+/g, 'abc');
/** Every method that a test tries. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY'];

describe('the pages', () => {
  it('have a rate limit per address, unless their controller is listed as exempt', async () => {
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

  it('accept only the methods of their routes, with security headers, and redirect from a form’s URL to a page', async () => {
    const all = [...pages()].map(([route, of]) => {
      const methods = of.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      return { path: pathOf(route), methods: METHODS.filter((method) => methods.includes(method)) };
    });
    expect(all.length).toBeGreaterThan(90);
    const readable = all.flatMap(({ path, methods }) => (methods.includes('GET') ? [path] : []));
    for (const { path, methods } of all) {
      const allow = methods.join(', ');
      for (const method of METHODS) {
        const answer = await ask(method, path);
        const isRead = method === 'GET' || method === 'HEAD';
        const what = `${method} ${path}`;
        if (isRead && (!methods.includes(method) || path === '/account')) {
          expect([what, answer.status, answer.headers['x-frame-options']]).toEqual([what, 303, 'DENY']);
          expect(readable).toContain(answer.headers.location);
        } else if (!methods.includes(method)) {
          expect([what, answer.status, answer.headers.allow]).toEqual([what, 405, allow]);
        } else {
          expect([what, answer.status]).not.toEqual([what, 405]);
          expect(answer.headers).toMatchObject({
            'content-type': 'text/html; charset=utf-8',
            'x-frame-options': 'DENY',
            'cache-control': 'no-store',
          });
          if (method === 'HEAD') expect(answer.text).toBe('');
        }
      }
      const options = await ask('OPTIONS', path, { Origin: 'https://a.example' });
      expect(options).toMatchObject({ status: 200, text: allow, headers: { allow } });
      expect(options.headers['access-control-allow-origin']).toBeUndefined();
    }
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

  it('ignore Accept, API credentials and unknown query parameters, as /account/apps shows', async () => {
    const headers = { Accept: 'image/png', 'X-API-Key': 'pua_live_wrong', Authorization: 'Bearer wrong' };
    const { status, headers: answered } = await ask('GET', '/account/apps?unknown=1&limit=x', headers);
    expect([status, answered['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    for (const name of ['ratelimit', 'x-oauth-scopes', 'access-control-allow-origin'])
      expect(answered).not.toHaveProperty(name);
  });

  const SPELLINGS = `/account/ /account/apps/ /Account/apps /account//apps /account/%61pps /account/apps%2f
/account/apps/r%65voke /account/sessions/a%62c/end /account/sessions/a%20b/end /account/sessions/a.b/end
/account/sessions/%00/end /account/sessions/%ff/end /account/sessions/a%2Fb/end /account/apps/../apps
/interaction/${'a'.repeat(101)} /interaction/a~b /interaction/%61bc /interaction/abc/ /interaction/abc/Sign-in
/interaction/abc/other /oauth/userinfo/ /oauth/Userinfo /oauth/%75serinfo /demo/app.js/ /demo/..%2fapp.js
/.well-known/oauth-protected-resource /.Well-Known/openid-configuration /OAUTH/token /oauth/token/ /oauth//token
/oauth/%74oken`.split(/\s/);
  it.each(SPELLINGS)('respond 404 to a path that matches no route exactly: %s', async (path) => {
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
  ])('respond 400 to a form that is %s', async (_, headers, body) => {
    const { status, text } = await ask('POST', '/account/sign-out', headers, body);
    expect(status).toBe(400);
    expect(text).toContain('The form could not be read.');
  });
});

describe('a route that is neither a page nor an oidc-provider route', () => {
  it('of the authorization server or the demo is one of the listed routes', () => {
    const routes = routesAt(/^\/(oauth|\.well-known\/oauth|logos|demo|sign-in\/backchannel-logout)\b/);
    const found = routes.map(({ method, path }) => `${method} ${path}`);
    expect(found.toSorted()).toEqual([...BESIDE_THEM, ...CALLED_BACK, ...LOGOS].toSorted());
  });

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
])(
  'an oidc-provider route at %s accepts %s, and responds 405 to other methods except OPTIONS',
  async (path, methods) => {
    for (const method of METHODS) {
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
  },
);

it('the external identity provider’s back-channel accepts only POST, and responds to an empty request with a JSON error', async () => {
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH'])
    expect([method, await ask(method, '/sign-in/backchannel-logout')]).toMatchObject([
      method,
      { status: 405, headers: { allow: 'POST' } },
    ]);
  const { status, headers, text } = await ask('POST', '/sign-in/backchannel-logout');
  expect([status, headers['content-type']]).toEqual([400, 'application/json; charset=utf-8']);
  expect(JSON.parse(text)).toMatchObject({ error: 'invalid_request', error_id: expect.any(String) });
});

describe('a page whose controller lacks a route marker', () => {
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
        const { status } = await rawRequest(await app.getUrl(), 'GET', path);
        expect([path, status >= 400]).toEqual([path, true]);
      }
      expect(reached).toBe(0);
    } finally {
      await endApp(app);
      await database.drop();
    }
  });
});

it('the action of each form except sign-in forms requires a confirmation, or is listed with the way to undo its effect', () => {
  const forms = routesAt(/^\/(interaction|account|developer)\b/)
    .filter(({ method, path }) => method === 'POST' && !SIGN_IN.test(path))
    .map(({ path }) => path);
  expect(forms.toSorted()).toEqual([...Object.keys(QUESTIONS), ...Object.keys(UNDOABLE)].toSorted());
});
