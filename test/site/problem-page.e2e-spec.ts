import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AppModule } from '../../src/app.module.js';
import { configureApp } from '../../src/app.js';
import { Public } from '../../src/auth/auth.decorators.js';
import { Config } from '../../src/config/config.js';
import { Problem, type ProblemCode } from '../../src/http/output/problems.js';
import { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { OutsideApi } from '../../src/http/pipeline/outside-api.js';
import { endApp } from '../support/api.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database.js';

const HTML = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

/** A page for which every kind of error occurs. */
@Controller('fails')
@Public()
@OutsideApi()
class Failing {
  @Get(':code')
  show(@Param('code') code: ProblemCode): void {
    const headers: Record<string, string> = code === 'rate_limited' ? { 'Retry-After': '7' } : {};
    throw new Problem(code, { detail: 'as <never> before', headers });
  }
}

@Module({ controllers: [Failing] })
class WithFailing {}

describe('a failed request gets', () => {
  let database: TestDatabase;
  let app: NestExpressApplication;
  let url: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    const config = testConfig(database.environment);
    const module = { module: WithFailing, imports: [AppModule.with(config)] };
    app = await NestFactory.create(module, new ApiAdapter(config), { bodyParser: false, logger: false });
    configureApp(app);
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  });
  afterAll(async () => {
    await endApp(app);
    await database.drop();
  });

  const get = (path: string, headers: Record<string, string> = HTML, method = 'GET') =>
    fetch(url + path, { method, headers, redirect: 'manual' });

  const cases = [
    ['POST', '/docs', 405, 'GET, HEAD, OPTIONS'],
    ['DELETE', '/account/apps', 405, 'GET, HEAD'],
    ['PUT', '/oauth/authorize', 405, 'GET, HEAD, POST'],
  ] as const;

  it.each(cases)('a page in the reader’s language: %s %s', async (method, path, status, allow) => {
    for (const [language, title] of [
      ['en', 'This did not work'],
      ['de', 'Das hat nicht geklappt'],
      ['fr', 'Cela n’a pas fonctionné'],
    ]) {
      const page = await get(path, { ...HTML, 'Accept-Language': language! }, method);
      expect([page.status, page.headers.get('allow'), page.headers.get('content-language')]).toEqual([
        status,
        allow,
        language,
      ]);
      expect(page.headers.get('cache-control')).toBe('no-store');
      const html = await page.text();
      expect(html).toContain(`<h1>${title}</h1>`);
      expect(html).toContain('<code>method_not_allowed</code>');
      expect(html).toContain('href="?ui_locales=fr"');
    }
  });

  it.each(cases)('a problem document for programs: %s %s', async (method, path, status, allow) => {
    for (const Accept of ['*/*', 'application/json', 'application/json, text/html', '']) {
      const problem = await get(path, { Accept, 'X-Request-Id': 'of-this-test' }, method);
      expect([Accept, problem.status, problem.headers.get('allow')]).toEqual([Accept, status, allow]);
      expect(problem.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
      expect(await problem.text()).toBe(
        `{"type":"${app.get(Config).publicUrl}/api/public/problems/method_not_allowed","title":"Method not allowed","status":405,` +
          `"detail":"This route supports ${allow}.","instance":"${path}","code":"method_not_allowed","request_id":"of-this-test"}`,
      );
    }
  });

  it.each([
    ['GET', '/oauth/token', 405],
    ['GET', '/oauth/userinfo', 401],
    ['DELETE', '/livez', 405],
    ['DELETE', '/api/public/me', 405],
  ])('no page on routes for programs, even if it accepts HTML: %s %s', async (method, path, status) => {
    const problem = await get(path, HTML, method);
    expect(problem.status).toBe(status);
    expect(problem.headers.get('content-type')).toMatch(/^application\/(problem\+)?json/);
  });

  it.each([
    ['invalid_parameter', 400, 'This did not work'],
    ['insufficient_scope', 403, 'This did not work'],
    ['payload_too_large', 413, 'The form could not be read'],
    ['unsupported_media_type', 415, 'The form could not be read'],
    ['rate_limited', 429, 'Try again in 7 seconds.'],
    ['internal_error', 500, 'The server failed. It’s not your fault'],
    ['temporarily_unavailable', 503, 'The server is busy'],
  ] as const)('a page that explains the error: %s, %i', async (code, status, said) => {
    const page = await get(`/fails/${code}`);
    expect([page.status, page.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8']);
    const html = await page.text();
    expect(html).toContain(said);
    expect(html).toContain(`<code>${code}</code>`);
    expect(html).toContain('as &lt;never&gt; before');
    // Only pages about a fault of the server show the request id.
    expect(html.includes(page.headers.get('x-request-id')!)).toBe(status >= 500);
    const problem = await get(`/fails/${code}`, { Accept: '*/*' });
    expect(problem.headers.get('retry-after')).toBe(page.headers.get('retry-after'));
    expect(page.headers.get('retry-after')).toBe(status === 429 ? '7' : status === 503 ? '1' : null);
    expect(await problem.json()).toMatchObject({ code, status, detail: 'as <never> before' });
  });
});
