import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { ApiAdapter } from '../../src/http/pipeline/api.adapter.js';
import { MAX_CONCURRENT, type EntryPoint, type Kind } from '../../src/http/pipeline/entry-point.js';
import { Database } from '../../src/database/database.js';
import { OpenApiDocument } from '../../src/openapi/openapi-document.js';
import { RouteTable } from '../../src/http/route-table.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { isThorough, postgres, thorough } from '../support/database.js';
import { Client } from '../support/raw-client.js';
import { eventually, until } from '../support/timing.js';

const entryPointOf = ({ app }: TestApi): EntryPoint => (app.getHttpAdapter() as ApiAdapter).entryPoint;
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const headersOf = (answer: string): Record<string, string> =>
  Object.fromEntries(
    answer
      .slice(0, answer.indexOf('\r\n\r\n'))
      .split('\r\n')
      .slice(1)
      .map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );

/** Headers of every API response (docs/api-contract.md §10, §8). */
const HEADERS_OF_API = {
  'x-request-id': expect.any(String),
  vary: 'Authorization, X-API-Key, Origin',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': expect.stringContaining('Retry-After'),
  'x-content-type-options': 'nosniff',
};

describe('the request target', () => {
  let api: TestApi;
  let key: string;
  beforeAll(async () => {
    api = await TestApi.start({ rateLimits: { read: 1e6, write: 1e6, auth: 1e4 } });
    key = await api.key(await api.platform.user());
  });
  afterAll(() => api.close());

  const ask = (target: string, method = 'GET') =>
    Client.ask(
      api.url,
      `${method} ${target} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: close\r\n\r\n`,
    );
  const expectNotFound = (target: string, answer: string) => {
    expect([target, statusOf(answer)]).toEqual([target, 404]);
    expect(headersOf(answer)).toMatchObject({
      ...HEADERS_OF_API,
      'cache-control': 'no-store',
      'content-type': 'application/problem+json; charset=utf-8',
    });
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ code: 'not_found' });
  };

  it.each([
    'ftp://x/account/apps',
    'ftp://x/api/public/me',
    '/account\\apps#',
    '/account\\apps',
    '/account/apps#',
    '/api\\public\\me#',
    '/api/public/me#',
    '/api/public/me?#',
    '/api/public/events?q=a\\b',
    'http:///api/public/me',
    'http://name:password@host/api/public/me',
    '*',
    '//host/api/public/me',
    '/./api/public/me',
    '/x/../api/public/me',
    '/%2e%2e/api/public/me',
    '/api/public/me;x',
    '/api/public/',
    '/api/public/ME',
    '/api/public/me/',
    '/api/public//me',
    '/api/public/%6de',
    '/api/public/nowhere/%zz',
    '/nowhere',
    '/oauth\\token#',
    '/readyz#',
    '/xxxxxxxxxx'.repeat(700),
  ])('outside all routes gets 404 with the API’s headers: %s', async (target) => {
    expectNotFound(target, await ask(target));
  });

  it.each([
    '\\api\\public\\me',
    'http:/api/public/me',
    'http://host\\api/public/me',
    'javascript:/api/public/me',
    'api/public/me',
    '/api/public/me\xa0',
    '/api/public/\xc3\xa9',
    '/api/public/me\0',
    '/api/public/me\tx',
  ])('that Node cannot parse gets 400, and the server closes the connection: %j', async (target) => {
    expect(await ask(target)).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });

  it.each(['http://host', 'https://host:8080', 'HTTP://HOST', 'http://[::1]:3000'])(
    'may be an absolute URL, whose host the server ignores: %s/api/public/me',
    async (origin) => {
      const answer = await ask(`${origin}/api/public/me?`);
      expect(statusOf(answer)).toBe(200);
      expect(headersOf(answer)).toMatchObject(HEADERS_OF_API);
      expect(await ask(`${origin}?x`)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*<h1>/); // the front page
    },
  );

  it('of a CONNECT request gets no response: the server closes the connection', async () => {
    expect(await ask('x:443', 'CONNECT')).toBe('');
  });

  it('reaches a route only with the exact path, and is redirected only with an additional trailing slash', async () => {
    const routes = [
      ...api.app.get(RouteTable).routes.map(({ path }) => path),
      // oidc-provider responds to these paths.
      '/oauth/jwks',
      '/oauth/authorize',
      '/oauth/logout',
      '/.well-known/openid-configuration',
      '/.well-known/oauth-authorization-server',
    ];
    const isRoute = (path: string) =>
      routes.some((route) =>
        new RegExp(`^${route.replace('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`).test(path),
      );
    const piece = fc.oneof(
      fc.constantFrom(...routes),
      fc.constantFrom(...'/ \\ # ? . .. %2e %2f %5c %00 %ff % ; @ : //'.split(' ')),
      fc.constantFrom(...'http://h https://h:1 ftp://h file: http: \xa0 \xff x q=1 *'.split(' ')),
      fc.string({ minLength: 1, maxLength: 3 }).map((text) => text.replace(/[^!-~]/g, '~')),
    );
    const targets = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(''));
    await fc.assert(
      fc.asyncProperty(targets, async (target) => {
        const answer = await ask(target);
        const status = statusOf(answer);
        if (answer === '') return; // Node cannot parse the request, and closes the connection
        if (status === 404 || (status === 400 && !/\nx-request-id:/i.test(answer))) return;
        const path = target
          .replace(/^https?:\/\/[^/?#@\\]+/i, '')
          .replace(/[?][^#\\]*$/, '')
          .replace(/^$/, '/'); // RFC 9112 §3.2.1
        if (status === 308) {
          expect([target, isRoute(path.slice(0, -1))]).toEqual([target, true]); // a trailing slash, which users may type
          return;
        }
        expect([target, status, isRoute(path)]).toEqual([target, status, true]);
        expect(headersOf(answer)).toMatchObject({ 'x-request-id': expect.any(String) });
        if (path.startsWith('/api/')) expect(headersOf(answer)).toMatchObject(HEADERS_OF_API);
        else if (!/^\/(livez|readyz)/.test(path))
          expect([target, headersOf(answer)['x-content-type-options']]).toEqual([target, 'nosniff']);
      }),
      { numRuns: isThorough ? 400 : 100 },
    );
  });
});

thorough.describe('a slow request body', () => {
  const ANSWER_MS = 1_500;
  let api: TestApi;
  let impatient: TestApi;
  let key: string;
  /** The final responses to clients that never complete their body; they arrive while other tests run. */
  let cutOff: Promise<string[]>;
  beforeAll(async () => {
    api = await TestApi.start({
      databaseDeadlines: { connect: 1_000, lock: 1_000, statement: 1_000, answer: ANSWER_MS },
      rateLimits: { read: 1e6, write: 1e6, auth: 1e6 },
    });
    impatient = await TestApi.start({ requestDeadlines: { headers: 1_000, whole: 2_000 } }, api);
    key = await api.key(await api.platform.user());
    cutOff = Promise.all(
      [
        `PUT /api/public/profile HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json`,
        'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded',
        'POST /account/apps/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded',
      ].map((head) => Client.ask(impatient.url, `${head}\r\nContent-Length: 100\r\n\r\nx`)),
    );
  });
  afterAll(async () => {
    await impatient.close();
    await api.close();
  });

  /** Sends the body over twice the response deadline. */
  async function dribble(method: string, path: string, headers: Record<string, string>, body: string) {
    const client = await Client.open(api.url);
    const all = { Host: 'x', 'Content-Length': String(body.length), Connection: 'close', ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    client.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    for (const letter of body) {
      await wait((2 * ANSWER_MS) / body.length);
      client.socket.write(letter);
    }
    await once(client.socket, 'close');
    return client.text;
  }

  it('does not cause a 503: the response deadline starts at the body’s end', async () => {
    const put = dribble(
      'PUT',
      '/api/public/profile',
      { 'X-API-Key': key, 'Content-Type': 'application/json' },
      '{"bio": "slow"}',
    );
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const token = dribble('POST', '/oauth/token', form, 'grant_type=refresh_token&client_id=none');
    const page = dribble('POST', '/account/apps/sign-in', form, 'username=a&password=b');
    expect(statusOf(await put)).toBe(200);
    expect((await put).split('\r\n\r\n')[1]).toContain('"bio":"slow"');
    expect([await token, await page].map(statusOf)).toEqual([401, 403]);
  });

  const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
  it.each([
    ['oauth', 'POST /oauth/token', () => form],
    ['oauth', 'POST /oauth/authorize', () => form],
    ['pages', 'POST /account/apps/sign-in', () => form],
    ['api', 'PUT /api/public/profile', () => `X-API-Key: ${key}\r\nContent-Type: application/json\r\n`],
  ] as [Kind, string, () => string][])(
    'occupies no slot that complete requests need (%s, %s)',
    async (kind, line, headers) => {
      const { connections, admissions } = entryPointOf(api);
      const clients = await atOnce(300, () => Client.open(api.url));
      // Sent in small groups: if more requests than slots arrive at once, a slow host rejects some before it waits for their bodies.
      for (const [index, { socket }] of clients.entries()) {
        socket.write(
          `${line} HTTP/1.1\r\nHost: x\r\n${headers()}Content-Length: 16384\r\n\r\n${'x'.repeat(16_000)}`,
        );
        if (index % 20 === 19) await eventually(() => connections.state().unfinished > index || undefined);
      }
      const goes = ['/oauth/jwks', '/account/apps', '/api/public/problems', '/readyz'];
      for (const path of goes) expect([path, (await api.send('GET', path)).status]).toEqual([path, 200]);
      expect(admissions[kind].state()).toEqual({ atWork: 0, waiting: 0, held: 0 });
      for (const { socket } of clients) socket.destroy();
      await eventually(() => connections.state().unfinished === 0 || undefined);
      expect(admissions[kind].state()).toEqual({ atWork: 0, waiting: 0, held: 0 });
    },
  );

  it('gets 408 if it is incomplete at the request deadline', async () => {
    for (const answer of await cutOff) expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('a client that pipelines requests', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start();
    await api.send('GET', '/api/public/openapi.json'); // generated at the first request
    await api.send('GET', '/readyz');
  });
  afterAll(() => api.close());

  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const flood = request('/api/public/openapi.json').repeat(1_200); // 62 KB

  thorough.it('without reading responses occupies less than 200 MB on 12 connections', async () => {
    const clients = await atOnce(12, () => Client.open(api.url));
    const before = process.memoryUsage();
    for (const { socket } of clients) socket.pause().write(flood);
    for (let i = 0; i < 20; i++) expect((await api.send('GET', '/livez')).status).toBe(200);
    const after = process.memoryUsage();
    expect(after.rss - before.rss).toBeLessThan(200e6); // 1.2 GB in an earlier version
    for (const { socket } of clients) socket.destroy();
  });

  it('with 700 requests in one write gets all responses in order', async () => {
    const client = await Client.open(api.url);
    const ids = Array.from({ length: 700 }, (_, i) => i);
    const requests = ids.map((id) => `GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`);
    client.socket.write(requests.join(''));
    await client.until((text) => text.split('{"status":"ok"}').length > 700);
    expect([...client.text.matchAll(/X-Request-Id: (\d+)/g)].map(([, id]) => Number(id))).toEqual(ids);
    client.socket.destroy();
  });

  thorough.it('with 1,500 requests for /readyz every 250 ms causes no error for another client', async () => {
    const client = await Client.open(api.url);
    const sending = setInterval(() => client.socket.write(request('/readyz').repeat(1_500)), 250);
    for (let i = 0; i < 30; i++) {
      expect((await api.send('GET', '/api/public/problems/not_found')).status).toBe(200);
      await wait(50);
    }
    clearInterval(sending);
    client.socket.destroy();
  });

  it('gets 417 for an unknown Expect, and then 400 for a request without Host', async () => {
    const client = await Client.open(api.url);
    client.socket.write(
      'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: the unknown\r\n\r\nGET /livez HTTP/1.1\r\n\r\n'.repeat(2),
    );
    await once(client.socket, 'close');
    expect(client.text.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(['417', '400']);
  });

  it('gets 400 for a request with two Host headers, even if both are equal', async () => {
    for (const second of ['other', 'x']) {
      const answer = await Client.ask(api.url, `GET /livez HTTP/1.1\r\nHost: x\r\nhOST: ${second}\r\n\r\n`);
      expect(statusOf(answer)).toBe(400);
    }
  });

  it('may send another header with a name as short as Host', async () => {
    const text = 'GET /livez HTTP/1.1\r\nHost: x\r\nFrom: ada@example.org\r\nConnection: close\r\n\r\n';
    expect(statusOf(await Client.ask(api.url, text))).toBe(200);
  });

  it('gets 100 Continue if it sends Expect: 100-continue before a body', async () => {
    const client = await Client.open(api.url);
    client.socket.write(
      'POST /oauth/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n',
    );
    await client.until((text) => text.includes('100 Continue'));
    client.socket.write('grant_type=x');
    await once(client.socket, 'close');
    expect(client.text).toMatch(/HTTP\/1\.1 400 Bad Request[^]*"error":/);
  });

  postgres.it('occupies no connection or slot after it resets the connection', async () => {
    const unfinished = ['POST /oauth/token', 'PUT /api/public/profile'].map(
      (line) => `${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx`,
    );
    for (const text of [flood, request('/readyz').repeat(100), ...unfinished]) {
      const client = await Client.open(api.url);
      client.socket.write(text);
      await wait(20);
      client.socket.resetAndDestroy();
    }
    const { connections, admissions } = entryPointOf(api);
    await until(() => connections.state().open === 0);
    expect(connections.state()).toEqual({ open: 0, idle: 0, unfinished: 0, ahead: 0, unread: 0 });
    for (const [kind, admission] of Object.entries(admissions))
      expect([kind, admission.state()]).toEqual([kind, { atWork: 0, waiting: 0, held: 0 }]);
  });
});

describe('an overloaded process', () => {
  let api: TestApi;
  let entryPoint: EntryPoint;
  const filled: Kind[] = [];
  beforeAll(async () => {
    api = await TestApi.start({ publicUrl: 'https://api.example' });
    entryPoint = entryPointOf(api);
    await api.send('GET', '/livez'); // creates the client that compares responses with the OpenAPI document
  });
  afterEach(async () => {
    empty();
    await new Promise((resolve) => setImmediate(resolve));
  });
  afterAll(() => api.close());

  /** Starts the maximum number of concurrent requests of a kind, and ends none of them. */
  const fill = (kind: Kind) => {
    for (let i = 0; i < MAX_CONCURRENT; i++)
      entryPoint.admissions[kind].enter(
        { address: `10.0.${i}.1`, credential: '' },
        () => filled.push(kind),
        () => undefined,
      );
  };
  const empty = () => {
    for (const kind of filled.splice(0)) entryPoint.admissions[kind].leave();
  };

  it('distinguishes callers in the fair queue by their key or token', async () => {
    const enter = jest.spyOn(entryPoint.admissions.api, 'enter');
    const headers: Record<string, string>[] = [{ 'X-API-Key': 'one' }, { Authorization: 'Bearer two' }, {}];
    for (const sent of headers) await api.send('GET', '/api/public/me', sent);
    const callers = enter.mock.calls.map(([{ credential }]) => credential);
    enter.mockRestore();
    expect(callers).toEqual(['one', 'Bearer two', '']);
  });

  it('rejects an API request with 503 temporarily_unavailable, Retry-After and the API’s headers', async () => {
    fill('api');
    const key = await api.key(await api.platform.user());
    const { status, headers, body } = await api.get('/me', key, { 'X-Request-Id': 'mine' });
    expect([status, headers['retry-after'], headers['cache-control']]).toEqual([503, '1', 'no-store']);
    expect(headers).toMatchObject({
      ...HEADERS_OF_API,
      'x-request-id': 'mine',
      'content-type': 'application/problem+json; charset=utf-8',
      'strict-transport-security': 'max-age=31536000',
    });
    expect(body).toEqual({
      type: 'https://api.example/api/public/problems/temporarily_unavailable',
      title: 'Temporarily unavailable',
      status: 503,
      detail: expect.any(String),
      instance: '/api/public/me',
      code: 'temporarily_unavailable',
      request_id: 'mine',
    });
    expect(entryPoint.admissions.api.refused).toBeGreaterThan(0);
    const head = await api.send('HEAD', '/api/public/me', { 'X-API-Key': key });
    expect([head.status, head.text ?? '']).toEqual([503, '']);
  });

  it.each(['/oauth/token', '/oauth/par', '/oauth/revoke', '/oauth/introspect'])(
    'rejects a client’s request to %s with an error of RFC 6749 that any origin can read',
    async (path) => {
      fill('oauth');
      const { status, headers, body } = await api.send('POST', path, {}, 'grant_type=x');
      expect([status, headers['retry-after'], headers['access-control-allow-origin']]).toEqual([
        503,
        '1',
        '*',
      ]);
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(body).toEqual({
        error: 'temporarily_unavailable',
        error_description: expect.any(String),
        error_id: headers['x-request-id'],
      });
    },
  );

  it.each([
    ['oauth', '/oauth/authorize?client_id=x'],
    ['pages', '/account/apps'],
    ['pages', '/interaction/abc'],
  ] as const)('rejects a browser’s request with a page (%s, %s)', async (kind, path) => {
    fill(kind);
    const { status, headers, text } = await api.send('GET', path, { Accept: 'text/html,*/*;q=0.8' });
    expect([status, headers['retry-after'], headers['content-type']]).toEqual([
      503,
      '1',
      'text/html; charset=utf-8',
    ]);
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(text).toContain(headers['x-request-id']);
    expect(text).toContain('Try again in a moment');
    expect(text.length).toBeLessThan(500);
  });

  it('still reports liveness and readiness, and serves other kinds of requests', async () => {
    fill('pages');
    fill('oauth');
    expect((await api.send('GET', '/api/public/problems')).status).toBe(200);
    fill('api');
    expect((await api.send('GET', '/livez')).status).toBe(200);
    expect((await api.send('GET', '/readyz')).status).toBe(200);
  });

  it('serves a waiting request when slots become free', async () => {
    fill('api');
    expect((await api.send('GET', '/api/public/problems')).status).toBe(503);
    const waits = api.send('GET', '/api/public/problems');
    await eventually(() => entryPoint.admissions.api.state().waiting > 0 || undefined);
    empty();
    expect((await waits).status).toBe(200);
  });
});

describe('a static document', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start({ seedDemo: true })));
  afterAll(() => api.close());

  it.each([
    '/docs',
    '/demo',
    '/demo/app.js',
    '/api/public/openapi.json',
    '/api/public/problems',
    '/api/public/problems/not_found',
    '/.well-known/oauth-protected-resource/api/public',
  ])('keeps its ETag, and supports If-None-Match and HEAD: %s', async (path) => {
    const plain = { 'Accept-Encoding': 'identity' };
    const first = await api.send('GET', path, plain);
    const again = await api.send('GET', path, plain);
    expect([first.status, again.headers.etag]).toEqual([200, first.headers.etag]);
    expect(first.headers.etag).toMatch(/^"[\w-]{27}"$/);
    const known = await api.send('GET', path, { ...plain, 'If-None-Match': first.headers.etag! });
    expect([known.status, known.text, known.headers.etag]).toEqual([304, '', first.headers.etag]);
    const head = await api.send('HEAD', path, plain);
    expect([head.status, head.text ?? '', head.headers['content-length']]).toEqual([
      200,
      '',
      String(Buffer.byteLength(first.text)),
    ]);
  });

  it.each(['/', '/docs', '/docs/errors', '/docs/errors.md', '/demo'])(
    'is compressed for clients that accept br or gzip, with a separate ETag: %s',
    async (path) => {
      const get = async (accepted?: string) =>
        fetch(new URL(path, api.url), { headers: accepted ? { 'Accept-Encoding': accepted } : {} });
      const plain = await get('identity');
      const text = await plain.text();
      expect([plain.headers.get('content-encoding'), plain.headers.get('vary')]).toEqual([
        null,
        'Accept-Encoding',
      ]);
      for (const [accepted, coding] of [
        ['gzip, deflate, br', 'br'],
        ['gzip', 'gzip'],
        ['br;q=0, gzip', 'gzip'],
        ['zstd', null],
        [`br${',a'.repeat(7_000)}`, null], // would take milliseconds to read
      ] as const) {
        const answer = await get(accepted);
        expect([accepted, answer.headers.get('content-encoding')]).toEqual([accepted, coding]);
        expect(await answer.text()).toBe(text);
        if (!coding) continue;
        expect(Number(answer.headers.get('content-length'))).toBeLessThan(text.length / 2);
        const etag = answer.headers.get('etag')!;
        expect(etag).toBe(plain.headers.get('etag')!.replace(/"$/, `-${coding}"`));
        const known = await api.send('GET', path, { 'Accept-Encoding': accepted, 'If-None-Match': etag });
        expect([known.status, known.headers.etag, known.headers.vary]).toEqual([
          304,
          etag,
          'Accept-Encoding',
        ]);
      }
    },
  );

  it('is generated only once for OpenAPI', () => {
    const document = api.app.get(OpenApiDocument);
    const answer = document.answer('members');
    expect(document.answer('members')).toBe(answer);
    expect(Buffer.isBuffer(answer.json)).toBe(true);
  });
});

postgres.describe('GET /readyz', () => {
  it('checks the database on its own connection, so an exhausted pool does not affect the result', async () => {
    const api = await TestApi.start({ databasePoolSize: 2 });
    const runner = api.dataSource.createQueryRunner();
    try {
      const key = await api.key(await api.platform.user());
      await api.put('/profile', key, { bio: 'first' });
      await runner.startTransaction();
      await runner.query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
      const writes = Array.from({ length: 10 }, () => api.put('/profile', key, { bio: 'waits' }));
      void Promise.all(writes);
      await until(() => api.app.get(Database).poolState().waiting > 0);
      expect((await api.send('GET', '/readyz')).status).toBe(200);
      expect(api.app.get(Database).poolState().waiting).toBeGreaterThan(0);
      await runner.rollbackTransaction();
      expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(writes.map(() => 200));
    } finally {
      await runner.release();
      await api.close();
    }
  });

  it('runs at most one statement per 250 ms during 500 requests', async () => {
    await using api = await TestApi.start();
    const statements = new Set<string>();
    const start = performance.now();
    for (let asked = 0; asked < 500; asked += 20) {
      await atOnce(20, () => api.send('GET', '/readyz'));
      const [row] = await api.query<{ query_start: string }>(
        `SELECT query_start::text FROM pg_stat_activity
           WHERE application_name = 'public-user-api readiness' AND datname = current_database()`,
      );
      statements.add(row!.query_start);
    }
    expect(statements.size).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - start) / 250));
  });
});

describe('HSTS', () => {
  thorough.it('is on the responses of 16 routes if PUBLIC_URL is https, and otherwise on none', async () => {
    await using https = await TestApi.start({ publicUrl: 'https://api.example' });
    await using http = await TestApi.start({}, https);
    for (const [method, path] of [
      ['GET', '/api/public/problems'],
      ['GET', '/api/public/me'],
      ['OPTIONS', '/api/public/me'],
      ['GET', '/api/public/nowhere'],
      ['GET', '/nowhere'],
      ['GET', '/docs'],
      ['GET', '/livez'],
      ['GET', '/oauth/jwks'],
      ['GET', '/.well-known/openid-configuration'],
      ['GET', '/.well-known/oauth-protected-resource/api/public'],
      ['GET', '/oauth/authorize'],
      ['POST', '/oauth/token'],
      ['GET', '/oauth/userinfo'],
      ['GET', '/account/apps'],
      ['POST', '/account/sign-out'],
      ['GET', '/interaction/none'],
    ] as const) {
      const secure = await https.send(method, path);
      expect([path, secure.headers['strict-transport-security']]).toEqual([path, 'max-age=31536000']);
      const plain = await http.send(method, path);
      expect([path, plain.headers['strict-transport-security']]).toEqual([path, undefined]);
    }
  });
});
