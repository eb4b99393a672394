import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import { createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import * as client from 'openid-client';
import { postgres } from '../support/database.js';
import { Load } from '../support/load.js';
import { freePort, REDIRECT_URI, type OauthTest } from '../support/oauth.js';
import { ProxiedServers } from '../support/proxied-servers.js';
import { CADDY_FILE, examine, Proxy, type Answer, type Asked } from '../support/proxies.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

/** The caller's address, on loopback like the proxy's, but different. */
const CALLER = '127.0.0.2';
const FORGED = '203.0.113.7';
const KB = 1024;
/** Time for which the proxies wait for a response to begin. */
const PATIENCE_MS = 5_000;
/** Headers set for each message, or only for the connection (RFC 9110 §7.6.1). */
const OF_THE_HOP = ['date', 'server', 'connection', 'keep-alive', 'alt-svc'];

const members = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      type: 'users',
      record: { id: from + i, username: `m${from + i}`, bio: 'x'.repeat(450) },
    }),
  ).join('\n');

postgres.it('the configurations of nginx and Caddy are valid', () => {
  const { nginx, caddy, formatted } = examine();
  expect(nginx).toMatch(/syntax is ok\n.* test is successful\n$/);
  expect(nginx).not.toMatch(/\[(warn|error|emerg)\]/);
  expect(caddy).toMatch(/Valid configuration/);
  expect(formatted).toBe(readFileSync(CADDY_FILE, 'utf8'));
});

postgres.describe.each(['nginx', 'Caddy'] as const)('two servers behind %s, which ends TLS,', (name) => {
  let all: ProxiedServers;
  let oauth: OauthTest;
  let proxy: Proxy;
  let servers: ServerProcess[];
  let settings: ProxiedServers['settings'];
  beforeAll(async () => {
    all = await ProxiedServers.start(name);
    ({ oauth, proxy, servers, settings } = all);
  });
  afterAll(() => all?.close());

  /** Sends a request directly to a server, not to the proxy. */
  const direct = async (method: string, path: string, { headers = {}, body = '' }: Asked = {}) => {
    const sent = request(servers[0]!.url, { path, method, headers }).end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: answer.statusCode!, rawHeaders: answer.rawHeaders, body: await text(answer) };
  };
  const problem = ({ status, body }: Answer) => [status, (JSON.parse(body) as { code: string }).code];

  it('sign a member in with PKCE: issuer, redirects and cookies use https only', async () => {
    const { id, username } = await oauth.member();
    const server = await client.discovery(new URL(proxy.url), await oauth.client(), undefined, client.None());
    const addresses = Object.values(server.serverMetadata()).filter(
      (value): value is string => typeof value === 'string' && value.includes('://'),
    );
    expect(addresses.length).toBeGreaterThan(5);
    expect(addresses.filter((address) => new URL(address).origin !== proxy.url)).toEqual([]);

    const browser = oauth.browser();
    const send = browser.send.bind(browser);
    const cookies: string[] = [];
    const leadTo: string[] = [];
    browser.send = async (url, init) => {
      const response = await send(url, init);
      cookies.push(...response.headers.getSetCookie());
      const location = response.headers.get('location');
      if (location !== null) leadTo.push(new URL(location, proxy.url).origin);
      return response;
    };
    const verifier = client.randomPKCECodeVerifier();
    const url = client.buildAuthorizationUrl(server, {
      redirect_uri: REDIRECT_URI,
      scope: 'openid profile:read',
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state: 'as it was',
    });
    const back = await browser.authorize(url, { username });
    const tokens = await client.authorizationCodeGrant(server, back, {
      pkceCodeVerifier: verifier,
      expectedState: 'as it was',
    });
    expect(tokens.claims()).toMatchObject({ iss: proxy.url });
    const me = await proxy.ask('GET', '/api/public/me', {
      headers: { Authorization: `Bearer ${tokens.access_token}` },
    });
    expect(JSON.parse(me.body)).toMatchObject({ id, username });

    expect(cookies.length).toBeGreaterThan(1);
    expect(cookies.filter((cookie) => !/; secure(;|$)/i.test(cookie))).toEqual([]);
    expect([new Set(leadTo), back.origin]).toEqual([new Set([proxy.url]), new URL(REDIRECT_URI).origin]);
  });

  it('send the same status, headers and API body as without the proxy, even for paths that a proxy might rewrite', async () => {
    const { id } = await oauth.member();
    const key = { 'X-API-Key': await oauth.api.key(id) };
    const clientId = await oauth.client();
    const { etag } = (await proxy.ask('GET', '/api/public/profile', { headers: key })).headers;
    for (const [method, path, headers] of [
      ['GET', '/api/public/profile', key],
      ['HEAD', '/api/public/profile', key],
      ['GET', '/api/public/profile', { ...key, 'If-None-Match': etag as string }],
      ['GET', '/api/public/events?limit=1', key],
      ['GET', '/api/public/profile', {}],
      ['OPTIONS', '/api/public/profile', { Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET' }], // prettier-ignore
      ['GET', '/api/public/openapi.json', {}],
      ['GET', '/api/public/nothing', {}],
      ['GET', '/api//public/profile', key],
      ['GET', '/api/public/%70rofile', key],
      ['GET', '/api/public/../public/profile', key],
      ['GET', '/oauth/jwks', {}],
      ['GET', '/.well-known/oauth-authorization-server', {}],
      ['GET', '/account/apps', { Accept: 'text/html' }],
      ['GET', oauth.request(clientId).url.href.slice(oauth.issuer.length), { Accept: 'text/html' }],
      ['GET', '/docs', { Accept: 'text/html' }],
      ['GET', '/', { Accept: 'text/html' }],
    ] as const) {
      const asked = { headers: { 'Accept-Encoding': 'gzip', 'X-Request-Id': 'the-same', ...headers } };
      const [mine, theirs] = [await proxy.ask(method, path, asked), await direct(method, path, asked)];
      expect([method, path, mine.status, headersOf(mine)]).toEqual([
        method,
        path,
        theirs.status,
        headersOf(theirs),
      ]);
      if (path.startsWith('/api/')) expect(mine.body).toBe(theirs.body);
    }
  });

  /** Sorted by name, without values that differ each time. */
  function headersOf({ rawHeaders }: { rawHeaders: readonly string[] }): [string, string][] {
    const pairs = rawHeaders
      .flatMap((text, i): [string, string][] =>
        i % 2 === 0 ? [[text.toLowerCase(), rawHeaders[i + 1]!]] : [],
      )
      .filter(([header]) => !OF_THE_HOP.includes(header));
    const steady = (value: string) =>
      value.replaceAll(/(^__[\w.-]+=|\/interaction\/|\/authorize\/|expires=)[^;]+/g, '$1…');
    return pairs
      .map(([header, value]): [string, string] => [header, steady(value)])
      .toSorted(([one, a], [other, b]) => (one + a).localeCompare(other + b));
  }

  it('send Strict-Transport-Security once, and support HTTP/2', async () => {
    const { rawHeaders } = await proxy.ask('GET', '/livez');
    const names = rawHeaders.filter((_, i) => i % 2 === 0).map((each) => each.toLowerCase());
    expect(names.filter((each) => each === 'strict-transport-security')).toHaveLength(1);

    const { id } = await oauth.member();
    const session = connect(proxy.url, { ca: proxy.certificate });
    try {
      const put = session.request({
        ':method': 'PUT',
        ':path': '/api/public/profile',
        'x-api-key': await oauth.api.key(id),
        'content-type': 'application/json',
      });
      put.end('{"bio":"by HTTP/2"}');
      const [headers] = (await once(put, 'response')) as [Record<string, unknown>];
      expect([headers[':status'], JSON.parse(await text(put))]).toMatchObject([
        200,
        { profile: { bio: 'by HTTP/2' } },
      ]);
    } finally {
      session.close();
    }
  });

  it('redirect http to https with 308, and keep the path and query unchanged', async () => {
    const path = '/oauth/authorize?state=a%2Fb%20c&redirect_uri=https://app.example//callback';
    const { hostname, port } = new URL(proxy.plainUrl);
    const sent = request({ hostname, port, family: 4, path, method: 'POST' }).end('a=b');
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    expect([answer.statusCode, answer.headers.location]).toEqual([308, proxy.url + path]);
  });

  it('identify a caller by the address that the proxy sees, regardless of the caller’s X-Forwarded-For', async () => {
    const { id, username } = await oauth.member();
    const forged = {
      'X-Forwarded-For': FORGED,
      Forwarded: `for=${FORGED}`,
      'X-Real-IP': FORGED,
      'X-Forwarded-Host': 'evil.example',
    };
    const keyOf = (network: string) => oauth.api.key(id, ['profile:read'], { cidrs: [network] });
    const [theirs, others] = [await keyOf(`${CALLER}/32`), await keyOf(`${FORGED}/32`)];
    const get = (key: string) =>
      proxy.ask('GET', '/api/public/me', { from: CALLER, headers: { 'X-API-Key': key, ...forged } });
    expect((await get(theirs)).status).toBe(200);
    expect(problem(await get(others))).toEqual([403, 'ip_not_allowed']);
    const links = await proxy.ask('GET', '/.well-known/oauth-authorization-server', { headers: forged });
    expect(links.body).not.toContain('evil.example');

    const browser = oauth.browser();
    Object.assign(browser.headers, forged);
    await oauth.code(await oauth.client(), username, {}, browser);
    const recorded = await oauth.query(
      `SELECT host(ip) AS ip FROM auth_events WHERE user_id = $1 AND type = 'sign_in.succeeded'
       UNION ALL SELECT host(ip) FROM oauth_sessions WHERE user_id = $1`,
      [id],
    );
    expect(recorded).toEqual([{ ip: '127.0.0.1' }, { ip: '127.0.0.1' }]);
  });

  it('reject oversized bodies, feeds and URLs, with a problem document for bodies and feeds', async () => {
    const { id } = await oauth.member();
    const json = { 'X-API-Key': await oauth.api.key(id), 'Content-Type': 'application/json' };
    for (const size of [17 * KB, 300 * KB, 5 * KB * KB]) {
      const body = `{"bio":"${'x'.repeat(size)}"}`;
      for (const length of [{ 'Content-Length': String(body.length) }, { 'Transfer-Encoding': 'chunked' }]) {
        const put = (headers: Record<string, string>, asked: Asked) =>
          proxy.ask('PUT', '/api/public/profile', { ...asked, headers: { ...headers, ...length } });
        const refused = await put(json, { body }); // once the server has received the complete body
        expect([size, length, ...problem(refused)]).toEqual([size, length, 413, 'payload_too_large']);
        expect(refused.headers['content-type']).toMatch(/^application\/problem\+json/);
        // Before the body: a client that still sends when the connection closes may miss the response.
        const unknown = await put({ 'Content-Type': 'application/json' }, { body: '{', unfinished: true });
        expect([size, length, ...problem(unknown)]).toEqual([size, length, 401, 'missing_credentials']);
      }
    }
    const feeding = { 'X-API-Key': await oauth.api.platformKey(), 'Content-Type': 'application/x-ndjson' };
    const feed = (body: string) => proxy.ask('POST', '/api/platform/records', { headers: feeding, body });
    expect((await feed(members(5_000_000, 3_000))).status).toBe(200);
    expect(problem(await feed('x'.repeat(8 * KB * KB + 1)))).toEqual([413, 'payload_too_large']);

    const long = (size: number) => proxy.ask('GET', `/oauth/authorize?state=${'x'.repeat(size)}`);
    expect((await long(15 * KB)).status).toBe(400); // without a client, and with a state that is too long
    expect((await long(17 * KB)).status).toBe(431);
    expect([414, 431]).toContain((await long(40 * KB)).status);
    expect((await proxy.ask('GET', '/livez')).status).toBe(200);
  });

  it('accept the longest authorization request, and redirect with its complete state', async () => {
    // 5 KB as JSON are 15 KB in a URL, where each byte is written as three.
    const clientId = await oauth.client();
    const { username } = await oauth.member();
    const state = '事'.repeat(1_500);
    const { url } = oauth.request(clientId, { state });
    expect(url.href.length).toBeGreaterThan(13_800);
    const back = await oauth.browser().authorize(url, { username });
    expect(back.searchParams.get('state')).toBe(state);
    expect(back.searchParams.get('code')).not.toBeNull();
  });

  it('hide their metrics from outside', async () => {
    expect((await proxy.ask('GET', '/metrics')).status).toBe(404);
    const inside = await fetch(`http://127.0.0.1:${settings[0]!.METRICS_PORT}/metrics`);
    expect(await inside.text()).toContain('http_request_duration_seconds');
  });

  it('fail no read when a server is killed, and use the server again when it is available again', async () => {
    const { id } = await oauth.member();
    const key = { 'X-API-Key': await oauth.api.key(id) };
    const load = new Load();
    for (let n = 0; n < 3; n++)
      load.add('read', () => proxy.ask('GET', '/api/public/profile', { headers: key }));
    const readsOfTheFirst = async () => {
      const metrics = await fetch(`http://127.0.0.1:${settings[0]!.METRICS_PORT}/metrics`);
      return /^http_request_duration_seconds_count\{.*route="\/api\/public\/profile"/m.test(
        await metrics.text(),
      );
    };
    try {
      await load.meanwhile(20);
      await servers[0]!.kill('SIGKILL');
      await load.meanwhile(20);
      servers[0] = await ServerProcess.start(settings[0]!);
      await eventually(async () => (await readsOfTheFirst()) || undefined);
    } finally {
      await load.end();
    }
    expect(load.failed).toEqual([]);
    expect(load.busy).toBeLessThan(load.answered.read! / 10);
  });

  it('allow a long poll more time than other responses', async () => {
    const headers = { 'X-API-Key': await oauth.api.platformKey() };
    const { next } = JSON.parse((await proxy.ask('GET', '/api/platform/changes', { headers })).body) as {
      next: string;
    };
    const path = `/api/platform/changes?wait=${PATIENCE_MS / 1000 + 2}&after=${next}`;
    expect((await proxy.ask('GET', path, { headers })).status).toBe(200);
  });

  it('respond to every read while one server is frozen', async () => {
    const { id } = await oauth.member();
    const key = { 'X-API-Key': await oauth.api.key(id) };
    const load = new Load();
    const callers = 4;
    for (let n = 0; n < callers; n++)
      load.add('read', () => proxy.ask('GET', '/api/public/profile', { headers: key }));
    try {
      await load.meanwhile(20);
      process.kill(servers[0]!.pid, 'SIGSTOP');
      await load.meanwhile(20 * callers);
    } finally {
      process.kill(servers[0]!.pid, 'SIGCONT');
      await load.end();
    }
    expect(load.failed).toEqual([]);
  });
});

/** Servers that accept each request and break its connection without a response; only health checks get a response. */
class Breaking {
  /** The first lines of the requests. */
  readonly taken: string[] = [];
  isReady = true;
  readonly #servers: Server[] = [];
  readonly ports: number[] = [];

  async open(): Promise<this> {
    for (const _ of [1, 2]) {
      const server = createServer((socket) => {
        let got = '';
        socket.on('error', () => undefined);
        socket.setEncoding('latin1').on('data', (chunk: string) => {
          got += chunk;
          if (got.startsWith('GET /readyz ')) {
            const status = this.isReady ? '200 OK' : '503 Service Unavailable';
            socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
            return;
          }
          if (!/\r\n\r\n(end|$)/.test(got)) return; // all requests that are sent here
          this.taken.push(got.split('\r\n')[0]!);
          socket.destroy();
        });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      this.#servers.push(server);
      this.ports.push((server.address() as { port: number }).port);
    }
    return this;
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }
}

postgres.describe.each(['nginx', 'Caddy'] as const)('%s, with servers that break connections,', (name) => {
  let breaking: Breaking;
  let proxy: Proxy;
  beforeAll(async () => {
    breaking = await new Breaking().open();
    proxy = await Proxy.start(name, await freePort(), breaking.ports, 1);
  });
  afterAll(async () => {
    await proxy?.stop();
    breaking?.close();
  });

  /** Repeats the request until it is passed on: a proxy avoids failing servers for a while. @returns the status */
  const askThem = (atLeast: number, ...[method, path, asked]: Parameters<Proxy['ask']>) =>
    eventually(async () => {
      breaking.taken.length = 0;
      const { status } = await proxy.ask(method, path, asked);
      return breaking.taken.length >= atLeast ? status : undefined;
    });

  it.each(['POST /oauth/token', 'POST /api/platform/records'])(
    'sends %s only once, even if the connection breaks',
    async (what) => {
      const [method, path] = what.split(' ') as [string, string];
      for (let round = 0; round < 3; round++) {
        // The header that makes Go’s own client treat a POST as repeatable.
        const headers = { 'Idempotency-Key': `${round}` };
        const status = await askThem(1, method, path, { headers, body: 'end' });
        expect([status, breaking.taken]).toEqual([502, [`${what} HTTP/1.1`]]);
      }
    },
  );

  it('sends a GET again if the connection breaks', async () => {
    expect(await askThem(2, 'GET', '/api/public/profile')).toBe(502);
  });

  it('logs failed requests without their query, headers, or secrets in the path', async () => {
    const headers = {
      'X-API-Key': 'secret-key',
      Authorization: 'Bearer secret-token',
      Cookie: 'a=secret-cookie',
      Referer: 'https://app.example/?code=secret-referer',
    };
    const own = await Proxy.start(name, await freePort(), breaking.ports, 1);
    try {
      for (const path of [
        '/oauth/authorize?state=secret-state',
        '/oauth/authorize/secret-uid',
        '/sign-in/upstream?code=secret-code',
        '/account/password-reset?token=secret-reset',
        '/calendar/secret-link.ics?a=secret-query',
        '/interaction/secret-interaction/sign-in',
      ])
        expect((await own.ask('POST', path, { headers, body: 'end' })).status).toBe(502);
    } finally {
      await own.stop(); // the proxy's logs are complete
    }
    expect(own.log).toContain('/account/password-reset');
    expect(own.log).toContain('502');
    expect(own.log).not.toContain('secret');
  });
});

postgres.it(
  'Caddy responds 503 with Retry-After if no server is ready, and passes requests on when servers are ready',
  async () => {
    const breaking = await new Breaking().open();
    breaking.isReady = false;
    const proxy = await Proxy.start('Caddy', await freePort(), breaking.ports);
    const ask = (status: number) =>
      eventually(async () => {
        const answer = await proxy.ask('POST', '/oauth/token', { body: 'end' });
        return answer.status === status ? answer : undefined;
      });
    try {
      const { headers, body } = await ask(503);
      expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'retry-after': '1' });
      expect(JSON.parse(body)).toMatchObject({ status: 503, code: 'temporarily_unavailable' });
      breaking.isReady = true;
      expect((await ask(502)).headers['retry-after']).toBeUndefined(); // a server that breaks its connections
    } finally {
      await proxy.stop();
      breaking.close();
    }
  },
);
