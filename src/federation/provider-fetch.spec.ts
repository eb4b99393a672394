import { createServer, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { listen } from '../../test/support/listen.js';
import { providerFetch, type ProviderFetch } from './provider-fetch.js';

describe('requests to the external identity provider', () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url === '/moved') response.writeHead(302, { Location: '/' }).end();
      else if (request.url === '/cut') response.writeHead(200, { 'Content-Length': 9 }).write('half');
      else
        void buffer(request).then((body) =>
          response.end(
            `${request.headers['user-agent']} ${request.method} ${request.headers['content-type']} ${body.toString()}`,
          ),
        );
      if (request.url === '/cut') setImmediate(() => request.socket.destroy());
    });
    port = Number(new URL(await listen(server)).port);
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  const LOOPBACK = [{ address: '127.0.0.1', family: 4 }];
  const post = (fetch: ProviderFetch, name: string, signal?: AbortSignal) =>
    fetch(`http://${name}:${port}/`, {
      method: 'POST',
      body: new URLSearchParams({ code: 'x' }),
      ...(signal ? { signal } : {}),
    });

  it('resolve one name at a time, even if name servers do not respond', async () => {
    const looks: string[] = [];
    const { promise: answer, resolve: answered } = Promise.withResolvers<typeof LOOPBACK>();
    const fetch = providerFetch((name) => {
      looks.push(name);
      return answer;
    });
    // Names that only this test uses: connections are kept for resolved names.
    const names = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 'slow.example' : 'slow-keys.example'));
    const aborted = await Promise.allSettled(names.map((name) => post(fetch, name, AbortSignal.timeout(50))));
    expect(aborted.every(({ status }) => status === 'rejected')).toBe(true);
    expect(looks).toEqual(['slow.example']); // the lookup continues: the system cannot abort it
    answered(LOOPBACK);
    expect((await post(fetch, 'slow-keys.example')).status).toBe(200);
  });

  it('continue after a name is not found', async () => {
    const fetch = providerFetch((name) =>
      name === 'gone.example' ? Promise.reject(new Error('not found')) : Promise.resolve(LOOPBACK),
    );
    const gone = post(fetch, 'gone.example');
    const found = post(fetch, 'login.example');
    await expect(gone).rejects.toThrow('fetch failed');
    expect(await (await found).text()).toBe(
      'public-user-api POST application/x-www-form-urlencoded;charset=UTF-8 code=x',
    );
  });

  it('resolve the name localhost', async () => {
    expect((await post(providerFetch(), 'localhost')).status).toBe(200);
  });

  it('follow no redirect, and fail if a response is truncated', async () => {
    const fetch = providerFetch();
    const moved = await fetch(`http://127.0.0.1:${port}/moved`, {});
    expect([moved.status, moved.headers.get('location')]).toEqual([302, '/']);
    await expect(fetch(`http://127.0.0.1:${port}/cut`, {})).rejects.toThrow('fetch failed');
  });
});
