import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Response } from 'supertest';
import { accessOf } from '../../src/auth/auth.guards.js';
import { PROBLEMS } from '../../src/http/output/problems.js';
import { isOutsideApi } from '../../src/http/pipeline/outside-api.js';
import { RouteTable } from '../../src/http/route-table.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';
import type { ApiDocument } from '../support/openapi.js';
import { Client } from '../support/raw-client.js';

/** Routes whose responses change without a write to their data: after any transaction, or every half minute. */
const MOVING = ['/api/public/sync', '/api/public/achievements/stats', '/api/public/achievements/1'];

describe('an API response', () => {
  let api: TestApi;
  let key: string;
  let document: ApiDocument;
  beforeAll(async () => {
    api = await TestApi.start();
    const user = await api.platform.user();
    key = await api.key(user);
    await api.platform.participant(await api.platform.event({ id: 1 }), user);
    await api.platform.achievement({ id: 1 });
    document = (await api.send('GET', '/api/public/openapi.json')).body as ApiDocument;
  });
  afterAll(() => api.close());

  /** Every documented GET, with ids and codes that exist. */
  const gets = () =>
    Object.keys(document.paths)
      .filter((path) => document.paths[path]!.get)
      .map((path) => path.replace('{id}', '1').replace('{code}', 'not_found'));
  const get = (path: string, headers: Record<string, string> = {}) =>
    api.send('GET', path, { 'X-API-Key': key, ...headers });

  describe('with an error', () => {
    it('is a problem document (RFC 9457) with code, path and request id', async () => {
      const { headers, body } = await api.get('/events/999?', key, { 'X-Request-Id': 'mine-1' });
      expect(headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(body).toEqual({
        type: `${api.config.publicUrl}/api/public/problems/event_not_found`,
        title: 'Event not found',
        status: 404,
        detail: expect.any(String),
        instance: '/api/public/events/999',
        code: 'event_not_found',
        request_id: 'mine-1',
      });
    });

    it('forbids caching, and is readable from any origin', async () => {
      for (const path of ['/api/public/nowhere', '/api/public/me']) {
        const { headers } = await api.send('GET', path, { Origin: 'https://app.example' });
        expect(headers['cache-control']).toBe('no-store');
        expect(headers['access-control-allow-origin']).toBe('*');
        expect(headers['access-control-expose-headers']).toContain('WWW-Authenticate');
      }
    });

    it.each([
      ['events?time_filter=soon', 'time_filter must be one of all, upcoming, ongoing, past.'],
      ['events?rsvp_status=gone', /^rsvp_status must be one or more of going, [a-z_, ]+\.$/],
      ['achievements?action=none', 'action must be one of all, stats, detail, pinned.'],
      ['me?x=1', 'This route has no parameter x. It accepts no parameters.'],
      ['me?=1', 'This route has no parameter with an empty name. It accepts no parameters.'],
      ['events?cursor=x', /^cursor was altered, /],
      [
        'connections?limit=0&sort=up&a=1&status=x',
        /^4 parameters are invalid\. The first three: This route has no parameter a\. It accepts limit, [a-z_, ]+\. sort must be one of [a-z_, -]+\. status must be one or more of [a-z_, ]+\.$/,
      ],
      ['events?limit=0&limit=2', 'limit must be given only once.'],
      ['events?limit=0&a=1', /^2 parameters are invalid\. This route .+ limit must be a whole .+\.$/],
    ])('names at most three faults, and allowed values, in the field detail: %s', async (path, detail) => {
      const { body } = await api.get(`/${path}`, key);
      expect(body.detail).toEqual(typeof detail === 'string' ? detail : expect.stringMatching(detail));
    });

    it.each([
      ...['POST', 'DELETE', 'PATCH', 'PUT'].map((method) => [method, 'me', 'GET, HEAD, OPTIONS']),
      ['DELETE', 'profile', 'GET, PUT, HEAD, OPTIONS'],
    ])('is 405 for %s /%s, with Allow: %s', async (method, path, allow) => {
      const { status, headers, body } = await api.send(method!, `/api/public/${path}`);
      expect([status, body.code, headers.allow]).toEqual([405, 'method_not_allowed', allow]);
    });

    it.each([
      'text/html',
      'application/xml',
      'application/json;q=0',
      'image/*',
      'application/json;q=0, */*',
      'application/json; charset=utf-8; q=0, */*;q=0.5',
      'application/problem+json',
      'text/html; profile="application/json"',
    ])('is 406 if Accept: %s excludes JSON', async (accept) => {
      expect((await get('/api/public/me', { Accept: accept })).body.code).toBe('not_acceptable');
    });

    it.each([
      '*/*',
      'application/*',
      'application/json',
      'text/html, */*;q=0.1',
      'application/json; charset=utf-8',
      'application/json;charset="utf-8"',
      'Application/JSON;odata.metadata=minimal;IEEE754Compatible=true',
      'application/json;q=0.9, */*;q=0',
      'application/json; charset=utf-8; q=0.5, text/html',
      'application/*; v=2',
      'text/html; title="a, b; c=\\"d\\"", application/json;indent=2;q=0.1',
      'application/json;q=0, application/json;v=2',
      'application/problem+json, application/json; charset=utf-8',
    ])('is not sent for Accept: %s', async (accept) => {
      expect((await get('/api/public/me', { Accept: accept })).status).toBe(200);
    });

    it.each([
      ['the path', () => get(`/api/public/${key}`)],
      ['the name of a parameter', () => get(`/api/public/me?${key}=1`)],
      ['the name of a field', () => api.put('/profile', key, { [key]: null })],
    ])('repeats no API key that was sent as %s', async (_, request) => {
      const { status, text } = await request();
      expect(status).toBeGreaterThanOrEqual(400);
      expect(text).toContain('[redacted]');
      expect(text).not.toContain(key);
    });
  });

  describe('has the error of the first failed check, in the documented order:', () => {
    const large = 'x'.repeat(20_000);
    const steps: [code: string, request: () => Promise<Response>][] = [
      ['not_found', () => api.send('DELETE', '/api/public/nope', { Accept: 'text/html' })],
      ['method_not_allowed', () => api.send('DELETE', '/api/public/profile', { Accept: 'text/html' })],
      ['not_acceptable', () => api.send('PUT', '/api/public/profile?x=1', { Accept: 'text/html' }, large)],
      ['missing_credentials', () => api.send('PUT', '/api/public/profile?x=1', {}, large)],
      [
        'insufficient_scope',
        async () => api.put('/profile?x=1', await api.key(await api.platform.user(), []), large),
      ],
      ['unknown_parameter', () => api.put('/profile?x=1', key, large)],
      ['unknown_parameter', () => api.get('/events/999?x=1', key)],
      [
        'payload_too_large',
        () => api.put('/profile', key, large, { 'Content-Type': 'text/plain', 'If-Match': '"no"' }),
      ],
      [
        'unsupported_media_type',
        () => api.put('/profile', key, '{', { 'Content-Type': 'text/plain', 'If-Match': '"no"' }),
      ],
      ['invalid_json', () => api.put('/profile', key, '{', { 'If-Match': '"no"' })],
      ['validation_failed', () => api.put('/profile', key, { bio: 1 }, { 'If-Match': '"no"' })],
      ['precondition_failed', () => api.put('/profile', key, { bio: 'x' }, { 'If-Match': '"no"' })],
    ];
    it.each(steps)('%s', async (code, request) => {
      expect((await request()).body.code).toBe(code);
    });
  });

  describe('has headers', () => {
    it('that every GET shares: request id, cache, vary, ETag', async () => {
      for (const path of gets()) {
        const { status, headers } = await get(path, { 'X-Request-Id': 'a.b_c-9' });
        expect([path, status]).toEqual([path, 200]);
        expect(headers).toMatchObject({
          'x-request-id': 'a.b_c-9',
          'cache-control': 'private, no-cache',
          vary: 'Authorization, X-API-Key, Origin',
          etag: expect.stringMatching(/^"[^"]+"$/),
          'access-control-allow-origin': '*',
        });
        expect(headers['set-cookie']).toBeUndefined();
        expect(headers['x-powered-by']).toBeUndefined();
      }
    });

    it.each([
      '',
      'a b',
      'x'.repeat(65),
      '<script>',
      `pua_secret_${'x'.repeat(43)}`,
      'T0ken'.repeat(9).slice(2),
    ])('with a new request id if the caller sends the invalid id %j', async (id) => {
      const { headers } = await api.send('GET', '/api/public/problems', { 'X-Request-Id': id });
      expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    });

    it('for caching: each GET gets 304 if If-None-Match matches', async () => {
      for (const path of gets()) {
        const { headers } = await get(path);
        for (const tag of MOVING.includes(path)
          ? ['*']
          : [headers.etag!, `W/${headers.etag}`, `"x", ${headers.etag}`, '*']) {
          const again = await get(path, { 'If-None-Match': tag });
          expect([path, tag, again.status, again.text]).toEqual([path, tag, 304, '']);
        }
        expect((await get(path, { 'If-None-Match': '"other"' })).status).toBe(200);
      }
    });

    it('such as Content-Type and Link, equal for GET and HEAD, and no body for HEAD', async () => {
      for (const path of gets()) {
        const answer = await get(path);
        const head = await api.send('HEAD', path, { 'X-API-Key': key });
        expect([path, head.status, head.text ?? '']).toEqual([path, 200, '']);
        const ofBody = MOVING.includes(path) ? [] : ['etag', 'content-length'];
        for (const name of [...ofBody, 'content-type', 'x-total-count', 'link']) {
          expect([path, name, head.headers[name]]).toEqual([path, name, answer.headers[name]]);
        }
      }
    });

    it('for a preflight, which allow any origin and Authorization, but no API key or cookie', async () => {
      const { status, headers } = await api.send('OPTIONS', '/api/public/profile', {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'PUT',
        'Access-Control-Request-Headers': 'authorization',
      });
      expect(status).toBe(204);
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(headers['access-control-allow-methods']).toContain('PUT');
      expect(headers['access-control-allow-headers']).toMatch(/Authorization/);
      expect(headers['access-control-allow-headers']).not.toMatch(/api-key/i);
      expect(headers['access-control-allow-credentials']).toBeUndefined();
    });

    it('that scripts in pages can read', async () => {
      expect((await get('/api/public/me')).headers['access-control-expose-headers']).toBe(
        'Age, ETag, Link, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Total-Count, X-Request-Id, WWW-Authenticate, X-OAuth-Scopes, X-Accepted-OAuth-Scopes, Deprecation, Sunset',
      );
    });
  });

  describe('is documented', () => {
    const routes = () =>
      api.app.get(RouteTable).routes.flatMap(({ method, path, handler, controller }) => {
        if (isOutsideApi(controller)) return [];
        const access = accessOf(handler, controller);
        const scope = access === 'public' ? 'none' : access === null ? 'any credential' : access;
        return `${method} ${path.replace(/:(\w+)/g, '{$1}')} ${scope}`;
      });

    it('in the contract: each route with its scope, and each code', () => {
      const contract = readFileSync('docs/api-contract.md', 'utf8');
      const rows = [...contract.matchAll(/^\| (GET|PUT) (\/api\/public[^|]+?) +\| ([^|]+?) +\|/gm)].flatMap(
        ([, method, paths, scope]) =>
          paths!.split(', ').map((path) => `${method} ${path.replace(/\?.*/, '')} ${scope}`),
      );
      const ofApi = routes().filter((route) => route.includes(' /api/public'));
      expect([...new Set(rows)].toSorted()).toEqual(ofApi.toSorted());
      const errors = contract.slice(contract.indexOf('## 8.'), contract.indexOf('## 9.'));
      const told = [...PROBLEMS.keys()].filter((code) => !new RegExp(`\\b${code}\\b`).test(errors));
      expect(told).toEqual([]);
      const statuses = [...errors.matchAll(/^\| ([\d, ]+?) +\|/gm)].flatMap(([, list]) => list!.split(', '));
      const known = [...new Set([...PROBLEMS.values()].map(({ status }) => String(status)))];
      expect(statuses.toSorted()).toEqual(known.toSorted());
    });

    it('in OpenAPI 3.1: each route with its scope', () => {
      expect(document.openapi).toBe('3.1.0');
      const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
        Object.entries(operations).map(([method, { security }]) => {
          const oauth = security.find((requirement) => 'oauth2' in requirement) as
            { oauth2: string[] } | undefined;
          return `${method.toUpperCase()} ${path} ${oauth ? (oauth.oauth2[0] ?? 'any credential') : 'none'}`;
        }),
      );
      const ofApi = routes().filter((route) => route.includes(' /api/public'));
      expect(documented.toSorted()).toEqual(ofApi.toSorted());
    });

    it('with its parameters: each GET rejects an unknown parameter, and OpenAPI lists the 14 of /events', async () => {
      for (const path of gets())
        expect((await get(`${path}?surely_unknown=1`)).body.code).toBe('unknown_parameter');
      const { parameters } = document.paths['/api/public/events']!.get!;
      const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
      expect(names.join(' ')).toBe(
        'limit cursor sort time_filter starts_after starts_before status role rsvp_status is_online q city country_code updated_since',
      );
    });

    it('with list parameters, which accept repeated and comma-separated values', async () => {
      for (const [path, { get: operation }] of Object.entries(document.paths)) {
        for (const { name, schema, style, explode, description } of operation?.parameters ?? []) {
          if (schema.type !== 'array') continue;
          expect([path, name, style, explode]).toEqual([path, name, 'form', true]);
          expect([path, name, description]).toEqual([path, name, expect.stringContaining('repeat')]);
          const { $ref, enum: inline = ['some', 'other'] } = schema.items!;
          const words = $ref ? document.components.schemas[$ref.split('/').at(-1)!]!.enum! : inline;
          const [one, other] = words;
          for (const query of [`${name}=${one}&${name}=${other}`, `${name}=${one},${other}`])
            expect([query, (await get(`${path}?${query}`)).status]).toEqual([query, 200]);
        }
      }
    });
  });

  describe('is explained at GET /api/public/problems and GET /api/public/problems/{code}', () => {
    it('both without a credential and with the same texts', async () => {
      const { body } = await api.send('GET', '/api/public/problems');
      expect(body.data.map(({ code }: { code: string }) => code)).toEqual([...PROBLEMS.keys()]);
      for (const entry of body.data as { code: string }[]) {
        expect(Object.keys(entry)).toEqual(['code', 'status', 'title', 'meaning', 'fix']);
        expect((await api.send('GET', `/api/public/problems/${entry.code}`)).body).toEqual(entry);
      }
      expect((await api.send('GET', '/api/public/problems/none')).body.code).toBe('not_found');
    });
  });
});

describe('input on the raw socket', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start({ requestDeadlines: { headers: 2_000, whole: 10_000 } });
  });
  afterAll(() => api.close());

  it.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['too large headers', `GET /livez HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`],
    [
      'a length that is not a number',
      'PUT /api/public/profile HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n',
    ],
    [
      'two lengths',
      'PUT /api/public/profile HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a control character in a header', 'GET /livez HTTP/1.1\r\nHost: x\r\nX-Bad: a\u0000b\r\n\r\n'],
  ])('gets a 4xx status without a body if it is not a valid request: %s', async (_, bytes) => {
    const answer = await Client.ask(api.url, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(answer).toMatch(/Connection: close\r\n\r\n$/);
    expect((await api.send('GET', '/api/public/problems')).status).toBe(200);
  });

  thorough.it('gets 408 and a closed connection if its headers miss the deadline', async () => {
    expect(await Client.ask(api.url, 'GET /livez HTTP/1.1\r\nX-Slow: ')).toMatch(/^HTTP\/1\.1 408 /);
  });
});
