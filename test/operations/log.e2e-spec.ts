import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TestApi } from '../support/api.js';
import { postgres } from '../support/database.js';
import { Client } from '../support/raw-client.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

// A server process and this process share one database.
postgres.describe('the log', () => {
  let api: TestApi;
  let server: ServerProcess | undefined;
  let user: number;
  let key: string;
  beforeAll(async () => {
    api = await TestApi.start();
    user = await api.platform.user();
    key = await api.key(user, ['profile:read', 'profile:write']);
    server = await ServerProcess.start({ ...api.environment, LOG_LEVEL: 'trace', RATE_LIMIT_AUTH: '0' });
  });
  afterAll(async () => {
    await server?.kill();
    await api.close();
  });

  interface Line {
    msg: string;
    request_id: string;
    [name: string]: unknown;
  }
  /** The complete lines, without the last line, which may be incomplete. */
  const lines = () =>
    server!.output
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);
  /** The log line of a request, once it is written. */
  const lineOf = (id: string) =>
    eventually(() => {
      const found = lines().filter(({ request_id, msg }) => request_id === id && msg === 'request');
      return found.length > 0 ? found : undefined;
    });
  const send = async (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) => {
    const answer = await fetch(server!.url + path, init);
    await answer.arrayBuffer();
    return lineOf(answer.headers.get('x-request-id')!);
  };

  it('has one JSON line per request: route, outcome, duration, and caller', async () => {
    const [line, ...others] = await send('/api/public/events/7?', { headers: { 'X-API-Key': key } });
    expect(others).toEqual([]);
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      request_id: expect.any(String),
      method: 'GET',
      route: '/api/public/events/:id',
      status: 403,
      duration_ms: expect.any(Number),
      user_id: user,
      credential_id: key.split('_')[2],
      problem: 'insufficient_scope',
      msg: 'request',
    });
  });

  it('contains the caller’s trace id if it is valid', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const lineFor = async (traceparent: string) => {
      const [line] = await send('/api/public/me', { headers: { 'X-API-Key': key, traceparent } });
      return line!;
    };
    expect(await lineFor(`00-${trace}-b7ad6b7169203331-01`)).toMatchObject({ status: 200, trace_id: trace });
    expect(await lineFor(`00-${trace}-"}`)).not.toHaveProperty('trace_id');
  });

  it('contains a reason for a rejected credential', async () => {
    const [line] = await send('/api/public/me', { headers: { 'X-API-Key': 'pua_live_x' } });
    expect(line).toMatchObject({ status: 401, problem: 'invalid_credentials', refusal: expect.any(String) });
  });

  it('contains no key, token, cookie, code or password from a request’s path, query, headers or body', async () => {
    const token = 'T0k3nT0k3nT0k3nT0k3nT0k3nT0k3nT0k3nT0k3nT0k';
    const clientSecret = `pua_secret_${'S3cret'.repeat(8).slice(0, 43)}`;
    const typed = ['cookie-hunter1', 'password-hunter2', 'verifier-hunter3', 'code-hunter4'];
    const secrets = [key, token, clientSecret, ...typed];
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'nobody',
      code: 'code-hunter4',
      code_verifier: 'verifier-hunter3',
      client_secret: token,
      client_assertion: token,
      refresh_token: token,
      password: 'password-hunter2',
    });
    const encoded = [...key].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
    const cookie = { Cookie: `session=cookie-hunter1; pua=${token}` };
    for (const value of [key, token, clientSecret, encoded]) {
      await send('/api/public/me', { headers: { 'X-Request-Id': value.slice(0, 64) } });
      await send(`/api/public/${value}`);
      await send(`/${value}/api?${value}=${value}`);
      await send(`/api/public/events/${value}`, { headers: { 'X-API-Key': key, Referer: value } });
      await send(`/api/public/me?access_token=${value}&api_key=${value}`, { headers: { 'X-API-Key': key } });
      await send('/api/public/me', { headers: { Authorization: `Bearer ${value}`, ...cookie } });
      await send('/api/public/me', {
        headers: { Authorization: `Basic ${btoa(value)}`, 'X-API-Key': value },
      });
      await send('/api/public/profile', {
        method: 'PUT',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json', ...cookie },
        body: JSON.stringify({ bio: value, [value]: value, password: 'password-hunter2' }),
      });
      await send('/oauth/token', { method: 'POST', body: form, headers: { ...cookie } });
      await send(`/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: value }) });
      await send(`/oauth/authorize?${form}&state=${value}&id_token_hint=${value}`, { headers: cookie });
      await send('/oauth/userinfo', { headers: { Authorization: `Bearer ${value}` } });
    }
    for (const secret of [...secrets, encoded, btoa(key), key.split('_')[3]!])
      expect(server!.output + server!.errors).not.toContain(secret);
  });

  it('contains the path of a 404', async () => {
    const [line] = await send('/api/public/event');
    expect(line).toMatchObject({ path: '/api/public/event', status: 404, problem: 'not_found' });
  });

  it('names a page by its route, without the sign-in id or session id in its path', async () => {
    const sent = await Promise.all([
      send('/interaction/the-id-of-a-sign-in'),
      send('/interaction/the-id-of-a-sign-in/consent', { method: 'POST' }),
      send('/account/sessions/some-session/end', { method: 'POST' }),
      send('/oauth/userinfo'),
    ]);
    expect(sent.flat()).toMatchObject([
      { method: 'GET', route: '/interaction/:uid', status: 400 },
      { method: 'POST', route: '/interaction/:uid/consent', status: 400 },
      { method: 'POST', route: '/account/sessions/:session/end', status: 403 },
      { method: 'GET', route: '/oauth/userinfo', status: 401, problem: 'missing_credentials' },
    ]);
    expect(server!.output).not.toMatch(/the-id-of-a-sign-in|some-session/);
  });

  it('cannot be forged by a caller’s input', async () => {
    await send('/livez'); // the lines of earlier requests are written
    const before = lines().length;
    await send('/api/public/%0A%7B%22msg%22%3A%22request%22%7D', {
      headers: { 'User-Agent': '{"msg":"request"}', 'X-Request-Id': '{"msg":"x"}' },
    });
    expect(lines().length - before).toBe(1);
  });

  it('records that a caller disconnected before the response', async () => {
    const { socket } = await Client.open(server!.url);
    socket.write(
      `PUT /api/public/profile HTTP/1.1\r\nHost: x\r\nX-Request-Id: gone\r\nX-API-Key: ${key}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n',
    );
    await once(socket, 'data');
    socket.destroy();
    expect(await lineOf('gone')).toMatchObject([{ route: '/api/public/profile', aborted: true }]);
  });

  it('has one readable line per request if LOG_FORMAT is pretty, without query values and probes', async () => {
    const pretty = await ServerProcess.start({ ...api.environment, LOG_FORMAT: 'pretty', LOG_LEVEL: 'info' });
    const { username } = await api.get('/me', key).then(({ body }) => body as { username: string });
    const call = async (path: string, headers: Record<string, string> = {}) =>
      void (await (await fetch(pretty.url + path, { headers })).arrayBuffer());
    await call('/livez');
    await call('/readyz');
    await call('/api/public/me?verbose=hunter2&api_key=hunter3', { 'X-API-Key': key });
    await call('/api/public/profile', { 'X-API-Key': key });
    await call(`/api/public/${key}`);
    await call('/api/public/profile');
    // Paths that are not valid URLs by themselves.
    for (const path of ['//', '///?a=1', '//[', '//x:99999/', '//@:', '*']) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) =>
        get({ host: '127.0.0.1', port: new URL(pretty.url).port, path, agent: false }, resolve).once(
          'error',
          reject,
        ),
      );
      answer.resume();
      expect([path, answer.statusCode]).toEqual([path, 404]);
    }
    await pretty.kill();
    const requests = pretty.output.split('\n').filter((line) => line.includes('/api/public/'));
    const line = (rest: string) => expect.stringMatching(new RegExp(`^\\d\\d:\\d\\d:\\d\\d GET ${rest}$`));
    expect(
      requests.filter((text) => /^\d\d:/.test(text)).toSorted((a, b) => a.slice(9).localeCompare(b.slice(9))),
    ).toEqual([
      line(`/api/public/\\[redacted\\] 404 \\d+ ms`),
      line(`/api/public/me\\?verbose=…&api_key=… 400 \\d+ ms ${username}`),
      line(`/api/public/profile 200 \\d+ ms ${username}`),
      line('/api/public/profile 401 \\d+ ms'),
    ]);
    expect(pretty.output).not.toMatch(/livez|readyz|hunter|^\{/m);
  });
});
